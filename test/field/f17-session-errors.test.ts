/** F17: an unknown session is answered with 503, so that no client ever begins a new one. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { HoldfastError } from '../../src/errors.ts';
import { HttpSession } from '../support/legacy-wire.ts';
import { SUBJECT_TOKENS } from './auth.ts';
import { type HttpRig, type RigOptions, serveHttp, text } from './harness.ts';

const OPTIONS: RigOptions = {
	http: { auth: SUBJECT_TOKENS, sessions: { sessionIdleMs: 60_000 } },
	tools: (server, tasks) => {
		server.registerTool(
			'work',
			{ inputSchema: z.object({}) },
			tasks.handler({ syncWindowMs: 0 }, () => text('done')),
		);
	},
};

const MESSAGES = [
	['POST', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'work', arguments: {} } }],
	['POST', { jsonrpc: '2.0', method: 'notifications/initialized' }],
	['GET', undefined],
	['DELETE', undefined],
] as const;

/** Status, headers that matter and body of each kind of request under a session id. */
async function answersTo(rig: HttpRig, session: HttpSession, id: string): Promise<unknown[]> {
	return Promise.all(
		MESSAGES.map(async ([method, body]) => {
			const response = await fetch(rig.url, {
				method,
				headers: session.headers({ 'mcp-session-id': id }),
				...(body && { body: JSON.stringify(body) }),
			});
			return [response.status, response.headers.get('retry-after'), await response.text()];
		}),
	);
}

const NOT_FOUND = [
	404,
	null,
	'{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}',
];

describe('F17: what a client is told of a session that is not there', () => {
	it('F17: unknown, expired and foreign ids are 404 with the same body, for every kind of request', async () => {
		const rig = await serveHttp(OPTIONS);
		const expired = await HttpSession.open(rig.url, { token: 'ada' });
		await Promise.all(expired.streams.map(({ ended }) => ended));
		await rig.clock.advance(100_000);
		const foreign = await HttpSession.open(rig.url, { token: 'bob' });
		const own = await HttpSession.open(rig.url, { token: 'ada' });
		const ids = [
			'f'.repeat(40),
			'1868a90c-0000-4000-8000-000000000000',
			expired.sessionId,
			foreign.sessionId,
		];
		for (const id of ids)
			expect(await answersTo(rig, own, id ?? ''), id).toEqual(MESSAGES.map(() => NOT_FOUND));
		expect((await own.call('work')).result).toMatchObject(text('done'));
		expect((await foreign.call('work')).result).toMatchObject(text('done'));
	});

	it.each([
		['empty', ''],
		['with a blank in it', 'a b'],
		['of other letters', 'sitzung-\u00fc'],
		['too long', 'a'.repeat(257)],
	])('F17: an id that is malformed (%s) is 400', async (_what, id) => {
		const rig = await serveHttp(OPTIONS);
		const own = await HttpSession.open(rig.url, { token: 'ada' });
		for (const answer of await answersTo(rig, own, id))
			expect(answer).toEqual([400, null, expect.stringContaining('Mcp-Session-Id must be 1 to 256')]);
	});

	it('F17: 503 with Retry-After is for a store that is down, and for nothing else', async () => {
		const rig = await serveHttp(OPTIONS);
		const own = await HttpSession.open(rig.url, { token: 'ada' });
		const get = rig.backend.store.get.bind(rig.backend.store);
		rig.backend.store.get = () => Promise.reject(new HoldfastError('STORE_UNUSABLE', 'gone'));
		const down = [503, '5', expect.stringContaining('The store does not answer')];
		expect((await answersTo(rig, own, own.sessionId ?? ''))[0]).toEqual(down);
		expect(await answersTo(rig, own, 'f'.repeat(40))).toEqual(MESSAGES.map(() => down));
		await expect(HttpSession.open(rig.url, { token: 'ada' })).rejects.toThrow('HTTP 503');
		rig.backend.store.get = get;
		expect((await HttpSession.open(rig.url, { token: 'ada' })).sessionId).toBeDefined();
	});

	it('F17: a server that was started again tells its old sessions 404, and the tasks are there', async () => {
		const first = await serveHttp(OPTIONS);
		const before = await HttpSession.open(first.url, { token: 'ada' });
		const { taskId } = await before.start('work');
		await first.stop();
		const { backend, clock } = first;
		const second = await serveHttp({ ...OPTIONS, backend: () => backend, clock });
		const after = await HttpSession.open(second.url, { token: 'ada' });
		const [answer] = await answersTo(second, after, before.sessionId ?? '');
		expect(answer).toEqual(NOT_FOUND);
		expect((await after.request('tasks/result', { taskId })).result).toMatchObject(text('done'));
	});
});
