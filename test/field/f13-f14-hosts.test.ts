/** F13, F14 and F17: hosts that wait in the foreground, that do not know Tasks, and that have lost their session. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { TASKS_EXTENSION } from '../../src/protocol/names.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { childUpstream, complete, gatewayOverHttp, rawServer, tool } from '../gateway/rig.ts';
import { HttpSession } from '../support/legacy-wire.ts';
import { eventually } from './harness.ts';
import { stringOf, textOf } from './wire.ts';

/** A server that makes every call a task, and says what it does. */
async function taskServer() {
	let status = 'working';
	let statusMessage = 'The first of ten steps';
	const now = new Date().toISOString();
	const task = (): JsonObject => ({
		...{ taskId: '1', status, statusMessage, createdAt: now, lastUpdatedAt: now, ttlMs: 600_000 },
		pollIntervalMs: 1_000,
		...(status === 'completed' && { result: complete('built') }),
	});
	const { target } = await rawServer(
		[tool('build')],
		{
			'tools/call': ({ result }) => result({ resultType: 'task', ...task() }),
			'tasks/get': ({ result }) => result({ resultType: 'complete', ...task() }),
		},
		{ extensions: { [TASKS_EXTENSION]: {} } },
	);
	return {
		target,
		say: (words: string) => {
			statusMessage = words;
		},
		end: () => {
			status = 'completed';
		},
	};
}

async function legacyHost(url: string, version: string, capabilities: JsonObject = {}): Promise<HttpSession> {
	const session = await HttpSession.open(url, { version, capabilities });
	onTestFinished(() => session.close());
	return session;
}

describe('F13: a host polls in the foreground and shows nothing', () => {
	it('F13: the task says what it does from the first second on, in the words of the server', async () => {
		const server = await taskServer();
		const rig = await gatewayOverHttp({ upstreams: { server } });
		const host = rig.connect();
		const created = await host.call('build');
		expect(created['statusMessage']).toBeTypeOf('string');
		const taskId = stringOf(created['taskId']);
		await eventually(
			async () => (await host.get(taskId)).statusMessage === 'The first of ten steps',
			'words',
		);
		server.say('The second of ten steps');
		await eventually(
			async () => (await host.get(taskId)).statusMessage === 'The second of ten steps',
			'words',
		);
	});

	it('F13: a call that is done soon is answered at once, without a task', async () => {
		const rig = await gatewayOverHttp({ upstreams: { child: childUpstream() } });
		expect((await rig.connect().call('echo'))['resultType']).not.toBe('task');
		expect(
			(await rig.gateway.server.engine.list({ principal: null, statuses: null, limit: 9, cursor: null }))
				.records,
		).toEqual([]);
	});
});

describe('F14: a server with Tasks behind hosts that know them or not', () => {
	it('F14: a host of 2025-06-18 gets the plain result', async () => {
		const server = await taskServer();
		const rig = await gatewayOverHttp({ upstreams: { server } });
		const host = await legacyHost(rig.url, '2025-06-18');
		const call = host.call('build');
		await eventually(() => rig.gateway.server.running === 1, 'the call');
		server.end();
		const { result, error } = await call;
		expect(error).toBeUndefined();
		expect(textOf(result)).toBe('built');
		expect(result).not.toHaveProperty('taskId');
	});

	it('F14: a host of 2025-11-25 that asks for a task gets one in its own form', async () => {
		const server = await taskServer();
		const rig = await gatewayOverHttp({ upstreams: { server } });
		const host = await legacyHost(rig.url, '2025-11-25', { tasks: { list: {}, cancel: {} } });
		const { taskId, status } = await host.start('build');
		expect(status).toBe('working');
		expect(taskId).not.toBe('1');
		server.end();
		await eventually(async () => (await host.get(taskId))['status'] === 'completed', 'the end');
		const { result } = await host.request('tasks/result', { taskId });
		expect(textOf(result)).toBe('built');
	});

	it('F14: a host of 2026-07-28 that declares nothing waits, and is told after its budget how to wait on', async () => {
		const server = await taskServer();
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => 1_200 });
		const host = rig.connect({});
		const answer = await host.call('build');
		expect(answer['resultType']).not.toBe('task');
		const [, taskId = ''] = /task_id: (\S+)/.exec(textOf(answer)) ?? [];
		server.end();
		expect(textOf(await host.call('await_task', { task_id: taskId }))).toBe('built');
	});

	it('F14: the same program may declare Tasks on one request and not on the next', async () => {
		const server = await taskServer();
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => 1_200 });
		expect((await rig.connect().call('build'))['resultType']).toBe('task');
		expect((await rig.connect({}).call('build'))['resultType']).not.toBe('task');
		expect((await rig.connect().call('build'))['resultType']).toBe('task');
	});
});

describe('F17: a host comes back to the gateway with a session that is not there', () => {
	it('F17: an unknown session is 404, so that the host begins a new one', async () => {
		const rig = await gatewayOverHttp({ upstreams: { child: childUpstream() } });
		const first = await legacyHost(rig.url, '2025-06-18');
		const headers = {
			'content-type': 'application/json',
			accept: 'application/json, text/event-stream',
			'mcp-protocol-version': '2025-06-18',
		};
		const ask = (session: string): Promise<Response> =>
			fetch(rig.url, {
				method: 'POST',
				headers: { ...headers, 'mcp-session-id': session },
				body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
			});
		const unknown = first.sessionId?.replace(/[0-9a-f]/g, (digit) => (digit === '0' ? '1' : '0')) ?? '';
		expect((await ask(unknown)).status).toBe(404);
		expect((await ask(first.sessionId ?? '')).status).toBe(200);
	});
});
