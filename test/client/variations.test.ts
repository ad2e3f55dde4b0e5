/** What servers may and may not say: legal variations work, illegal ones end with a clear typed error, none hangs. */
import { DetailedTaskV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';
import { describe, expect, it } from 'vitest';
import { DROP, done, FakeServer, form, Refusal, task } from './fake-server.ts';

type Json = Record<string, unknown>;

/** The end of a call whose `n`th poll is answered with `get(n)`. */
async function play(get: (n: number) => unknown, call?: () => unknown): Promise<unknown> {
	const fake = new FakeServer();
	fake.get = get;
	if (call) fake.call = call;
	const tasks = await fake.taskClient({ onInput: async () => ({ action: 'accept' }) });
	const result = tasks.callTool({ name: 'slow' }).catch((error: unknown) => error);
	await fake.clock.advance(120_000);
	expect(tasks.watching).toBe(0);
	expect(fake.clock.pending).toBe(0);
	expect(fake.violations).toEqual([]);
	return result;
}

describe('a legal server may', () => {
	const LEGAL: Record<string, { get: (n: number) => Json; call?: () => Json }> = {
		'send fields that nobody knows': {
			get: (n) => (n < 3 ? task({ 'x-load': 0.5, nested: { a: [1] } }) : done('ok', { future: true })),
			call: () => ({ resultType: 'task', ...task({ extra: 1 }), _meta: { a: 1 } }),
		},
		'change its interval, its ttl and its words with every answer': {
			get: (n) =>
				n < 5
					? task({ pollIntervalMs: n * 700, ttlMs: n % 2 ? null : n * 100_000, statusMessage: `${n}` })
					: done('ok'),
		},
		'leave pollIntervalMs and statusMessage out': {
			get: (n) => (n < 3 ? task({ pollIntervalMs: undefined }) : done('ok', { pollIntervalMs: undefined })),
			call: () => ({ resultType: 'task', ...task({ pollIntervalMs: undefined }) }),
		},
		'inline a result without resultType (T21)': {
			get: () => task({ status: 'completed', result: { content: [{ type: 'text', text: 'ok' }] } }),
		},
		'jump from working to the end, over questions': {
			get: () => done('ok'),
		},
		'go back and forth between working and asking (T24)': {
			get: (n) =>
				n > 6
					? done('ok')
					: n % 2
						? task()
						: task({ status: 'input_required', inputRequests: { [`k${n}`]: form() } }),
		},
		'ask an empty set of questions': {
			get: (n) => (n < 3 ? task({ status: 'input_required', inputRequests: {} }) : done('ok')),
		},
		'have ended before the handle is given': {
			get: () => done('ok'),
			call: () => ({ resultType: 'task', ...task({ status: 'completed' }) }),
		},
		'ask for input before the handle is given': {
			get: (n) => (n < 3 ? task({ status: 'input_required', inputRequests: { k: form() } }) : done('ok')),
			call: () => ({ resultType: 'task', ...task({ status: 'input_required' }) }),
		},
		'have a clock that is wrong by years (T73)': {
			get: (n) =>
				n < 3
					? task({ createdAt: '1999-01-01T00:00:00Z', lastUpdatedAt: '1999-01-01T00:00:00Z' })
					: done('ok', { createdAt: '2099-01-01T00:00:00Z', lastUpdatedAt: '2099-01-01T00:00:00Z' }),
			call: () => ({
				resultType: 'task',
				...task({ createdAt: '1999-01-01T00:00:00Z', lastUpdatedAt: '1999-01-01T00:00:00Z' }),
			}),
		},
		'use an id of any characters': {
			get: (n) => (n < 3 ? task({ taskId: 'å/?#\n "' }) : done('ok', { taskId: 'å/?#\n "' })),
			call: () => ({ resultType: 'task', ...task({ taskId: 'å/?#\n "' }) }),
		},
	};

	for (const [what, { get, call }] of Object.entries(LEGAL))
		it(what, async () => {
			for (let n = 1; n < 9; n++) expect(DetailedTaskV2Schema.safeParse(get(n)).error).toBeUndefined();
			expect(await play(get, call)).toMatchObject({ content: [{ text: 'ok' }] });
		});

	it('answer at once, without a task (T03, C1)', async () => {
		const answer = { resultType: 'complete', content: [{ type: 'text', text: 'at once' }] };
		expect(
			await play(
				() => DROP,
				() => answer,
			),
		).toMatchObject({ content: [{ text: 'at once' }] });
	});

	it('end with isError, which is a result and no error (T22, C3)', async () => {
		const result = {
			content: [{ type: 'text', text: 'it broke' }],
			isError: true,
			structuredContent: { a: 1 },
		};
		expect(await play(() => task({ status: 'completed', result }))).toEqual(result);
	});

	it('fail with a JSON-RPC error, which is thrown as callTool throws it (T21)', async () => {
		const error = { code: -32050, message: 'no disk', data: { free: 0 } };
		expect(await play(() => task({ status: 'failed', error }))).toMatchObject({
			name: 'ProtocolError',
			...error,
		});
	});

	it('cancel the task by itself', async () => {
		const got = await play(() => task({ status: 'cancelled', statusMessage: 'By an operator' }));
		expect(got).toMatchObject({ code: 'TASK_CANCELLED', message: 'By an operator' });
	});

	it('notify before it acknowledges, late, twice, and for tasks that nobody asked about (T50)', async () => {
		const fake = new FakeServer();
		fake.get = () => task({ lastUpdatedAt: '2026-07-28T00:00:05Z', statusMessage: 'polled' });
		fake.listen = (taskIds, id) => {
			fake.notify(task({ lastUpdatedAt: '2026-07-28T00:00:09Z', statusMessage: 'early' }), id);
			return taskIds;
		};
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(2_000);
		expect(execution.state?.statusMessage).toBe('early');
		fake.notify(task({ lastUpdatedAt: '2026-07-28T00:00:01Z', statusMessage: 'stale' }));
		fake.notify(task({ taskId: 'stranger' }));
		fake.notify({ nonsense: true });
		await fake.clock.advance(0);
		expect(execution.state?.statusMessage).toBe('early');
		for (let index = 0; index < 3; index++) fake.notify(done('ok'));
		await fake.clock.advance(0);
		expect(await execution.result()).toMatchObject({ content: [{ text: 'ok' }] });
	});
});

describe('an illegal server', () => {
	const BROKEN: Record<string, (n: number) => unknown> = {
		'answers with another task': () => task({ taskId: 'other' }),
		'leaves the status out': () => task({ status: undefined }),
		'uses a status of an old draft': () => task({ status: 'running' }),
		'completes without a result': () => task({ status: 'completed' }),
		'completes with a result that is a task': () =>
			task({ status: 'completed', result: { resultType: 'task', ...task() } }),
		'completes with a result of a future type': () =>
			task({ status: 'completed', result: { resultType: 'future' } }),
		'fails without an error': () => task({ status: 'failed' }),
		'fails with an error without a code': () => task({ status: 'failed', error: { message: 'x' } }),
		'needs input and does not say which': () => task({ status: 'input_required' }),
		'asks with a method that is no question': () =>
			task({ status: 'input_required', inputRequests: { k: { method: 'tools/call', params: {} } } }),
		'asks a form without a schema': () =>
			task({
				status: 'input_required',
				inputRequests: { k: { method: 'elicitation/create', params: { message: 'x' } } },
			}),
		'gives a ttl that is no number': () => task({ ttlMs: '5m' }),
		'gives a negative interval': () => task({ pollIntervalMs: -1 }),
		'gives no dates': () => task({ createdAt: undefined }),
		'nests the task': () => ({ task: task() }),
		'answers tasks/get with an unknown result type': () => ({ ...task(), resultType: 'future' }),
		'answers tasks/get without a result type (T20)': () => ({ ...task(), resultType: undefined }),
		'answers tasks/get with a new task (T03)': () => ({ ...task(), resultType: 'task' }),
		'gives no ttl': () => task({ ttlMs: undefined }),
		'gives a message that is no text': () => task({ statusMessage: { en: 'working' } }),
		'asks a list of questions instead of keys': () =>
			task({ status: 'input_required', inputRequests: [form()] }),
		'does not know tasks/get': () => new Refusal(-32601),
		'refuses the version': () => new Refusal(-32020),
	};

	for (const [what, get] of Object.entries(BROKEN))
		it(`that ${what} is told so`, async () => {
			expect(await play(get)).toMatchObject({ code: 'INVALID_RESPONSE' });
		});

	it('that says more than belongs to the status is understood all the same', async () => {
		const got = await play((n) =>
			n < 3
				? task({ result: { content: [] }, error: { code: 1, message: 'x' }, inputRequests: { k: form() } })
				: done('ok', { error: { code: 1, message: 'x' } }),
		);
		expect(got).toMatchObject({ content: [{ text: 'ok' }] });
	});

	it('that answers answers and cancels with something else than an acknowledgement is asked what became of the task', async () => {
		const fake = new FakeServer();
		fake.update = () => ({ ...task(), resultType: 'future' });
		fake.cancel = () => ({ ...task(), resultType: 'future' });
		fake.get = () => task({ status: 'input_required', inputRequests: { k: form() } });
		const tasks = await fake.taskClient({ onInput: async () => ({ action: 'accept' }) });
		const answered = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(20_000);
		expect(answered.outcome).toMatchObject({ kind: 'lost', code: 'INVALID_RESPONSE' });

		fake.get = () => task();
		const other = await tasks.startTool({ name: 'slow' });
		await expect(Promise.all([other.cancel(), fake.clock.advance(20_000)])).rejects.toMatchObject({
			kind: 'invalid',
		});
		fake.get = () => done('went on');
		await fake.clock.advance(5_000);
		expect(await other.result()).toMatchObject({ content: [{ text: 'went on' }] });
	});

	it('that speaks nonsense once is given a second chance', async () => {
		expect(await play((n) => (n === 1 ? { task: task() } : done('ok')))).toMatchObject({
			content: [{ text: 'ok' }],
		});
	});

	it('that answers tools/call with an unknown result type is told so by the SDK (T03)', async () => {
		expect(
			await play(
				() => DROP,
				() => ({ resultType: 'future', content: [] }),
			),
		).toMatchObject({
			code: 'UNSUPPORTED_RESULT_TYPE',
		});
	});

	it('that answers tools/call with a task without an id is told so (T10)', async () => {
		for (const taskId of [undefined, '', 7, 'x'.repeat(2_000)])
			expect(
				await play(
					() => DROP,
					() => ({ resultType: 'task', ...task({ taskId }) }),
				),
			).toMatchObject({
				code: 'INVALID_RESPONSE',
			});
	});

	it('that completes with something that is no tool result is told so, as by callTool', async () => {
		const got = await play(() => task({ status: 'completed', result: { content: 'no list' } }));
		expect(got).toMatchObject({ code: 'INVALID_RESULT' });
	});

	it('cannot reopen a task that has ended (T24)', async () => {
		const fake = new FakeServer();
		fake.get = () => done('first');
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(1_000);
		fake.notify(done('second'));
		fake.notify(task({ status: 'failed', error: { code: 1, message: 'x' } }));
		expect(await execution.result()).toMatchObject({ content: [{ text: 'first' }] });
		expect(await execution.result()).toMatchObject({ content: [{ text: 'first' }] });
	});
});
