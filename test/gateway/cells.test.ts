/** Every kind of host in front of every kind of server: what a server says alone, it says through the gateway. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { McpServer } from '@modelcontextprotocol/server';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { TaskClient } from '../../src/client/index.ts';
import type { UpstreamTarget } from '../../src/gateway/upstream-options.ts';
import { createTaskServer, listen } from '../../src/server/index.ts';
import { memory } from '../../src/backend/memory/index.ts';
import { stringOf, textOf } from '../field/wire.ts';
import { sdk1Server } from './fixtures/sdk1-server.ts';
import { gatewayOverHttp } from './rig.ts';

function command(file: string): UpstreamTarget {
	return {
		kind: 'command',
		command: process.execPath,
		args: [join(import.meta.dirname, 'fixtures', file)],
		env: { PATH: process.env['PATH'] ?? '' },
	};
}

/** A server on the transport of 2024-11-05. */
async function sseServer(): Promise<UpstreamTarget> {
	const transports = new Map<string, SSEServerTransport>();
	const http = createServer((request, response) => {
		const url = new URL(request.url ?? '/', 'http://localhost');
		if (request.method === 'GET') {
			const transport = new SSEServerTransport('/messages', response);
			transports.set(transport.sessionId, transport);
			void sdk1Server().connect(transport);
		} else void transports.get(url.searchParams.get('sessionId') ?? '')?.handlePostMessage(request, response);
	});
	await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
	onTestFinished(() => {
		http.closeAllConnections();
		http.close();
	});
	return { kind: 'sse', url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/sse`, headers: {} };
}

/** A holdfast server, whose tools become tasks. */
async function holdfastServer(): Promise<UpstreamTarget> {
	const server = createTaskServer({
		backend: memory(),
		server: (tasks) => {
			const mcp = new McpServer({ name: 'holdfast', version: '1' });
			mcp.registerTool(
				'echo',
				{ inputSchema: z.object({ words: z.string() }) },
				tasks.handler({ syncWindowMs: 0 }, ({ words }) => ({ content: [{ type: 'text', text: words }] })),
			);
			mcp.registerTool(
				'sum',
				{
					inputSchema: z.object({ a: z.number(), b: z.number() }),
					outputSchema: z.object({ sum: z.number() }),
				},
				tasks.handler({ syncWindowMs: 0 }, ({ a, b }) => ({
					content: [{ type: 'text', text: String(a + b) }],
					structuredContent: { sum: a + b },
				})),
			);
			mcp.registerTool(
				'fail',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0 }, () => {
					throw new Error('it cannot be done');
				}),
			);
			mcp.registerTool(
				'ask',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
					const { action, content } = await task.requireInput('branch', {
						mode: 'form',
						message: 'Which branch?',
						requestedSchema: { type: 'object', properties: { said: { type: 'string' } } },
					});
					return { content: [{ type: 'text', text: `${action} ${stringOf(content?.['said'])}` }] };
				}),
			);
			mcp.registerPrompt('greet', { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
				messages: [{ role: 'user', content: { type: 'text', text: `Hello ${name}` } }],
			}));
			mcp.registerResource('notes', 'notes://today', {}, () => ({
				contents: [{ uri: 'notes://today', text: 'rain' }],
			}));
			return mcp;
		},
	});
	const listening = await listen(server, { port: 0 });
	onTestFinished(() => listening.close(0));
	return { kind: 'http', url: listening.url, headers: {} };
}

const SERVERS: readonly [string, boolean, () => UpstreamTarget | Promise<UpstreamTarget>][] = [
	['the SDK over stdio', false, () => command('sdk-server.ts')],
	["the SDK's 1.x over stdio", true, () => command('sdk1-server.ts')],
	["the SDK's 1.x over SSE", true, sseServer],
	['holdfast over HTTP, with tasks', true, holdfastServer],
];

interface Host {
	readonly client: Client;
	readonly call: (name: string, args: Record<string, unknown>) => Promise<unknown>;
}

async function connect(url: string, mode: 'auto' | 'legacy'): Promise<Client> {
	const client = new Client(
		{ name: 'test-host', version: '1' },
		{ capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
	);
	client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { said: 'main' } }));
	await client.connect(new StreamableHTTPClientTransport(new URL(url)));
	onTestFinished(() => client.close());
	return client;
}

function plain(client: Client): Host {
	return { client, call: (name, args) => client.callTool({ name, arguments: args }) };
}

const HOSTS: readonly [string, (url: string) => Promise<Host>][] = [
	['an SDK client of 2026-07-28', async (url) => plain(await connect(url, 'auto'))],
	['an SDK client of 2025-11-25', async (url) => plain(await connect(url, 'legacy'))],
	[
		'a TaskClient',
		async (url) => {
			const client = await connect(url, 'auto');
			const tasks = new TaskClient(client);
			onTestFinished(() => tasks.close());
			return { client, call: (name, args) => tasks.callTool({ name, arguments: args }) };
		},
	],
];

describe.each(HOSTS)('through the gateway, %s', (_host, open) => {
	it.each(SERVERS)(
		'finds what %s has: tools, prompts, resources and answers to questions',
		async (_name, asks, start) => {
			const rig = await gatewayOverHttp({ upstreams: { behind: { target: await start() } } });
			const { client, call } = await open(rig.url);
			const { tools } = await client.listTools();
			expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo', 'sum', 'fail']));
			expect(textOf(await call('echo', { words: 'to and fro' }))).toBe('to and fro');
			expect(await call('sum', { a: 2, b: 3 })).toMatchObject({ structuredContent: { sum: 5 } });
			const failed = await call('fail', {});
			expect(failed).toMatchObject({ isError: true });
			expect(textOf(failed)).toContain('it cannot be done');
			if (asks) expect(textOf(await call('ask', {}))).toBe('accept main');
			const { messages } = await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
			expect(messages[0]?.content).toMatchObject({ text: 'Hello Ada' });
			const { contents } = await client.readResource({ uri: 'notes://today' });
			expect(contents[0]).toMatchObject({ text: 'rain' });
		},
	);
});
