/** F19: a resumed stream that drops before anything new came is resumed without its place, and the answer is lost. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { TaskClient, taskFetch } from '../../src/client/index.ts';
import { FaultProxy } from '../client/fault-proxy.ts';
import { newClient, Requests, serveHttp, text } from '../client/server.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

interface Wire {
	readonly id?: number;
	readonly method: string;
}

/** How a resumed stream is cut at once. */
type Cut = 'ended' | 'reset';

/**
 * A server of 2025-11-25 whose stream for a call breaks after event 7, three more times when it is resumed there, and
 * then brings the result as event 9.
 */
async function brokenStreams(cut: Cut) {
	/** The `Last-Event-ID` of each stream that was asked for after the call. */
	const places: (string | undefined)[] = [];
	let calls = 0;
	let callId: number | undefined;
	const json = (response: ServerResponse, body: unknown): void => {
		response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' });
		response.end(JSON.stringify(body));
	};
	const stream = (response: ServerResponse, events: string): void => {
		response.writeHead(200, { 'content-type': 'text/event-stream' });
		response.write(events);
		if (cut === 'reset') setImmediate(() => response.destroy());
		else response.end();
	};
	const answer = ({ id, method }: Wire, response: ServerResponse): void => {
		if (method === 'initialize') {
			const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
			return json(response, {
				jsonrpc: '2.0',
				id,
				result: { ...result, serverInfo: { name: 'cut', version: '1' } },
			});
		}
		if (method !== 'tools/call') return void response.writeHead(202).end();
		calls += 1;
		callId = id;
		stream(response, 'retry: 10\n\nid: 7\ndata:\n\n');
	};
	const server = createServer(async (request, response) => {
		if (request.method === 'POST') {
			let body = '';
			for await (const chunk of request) body += String(chunk);
			return answer(JSON.parse(body) as Wire, response);
		}
		if (callId === undefined) return void response.writeHead(405).end();
		const place = request.headers['last-event-id'];
		places.push(typeof place === 'string' ? place : undefined);
		if (places.length <= 3) return stream(response, ': here\n\n');
		const message = { jsonrpc: '2.0', id: callId, result: text('late') };
		response.writeHead(200, { 'content-type': 'text/event-stream' });
		response.end(place === '7' ? `id: 9\ndata: ${JSON.stringify(message)}\n\n` : '');
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	ends.push(() => {
		server.closeAllConnections();
		server.close();
	});
	const { port } = server.address() as AddressInfo;
	return { url: new URL(`http://127.0.0.1:${port}/mcp`), places, calls: () => calls };
}

describe('a stream of a call that is resumed and cut before anything new', () => {
	it.each([['ended'], ['reset']] as const)(
		'and %s, is resumed from the same place each time (F19)',
		async (cut) => {
			const { url, places, calls } = await brokenStreams(cut);
			const client = new Client({ name: 'host', version: '1' });
			await client.connect(new StreamableHTTPClientTransport(url, { fetch: taskFetch() }));
			ends.push(() => client.close());
			const tasks = new TaskClient(client);
			ends.push(() => tasks.close());
			const results: unknown[] = [];
			await tasks.callTool({ name: 'work' }).then(({ content }) => results.push(content));
			expect(places).toEqual(['7', '7', '7', '7']);
			expect(results).toEqual([text('late').content]);
			expect(calls()).toBe(1);
		},
	);
});

describe('a task of 2026-07-28', () => {
	it('is asked for by tasks/get when connections are cut, because nothing is resumed there (F19)', async () => {
		let starts = 0;
		const server = await serveHttp((mcp, tasks) =>
			mcp.registerTool(
				'work',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
					starts += 1;
					await task.sleep('a while', 700);
					return text('done');
				}),
			),
		);
		ends.push(() => server.close(0));
		const proxy = await FaultProxy.open(Number(new URL(server.url).port));
		ends.push(() => proxy.close());
		const requests = new Requests();
		const resumed: unknown[] = [];
		const spy: typeof fetch = (url, init) => {
			if (new Headers(init?.headers).has('last-event-id')) resumed.push(init?.method);
			return requests.fetch(url, init);
		};
		const client = newClient();
		await client.connect(new StreamableHTTPClientTransport(new URL(proxy.url), { fetch: taskFetch(spy) }));
		ends.push(() => client.close());
		const tasks = new TaskClient(client);
		ends.push(() => tasks.close());
		const execution = await tasks.startTool({ name: 'work' });
		proxy.cut();
		expect((await execution.result()).content).toEqual(text('done').content);
		expect(requests.counts['tasks/get']).toBeGreaterThan(0);
		expect(resumed).toEqual([]);
		expect(starts).toBeGreaterThan(0);
	});
});
