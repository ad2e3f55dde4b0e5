/** F16: a server is restarted and knows its sessions no more. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonObject } from '../../src/protocol/json.ts';
import { gatewayOverHttp } from './rig.ts';
import { eventually } from '../field/harness.ts';
import { errorOf, stringOf, textOf } from '../field/wire.ts';

/** A server of 2025-11-25 with sessions, which can be restarted. */
async function sessionServer() {
	let generation = 1;
	const sessions = new Set<string>();
	const seen: string[] = [];
	const open = new Set<ServerResponse>();
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on('data', (chunk: Buffer) => chunks.push(chunk));
		request.on('end', () => {
			if (request.method !== 'POST') return void response.writeHead(405).end();
			const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as {
				id?: number;
				method: string;
				params: JsonObject;
			};
			const session = request.headers['mcp-session-id'];
			const answer = (result: object, headers: Record<string, string> = {}): void => {
				response.writeHead(200, { 'content-type': 'application/json', ...headers });
				response.end(JSON.stringify({ jsonrpc: '2.0', id, ...result }));
			};
			if (method === 'server/discover') return void response.writeHead(400).end('no session');
			if (method === 'initialize') {
				const sessionId = `s${generation}-${sessions.size}`;
				sessions.add(sessionId);
				seen.push(`initialize ${generation}`);
				const result = {
					protocolVersion: '2025-11-25',
					capabilities: { tools: {} },
					serverInfo: { name: 'sessions', version: '1' },
				};
				return answer({ result }, { 'mcp-session-id': sessionId });
			}
			if (typeof session !== 'string' || !sessions.has(session)) {
				seen.push(`404 ${method}`);
				return void response.writeHead(404).end('Session not found');
			}
			if (id === undefined) return void response.writeHead(202).end();
			if (method === 'tools/list')
				return answer({
					result: { tools: ['quick', 'slow'].map((name) => ({ name, inputSchema: { type: 'object' } })) },
				});
			seen.push(`${stringOf(params['name'])} ${generation}`);
			if (params['name'] === 'quick')
				return answer({ result: { content: [{ type: 'text', text: `quick ${generation}` }] } });
			response.writeHead(200, { 'content-type': 'text/event-stream' });
			response.flushHeaders();
			open.add(response);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	onTestFinished(() => {
		server.closeAllConnections();
		server.close();
	});
	return {
		target: {
			kind: 'http' as const,
			url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
			headers: {},
		},
		seen,
		restart: () => {
			generation += 1;
			sessions.clear();
			server.closeAllConnections();
			open.clear();
		},
	};
}

describe('F16: a server that is restarted loses its sessions', () => {
	it('F16: all calls that wait share one new session, and each is sent once more', async () => {
		const server = await sessionServer();
		const rig = await gatewayOverHttp({ upstreams: { server } });
		const host = rig.connect();
		expect(textOf(await host.call('quick'))).toBe('quick 1');
		server.restart();
		const calls = await Promise.all(Array.from({ length: 10 }, () => host.call('quick')));
		expect(calls.map(textOf)).toEqual(Array.from({ length: 10 }, () => 'quick 2'));
		expect(server.seen.filter((entry) => entry === 'initialize 2')).toHaveLength(1);
		expect(server.seen.filter((entry) => entry === 'quick 2')).toHaveLength(10);
	});

	it('F16: a call that was in flight ends with an unknown outcome and is not sent again', async () => {
		const server = await sessionServer();
		const rig = await gatewayOverHttp({ upstreams: { server } });
		const host = rig.connect();
		const slow = host.beginCall('slow');
		await eventually(() => server.seen.includes('slow 1'), 'the call');
		server.restart();
		expect(textOf(await host.call('quick'))).toBe('quick 2');
		const reply = await slow.reply;
		const error =
			reply.message['error'] === undefined
				? await eventually(async () => {
						const taskId = (reply.message['result'] as JsonObject)['taskId'] as string;
						const task = await host.get(taskId);
						return task.status === 'failed' && task.error;
					}, 'the end of the call')
				: errorOf(reply);
		expect(error.message).toContain('is unknown');
		expect(server.seen.filter((entry) => entry.startsWith('slow'))).toEqual(['slow 1']);
	});
});
