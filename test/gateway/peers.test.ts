/** Servers and clients that others wrote, as they are, behind the gateway and in front of it. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
	Client as NewerClient,
	StreamableHTTPClientTransport as NewerHttp,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
	CreateMessageRequestSchema,
	ElicitRequestSchema,
	ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import { TaskClient } from '../../src/client/index.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import type { UpstreamOptions } from '../../src/gateway/upstream-options.ts';
import { listen, type Listening } from '../../src/server/index.ts';
import { freePort } from '../client/child-server.ts';
import { eventually } from '../field/harness.ts';
import { memoryCatalogue } from './rig.ts';

const root = join(import.meta.dirname, '../..');
const home = mkdtempSync(join(tmpdir(), 'holdfast-gateway-peers-'));
writeFileSync(join(home, 'note.txt'), 'written in a file');
const env = { PATH: process.env['PATH'] ?? '', HOME: home, MCP_REMOTE_CONFIG_DIR: home };

function upstream(name: string, args: readonly string[], more: Record<string, string> = {}): UpstreamOptions {
	const script = join(root, 'node_modules/@modelcontextprotocol', `server-${name}/dist/index.js`);
	return {
		...{ name, prefix: `${name}_`, maxConcurrentCalls: 64, startTimeoutMs: 30_000, tools: {}, folds: [] },
		maxResultBytes: 10_000_000,
		target: { kind: 'command', command: process.execPath, args: [script, ...args], env: { ...env, ...more } },
	};
}

let gateway: Gateway;
let listening: Listening;

beforeAll(async () => {
	gateway = new Gateway({
		backend: memory(),
		upstreams: [
			upstream('everything', ['stdio']),
			upstream('filesystem', [home]),
			upstream('memory', [], { MEMORY_FILE_PATH: join(home, 'memory.jsonl') }),
		],
		catalogue: memoryCatalogue(),
		budgets: () => undefined,
	});
	listening = await listen(gateway.server, { port: 0, bus: gateway.bus });
});
afterAll(async () => {
	await listening.close(0);
	await gateway.close();
	rmSync(home, { recursive: true, force: true, maxRetries: 5 });
});

/** What every client in front must be able to do, whatever it speaks. */
interface Front {
	listTools(): Promise<readonly string[]>;
	call(name: string, args: Record<string, unknown>): Promise<string>;
	readResource(uri: string): Promise<string>;
	getPrompt(name: string): Promise<string>;
	close(): Promise<void>;
}

const ANSWERS = {
	elicitation: { action: 'accept' as const, content: { name: 'Ada', interpretation: 'snake' } },
	sampling: {
		model: 'scripted',
		role: 'assistant' as const,
		content: { type: 'text' as const, text: 'A sampled answer' },
	},
	roots: { roots: [{ uri: 'file:///home', name: 'home' }] },
};

/** A front on the SDK's current client. */
async function newerFront(mode: 'auto' | 'legacy', withTasks: boolean): Promise<Front> {
	const client = new NewerClient(
		{ name: 'sdk-2', version: '1' },
		{
			versionNegotiation: { mode },
			capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
		},
	);
	client.setRequestHandler('elicitation/create', () => ANSWERS.elicitation);
	client.setRequestHandler('sampling/createMessage', () => ANSWERS.sampling);
	client.setRequestHandler('roots/list', () => ANSWERS.roots);
	await client.connect(new NewerHttp(new URL(listening.url)));
	const tasks = withTasks ? new TaskClient(client) : undefined;
	return {
		listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
		call: async (name, args) => JSON.stringify(await (tasks ?? client).callTool({ name, arguments: args })),
		readResource: async (uri) => JSON.stringify(await client.readResource({ uri })),
		getPrompt: async (name) => JSON.stringify(await client.getPrompt({ name })),
		close: async () => {
			tasks?.close();
			await client.close();
		},
	};
}

/** A front on the SDK's 1.x client. */
async function olderFront(transport: StdioClientTransport | StreamableHTTPClientTransport): Promise<Front> {
	const client = new Client(
		{ name: 'sdk-1', version: '1' },
		{ capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } },
	);
	client.setRequestHandler(ElicitRequestSchema, () => ANSWERS.elicitation);
	client.setRequestHandler(CreateMessageRequestSchema, () => ANSWERS.sampling);
	client.setRequestHandler(ListRootsRequestSchema, () => ANSWERS.roots);
	await client.connect(transport);
	return {
		listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
		call: async (name, args) => JSON.stringify(await client.callTool({ name, arguments: args })),
		readResource: async (uri) => JSON.stringify(await client.readResource({ uri })),
		getPrompt: async (name) => JSON.stringify(await client.getPrompt({ name })),
		close: () => client.close(),
	};
}

function stdio(script: string, args: readonly string[]): StdioClientTransport {
	return new StdioClientTransport({
		command: process.execPath,
		args: [join(root, script), ...args],
		env,
		stderr: 'ignore',
	});
}

const FRONTS: readonly (readonly [string, () => Promise<Front>])[] = [
	['the current SDK client', () => newerFront('auto', false)],
	['the current SDK client with Tasks', () => newerFront('auto', true)],
	['the current SDK client on 2025-11-25', () => newerFront('legacy', false)],
	['the 1.x SDK client', () => olderFront(new StreamableHTTPClientTransport(new URL(listening.url)))],
	[
		'the 1.x SDK client through mcp-remote',
		() =>
			olderFront(stdio('node_modules/mcp-remote/dist/proxy.js', [listening.url, '--allow-http', '--silent'])),
	],
];

describe.each(FRONTS)('%s', (_name, connect) => {
	let front: Front;
	beforeAll(async () => {
		front = await connect();
	}, 30_000);
	afterAll(() => front.close());

	it('sees the tools of all servers under their prefixes', async () => {
		const names = await front.listTools();
		for (const name of ['everything_echo', 'filesystem_read_text_file', 'memory_read_graph'])
			expect(names).toContain(name);
	});

	it.each([
		['everything_echo', { message: 'hello' }, 'Echo: hello'],
		['everything_get-structured-content', { location: 'Chicago' }, 'structuredContent'],
		['everything_get-tiny-image', {}, 'image/png'],
		['everything_trigger-long-running-operation', { duration: 1.6, steps: 4 }, 'Steps: 4'],
		['everything_trigger-elicitation-request', {}, 'Ada'],
		['everything_trigger-sampling-request', { prompt: 'Say', maxTokens: 10 }, 'A sampled answer'],
		['everything_simulate-research-query', { topic: 'owls' }, 'Research Report: owls'],
		['filesystem_read_text_file', { path: join(home, 'note.txt') }, 'written in a file'],
		[
			'memory_create_entities',
			{ entities: [{ name: 'Ada', entityType: 'person', observations: ['counts'] }] },
			'entities',
		],
		['memory_read_graph', {}, 'Ada'],
	])('gets the result of %s', { timeout: 40_000 }, async (name, args, expected) => {
		expect(await front.call(name, args)).toContain(expected);
	});

	it('reads a resource and gets a prompt', async () => {
		expect(await front.readResource('demo://resource/dynamic/text/1')).toContain('Resource 1');
		expect(await front.getPrompt('everything_simple-prompt')).toContain('simple prompt');
	});
});

describe('the command line of the Inspector', () => {
	it.each([
		['everything_echo', ['message=hello'], 'Echo: hello'],
		['everything_trigger-long-running-operation', ['duration=2', 'steps=2'], 'Steps: 2'],
		['memory_read_graph', [], 'entities'],
	])('gets the result of %s', { timeout: 60_000 }, async (tool, args, expected) => {
		const script = join(root, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');
		const words = [
			'--cli',
			listening.url,
			'--transport',
			'http',
			'--method',
			'tools/call',
			'--tool-name',
			tool,
		];
		const child = spawn(process.execPath, [script, ...words, ...args.flatMap((arg) => ['--tool-arg', arg])], {
			env,
			cwd: home,
		});
		let output = '';
		child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
		await new Promise((resolve) => child.once('close', resolve));
		expect(output).toContain(expected);
	});
});

describe('mcp-proxy', () => {
	it('serves over HTTP what is behind holdfast proxy', { timeout: 60_000 }, async () => {
		const port = await freePort();
		const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
		const child = spawn(
			process.execPath,
			[
				join(root, 'node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs'),
				...['--host', '127.0.0.1', '--server', 'stream', '--port', `${port}`, '--'],
				...[process.execPath, join(root, 'src/cli/holdfast.ts'), 'proxy', '--quiet'],
				...['--', process.execPath, everything, 'stdio'],
			],
			{ env: { ...env, XDG_STATE_HOME: home }, stdio: 'ignore' },
		);
		const ended = new Promise((resolve) => child.once('exit', resolve));
		try {
			const url = new URL(`http://127.0.0.1:${port}/mcp`);
			const front = await eventually(
				() => olderFront(new StreamableHTTPClientTransport(url)).catch(() => undefined),
				'mcp-proxy listens',
				30_000,
			);
			expect(await front.call('echo', { message: 'through both' })).toContain('Echo: through both');
			expect(await front.call('trigger-long-running-operation', { duration: 2, steps: 2 })).toContain(
				'Steps: 2',
			);
			await front.close();
		} finally {
			child.kill('SIGTERM');
			await ended;
		}
	});
});
