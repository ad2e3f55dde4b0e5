import { McpServer } from '@modelcontextprotocol/server';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { memory } from '../../src/backend/memory/index.ts';
import { HoldfastError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { createFetch, createTaskServer } from '../../src/server/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { SUBJECT_TOKENS } from '../field/auth.ts';
import { type Fixture, type FixtureOptions, overHttp, overStdio } from '../support/fixture-server.ts';
import {
	field,
	HttpSession,
	type LegacyOptions,
	type LegacyWire,
	StdioConnection,
} from '../support/legacy-wire.ts';
import { eventually } from '../support/wire.ts';

let fixture: Fixture;
const opened: HttpSession[] = [];

afterEach(async () => {
	for (const session of opened.splice(0)) session.close();
	await fixture?.close();
});

async function serve(options: FixtureOptions = {}): Promise<void> {
	fixture = await overHttp(options);
}

async function session(options: LegacyOptions = {}): Promise<HttpSession> {
	const one = await HttpSession.open(fixture.url ?? '', options);
	opened.push(one);
	return one;
}

/** A clock that the server, its engine and its store share. */
function onClock(clock: FakeClock, listen: FixtureOptions['listen'] = {}): FixtureOptions {
	return { backend: memory({ time: clock }), server: { clock }, listen };
}

const isQuestion = ({ method }: { readonly method?: unknown }): boolean => method === 'elicitation/create';

describe('a session', () => {
	it('is opened by an initialize, under an id that nobody can guess', async () => {
		await serve();
		const [one, other] = [await session(), await session()];
		for (const { sessionId } of [one, other]) expect(sessionId).toMatch(/^[0-9a-f]{40}$/);
		expect(one.sessionId).not.toBe(other.sessionId);
		expect((await one.call('plain')).result).toMatchObject({ content: [{ text: 'plain' }] });
	});

	it('ends with DELETE, and its tasks go on', async () => {
		await serve();
		const one = await session();
		const { taskId } = await one.start('slow', { gate: 'a' });
		expect((await one.delete()).status).toBe(200);
		expect((await one.listen()).status).toBe(404);
		fixture.control.open('a', 'went on');
		const { result } = await (await session()).request('tasks/result', { taskId });
		expect(result).toMatchObject({ content: [{ text: 'went on' }] });
	});

	it('ends when nobody has used it for its idle time, but not while a stream of it is open', async () => {
		const clock = new FakeClock();
		await serve(onClock(clock, { sessions: { sessionIdleMs: 60_000 } }));
		const [idle, listening] = [await session(), await session()];
		const stream = await listening.listen();
		await eventually(() => expect(idle.streams.length).toBe(2));
		await Promise.all(idle.streams.map(({ ended }) => ended));
		await clock.advance(100_000);
		expect((await idle.listen()).status).toBe(404);
		expect((await listening.call('plain')).result).toMatchObject({ content: [{ text: 'plain' }] });
		stream.cut();
		await clock.advance(30_000);
		expect((await listening.listen()).status).toBe(200);
	});

	it('is closed soon where nothing came after the initialize, as probes and health checks leave it', async () => {
		const clock = new FakeClock();
		await serve(onClock(clock));
		const [probe, client] = [await session(), await session()];
		const hello = {
			method: 'initialize',
			params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'n', version: '1' } },
		};
		const response = await fetch(probe.url, {
			method: 'POST',
			headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
			body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...hello }),
		});
		await response.text();
		await clock.advance(100_000);
		const left = response.headers.get('mcp-session-id') ?? '';
		const headers = client.headers({ 'mcp-session-id': left });
		expect((await fetch(client.url, { headers })).status).toBe(404);
		expect((await client.listen()).status).toBe(200);
	});

	it.each([
		['cancel', 'cancelled'],
		['continue', 'working'],
	])(
		'whose client is gone for a minute has its held calls ended where onDisconnect is %s',
		async (policy, status) => {
			const clock = new FakeClock();
			await serve(onClock(clock));
			const one = await session();
			const stream = await one.open({
				jsonrpc: '2.0',
				id: 'held',
				method: 'tools/call',
				params: { name: `on_disconnect_${policy}`, arguments: { gate: 'never' } },
			});
			await eventually(() => expect(fixture.control.log).toContain('held never'));
			await clock.advance(2_000);
			const statuses = async (): Promise<readonly string[]> => {
				const query = { principal: null, statuses: null, limit: 9, cursor: null };
				return (await fixture.backend.store.list(query)).records.map((record) => record.status);
			};
			stream.cut();
			await stream.ended;
			await clock.advance(30_000);
			expect(await statuses()).toEqual(['working']);
			// The server learns of the cut in real time, its own time stands still meanwhile.
			for (let minutes = 0; minutes < 5; minutes++) await clock.advance(60_000);
			await eventually(async () => {
				await clock.advance(1_000);
				expect(await statuses()).toEqual([status]);
			});
		},
	);

	it('is refused with the limit in words, for one principal and for all', async () => {
		const sessions = { maxSessionsPerPrincipal: 2, maxSessions: 3 };
		await serve({ listen: { auth: SUBJECT_TOKENS, sessions } });
		const first = await session({ token: 'ada' });
		await session({ token: 'ada' });
		await expect(session({ token: 'ada' })).rejects.toThrow('You have 2 sessions, which is the limit');
		await session({ token: 'bob' });
		await expect(session({ token: 'eve' })).rejects.toThrow('The server has 3 sessions');
		await first.delete();
		await session({ token: 'eve' });
	});

	it('has its streams ended when the server stops', async () => {
		await serve();
		const one = await session();
		const stream = await one.listen();
		const call = one.open({
			jsonrpc: '2.0',
			id: 'held',
			method: 'tools/call',
			params: { name: 'slow', arguments: { gate: 'never' } },
		});
		await eventually(() => expect(fixture.control.log).toContain('slow never'));
		await fixture.closeServer();
		await Promise.all([stream.ended, (await call).ended]);
	});

	it('is refused for a token that says of nobody whose tasks they are', async () => {
		const principal = (): string => {
			throw new HoldfastError('NO_PRINCIPAL', 'no subject');
		};
		await serve({ server: { principal } });
		await expect(session()).rejects.toThrow('HTTP 500');
	});

	it('is bounded by options that must be whole numbers', async () => {
		await serve();
		for (const sessions of [{ maxSessions: 0 }, { sessionIdleMs: -1 }, { maxEvents: 1.5 }])
			expect(() => createFetch(fixture.server, { sessions })).toThrow('must be an integer, 1 or more');
	});

	it('can be turned off: then every request is served by itself', async () => {
		await serve({ listen: { sessions: false } });
		const one = await session();
		expect(one.sessionId).toBeUndefined();
		expect((await one.call('plain')).result).toMatchObject({ content: [{ text: 'plain' }] });
	});

	it('serves 2026-07-28 beside it on the same endpoint', async () => {
		await serve();
		const one = await session();
		const { result } = await fixture.wire.request('tools/call', { name: 'structured', arguments: {} });
		expect(result).toMatchObject({ resultType: 'task' });
		expect((await one.call('structured')).result).toMatchObject({ structuredContent: { answer: 42 } });
	});
});

describe('a broken stream of a held call', () => {
	it('is resumed after the last event that came, and the result comes once', async () => {
		await serve();
		const one = await session();
		const stream = await one.open({
			jsonrpc: '2.0',
			id: 'held',
			method: 'tools/call',
			params: { name: 'noisy', arguments: { gate: 'a' }, _meta: { progressToken: 'p' } },
		});
		await one.until(({ method }) => method === 'notifications/progress');
		stream.cut();
		await stream.ended;
		fixture.control.open('a', 'kept for you');
		let resumed = await one.listen(stream.lastEventId());
		// Cut again before anything came: the next attempt names the same event.
		resumed.cut();
		await resumed.ended;
		resumed = await one.listen(resumed.lastEventId() ?? stream.lastEventId());
		const answer = await one.until(({ id }) => id === 'held');
		expect(answer).toMatchObject({ result: { content: [{ text: 'kept for you' }] } });
		await resumed.ended;
		expect(one.received.filter(({ id }) => id === 'held')).toHaveLength(1);
	});

	it('is not offered any more once its answer came, so that clients which resume every stream stop', async () => {
		await serve();
		const one = await session();
		const stream = await one.open({
			jsonrpc: '2.0',
			id: 'quick',
			method: 'tools/call',
			params: { name: 'structured', arguments: {} },
		});
		await stream.ended;
		const resumed = await one.listen(stream.lastEventId());
		expect(resumed.status).toBe(405);
		expect(one.received.filter(({ id }) => id === 'quick')).toHaveLength(1);
		expect((await one.listen()).status).toBe(200);
	});

	it('does not stop the task, whose result is found under its idempotency key', async () => {
		await serve();
		const one = await session();
		const more = { _meta: { 'holdfast/idempotencyKey': 'k' } };
		const stream = await one.open({
			jsonrpc: '2.0',
			id: 'held',
			method: 'tools/call',
			params: { name: 'slow', arguments: { gate: 'a' }, ...more },
		});
		await eventually(() => expect(fixture.control.log).toEqual(['slow a']));
		stream.cut();
		fixture.control.open('a', 'still there');
		const { result } = await (await session()).call('slow', { gate: 'a' }, more);
		expect(result).toMatchObject({ content: [{ text: 'still there' }] });
		expect(fixture.control.log).toEqual(['slow a']);
	});
});

const routes: readonly [string, (options?: LegacyOptions) => Promise<LegacyWire>][] = [
	[
		'HTTP',
		async (options) => {
			await serve();
			return session(options);
		},
	],
	[
		'stdio',
		async (options) => {
			const pipe = await overStdio();
			fixture = pipe;
			return StdioConnection.open(pipe.pair, options);
		},
	],
];

describe.each(routes)('a call that is held for a client of an earlier version over %s', (route, open) => {
	it.each(['2025-11-25', '2025-06-18'])(
		'asks what its task asks, each question once (%s)',
		async (version) => {
			const wire = await open({ version });
			const { result } = await wire.call('asking', { keys: ['red', 'blue'] });
			expect(wire.asked.map((asked) => field(asked, 'params', 'message'))).toEqual(['red?', 'blue?']);
			for (const asked of wire.asked) {
				expect(field(asked, 'params', 'mode')).toBe(version === '2025-11-25' ? 'form' : undefined);
				expect(field(asked, 'params', '_meta')).toBeUndefined();
			}
			expect(field(result, 'content', '0', 'text')).toContain('blue?');
			expect(result).not.toHaveProperty('resultType');
		},
	);

	it('asks before the task exists what the tool wants to know first', async () => {
		const wire = await open();
		const { result } = await wire.call('prepared');
		expect(wire.asked.map((asked) => field(asked, 'params', 'message'))).toEqual(['Who?', 'Who again?']);
		expect(field(result, 'content', '0', 'text')).toContain('Who again?');
	});

	it('sends a question to a page only where the version has such questions', async () => {
		const wire = await open({ version: '2025-06-18' });
		const { result } = await wire.call('asking_by_url');
		expect(result).toMatchObject({ isError: true });
		expect(field(result, 'content', '0', 'text')).toContain(
			'cannot be asked (elicitation/create in url mode)',
		);
		expect(wire.asked).toEqual([]);
	});

	it('sends a question to a page with an id of its own on 2025-11-25', async () => {
		const wire = await open();
		await wire.call('asking_by_url');
		expect(wire.asked).toMatchObject([
			{ params: { mode: 'url', url: 'https://example.com/consent', elicitationId: expect.any(String) } },
		]);
	});

	it('declines honestly where the client declared nothing', async () => {
		const wire = await open({ capabilities: {} });
		const { result } = await wire.call('asking', { keys: ['red'] });
		expect(field(result, 'content', '0', 'text')).toContain('the client that called it cannot be asked');
	});

	it('ends with what the client said where it could not answer', async () => {
		const wire = await open({ answer: () => ({ error: { code: -32603, message: 'the form broke' } }) });
		const { result } = await wire.call('asking', { keys: ['red'] });
		expect(result).toMatchObject({ isError: true });
		expect(field(result, 'content', '0', 'text')).toMatch(
			/could not answer elicitation\/create: .*the form broke/,
		);
		await eventually(async () => {
			const query = { principal: null, statuses: null, limit: 9, cursor: null };
			const { records } = await fixture.backend.store.list(query);
			expect(records).toMatchObject([{ status: 'cancelled' }]);
		});
	});

	it('has progress with the token of the call, which may be 0', async () => {
		const wire = await open();
		const call = wire.call('noisy', { gate: 'a' }, { _meta: { progressToken: 0 } });
		const note = await wire.until(({ method }) => method === 'notifications/progress');
		expect(note['params']).toMatchObject({ progressToken: 0, progress: 1, message: 'one of four' });
		fixture.control.open('a');
		await call;
	});

	it('stops its task when the client cancels the call, and takes its question back', async () => {
		const wire = await open({ answer: () => undefined });
		void wire.request('tools/call', { name: 'asking', arguments: { keys: ['red'] } }, 'held');
		await wire.until(isQuestion);
		await wire.notify('notifications/cancelled', { requestId: 'held' });
		await wire.until(({ method }) => method === 'notifications/cancelled');
		await eventually(async () => {
			const query = { principal: null, statuses: null, limit: 9, cursor: null };
			const { records } = await fixture.backend.store.list(query);
			expect(records).toMatchObject([{ status: 'cancelled' }]);
		});
	});
});

describe('a process on stdio', () => {
	it('serves the version that its client comes to after it asked which there are', async () => {
		const pipe = await overStdio();
		fixture = pipe;
		const discovered = await pipe.wire.request('server/discover');
		expect(discovered.result).toMatchObject({
			capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } },
		});
		const wire = await StdioConnection.open(pipe.pair);
		const { taskId } = await wire.start('structured');
		expect((await wire.request('tasks/result', { taskId })).result).toMatchObject({
			structuredContent: { answer: 42 },
		});
	});

	it('finds the task of a client of another version in its store', async () => {
		const backend = memory();
		const earlier = await overStdio({ backend });
		fixture = earlier;
		const legacy = await StdioConnection.open(earlier.pair);
		const { taskId } = await legacy.start('structured');
		await legacy.request('tasks/result', { taskId });
		await earlier.close();
		const later = await overStdio({ backend });
		fixture = later;
		const { result } = await later.wire.request('tasks/get', { taskId });
		expect(result).toMatchObject({ status: 'completed', result: { structuredContent: { answer: 42 } } });
	});
});

describe('the response to a held call in a session', () => {
	it('is kept alive with comments while nothing is said', async () => {
		const server = createTaskServer({
			backend: memory(),
			server: (tasks) => {
				const mcp = new McpServer({ name: 'silent', version: '1' });
				const silent = tasks.handler({}, () => new Promise<never>(() => {}));
				mcp.registerTool('silent', { inputSchema: z.object({}) }, silent);
				return mcp;
			},
		});
		await server.start();
		vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
		const endpoint = createFetch(server);
		try {
			const post = (message: JsonObject, id?: string): Promise<Response> =>
				endpoint.fetch(
					new Request('http://fixture.invalid/mcp', {
						method: 'POST',
						headers: {
							'content-type': 'application/json',
							accept: 'application/json, text/event-stream',
							...(id !== undefined && { 'mcp-session-id': id }),
						},
						body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
					}),
				);
			const clientInfo = { name: 'n', version: '1' };
			const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
			const hello = await post({ method: 'initialize', params });
			const held = await post(
				{ method: 'tools/call', params: { name: 'silent', arguments: {} } },
				hello.headers.get('mcp-session-id') ?? '',
			);
			const reader = held.body?.getReader();
			await reader?.read();
			for (let comment = 0; comment < 3; comment++) {
				vi.advanceTimersByTime(10_000);
				expect(new TextDecoder().decode((await reader?.read())?.value)).toBe(': keepalive\n\n');
			}
		} finally {
			vi.useRealTimers();
			await server.stop(0);
			await endpoint.close();
		}
	});

	it.each(['2025-11-25', '2025-06-18'])('begins at once, with a first byte (%s)', async (version) => {
		await serve();
		const one = await session({ version });
		const response = await fetch(one.url, {
			method: 'POST',
			headers: one.headers(),
			body: JSON.stringify({
				jsonrpc: '2.0',
				id: 1,
				method: 'tools/call',
				params: { name: 'slow', arguments: { gate: 'a' } },
			}),
		});
		const reader = response.body?.getReader();
		expect((await reader?.read())?.value?.length).toBeGreaterThan(0);
		fixture.control.open('a');
		await reader?.cancel();
	});
});
