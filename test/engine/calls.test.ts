import { describe, expect, it } from 'vitest';
import { isHoldfastError } from '../../src/errors.ts';
import { settle } from '../../src/testing/fake-clock.ts';
import { DAY_MS, gate, MINUTE_MS, POLICY, startRig, text } from '../support/engine-rig.ts';

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
	promise.then(
		() => 'no error',
		(error: unknown) => (isHoldfastError(error) ? error.code : error),
	);

describe('an idempotency key', () => {
	it('joins the task that the first call began, and the handler is entered once', async () => {
		let entered = 0;
		const done = gate();
		const rig = startRig({
			tools: {
				build: async () => {
					entered += 1;
					await done.opened;
					return text('built');
				},
			},
		});
		const key = { idempotencyKey: 'k', arguments: { a: 1, b: { c: 2, d: 3 } } };
		const first = await rig.call('build', key);
		const second = await rig.call('build', { ...key, arguments: { b: { d: 3, c: 2 }, a: 1 } });
		expect(second.taskId).toBe(first.taskId);
		expect(second.joined).toBe(true);
		done.open();
		await settle();
		expect((await second.current()).result).toEqual(text('built'));
		expect(entered).toBe(1);
	});

	it('joins also after the task has ended, and in another process', async () => {
		const rig = startRig({ tools: { build: () => text('built') } });
		const first = await rig.call('build', { idempotencyKey: 'k' });
		await settle();
		const again = await rig.second().call('build', { idempotencyKey: 'k' });
		expect(again.taskId).toBe(first.taskId);
		expect((await again.current()).result).toEqual(text('built'));
	});

	it('with other arguments or another tool is refused', async () => {
		const rig = startRig({ tools: { build: () => text('built'), test: () => text('tested') } });
		await rig.call('build', { idempotencyKey: 'k', arguments: { a: 1 } });
		const other = rig.call('build', { idempotencyKey: 'k', arguments: { a: 2 } });
		expect(await codeOf(other)).toBe('IDEMPOTENCY_CONFLICT');
		const tool = rig.call('test', { idempotencyKey: 'k', arguments: { a: 1 } });
		expect(await codeOf(tool)).toBe('IDEMPOTENCY_CONFLICT');
	});

	it('of another principal is another key', async () => {
		const rig = startRig({ tools: { build: ({ principal }) => text(principal) } });
		const mine = await rig.call('build', { idempotencyKey: 'k' });
		const theirs = await rig.call('build', { idempotencyKey: 'k', principal: 'bob', arguments: { a: 2 } });
		expect(theirs.taskId).not.toBe(mine.taskId);
	});

	it('of calls that come at the same time begins one task', async () => {
		let entered = 0;
		const rig = startRig({
			tools: {
				build: () => {
					entered += 1;
					return text('built');
				},
			},
		});
		const calls = await Promise.all(
			Array.from({ length: 8 }, () => rig.call('build', { idempotencyKey: 'k' })),
		);
		await settle();
		expect(new Set(calls.map(({ taskId }) => taskId)).size).toBe(1);
		expect(entered).toBe(1);
	});

	it('is free again once its task was forgotten', async () => {
		const rig = startRig({ tools: { build: () => text('built') } });
		const first = await rig.call('build', { idempotencyKey: 'k' });
		await settle();
		rig.clock.jump(2 * DAY_MS);
		await rig.clock.advance(MINUTE_MS);
		const again = await rig.call('build', { idempotencyKey: 'k' });
		expect(again.taskId).not.toBe(first.taskId);
	});

	it('is free again as soon as its task is expired', async () => {
		const rig = startRig({ tools: { build: () => text('built') } });
		await rig.call('build', { idempotencyKey: 'k' });
		await settle();
		rig.clock.jump(2 * DAY_MS);
		const again = await rig.call('build', { idempotencyKey: 'k' });
		await settle();
		expect((await again.current()).status).toBe('completed');
	});
});

describe('limits', () => {
	const never = { build: () => gate().opened.then(() => text('never')) };

	it('refuse one more open task of a principal, and let others go on', async () => {
		const rig = startRig({ tools: never, limits: { maxOpenPerPrincipal: 2 } });
		await rig.begin('build');
		await rig.begin('build');
		expect(await codeOf(rig.call('build'))).toBe('TASK_LIMIT');
		expect(await codeOf(rig.call('build', { principal: 'bob' }))).toBe('no error');
	});

	it('refuse one more open task of all', async () => {
		const rig = startRig({ tools: never, limits: { maxOpen: 2 } });
		await rig.begin('build');
		await rig.begin('build', {}, { principal: 'bob' });
		expect(await codeOf(rig.call('build', { principal: 'carol' }))).toBe('TASK_LIMIT');
	});

	it('hold also for a call that is kept later', async () => {
		const rig = startRig({ tools: never, limits: { maxOpenPerPrincipal: 1 } });
		await rig.begin('build');
		const call = await rig.call('build', { keepFirst: false });
		expect(await codeOf(call.keep())).toBe('TASK_LIMIT');
		expect(call.kept).toBe(false);
	});

	it('give room again when a task ends', async () => {
		const rig = startRig({ tools: never, limits: { maxOpenPerPrincipal: 1 } });
		const taskId = await rig.begin('build');
		await rig.engine.cancel(taskId, 'alice');
		await rig.clock.advance(6_000);
		expect(await codeOf(rig.call('build'))).toBe('no error');
	});

	it('let the oldest ended tasks of the principal make room', async () => {
		const rig = startRig({ tools: { build: () => text('built') }, limits: { maxKeptPerPrincipal: 2 } });
		const theirs = await rig.begin('build', {}, { principal: 'bob' });
		const ids: string[] = [];
		for (let index = 0; index < 4; index++) ids.push(await rig.begin('build'));
		const kept = await Promise.all(
			ids.map(async (taskId) => (await rig.backend.store.get(taskId)) !== undefined),
		);
		// The last one was still open when room was made.
		expect(kept).toEqual([false, true, true, true]);
		expect((await rig.stored(theirs)).status).toBe('completed');
	});
});

describe('a call', () => {
	it('waits until its task is as wanted, or until it gives up', async () => {
		const done = gate();
		const rig = startRig({ tools: { build: () => done.opened.then(() => text('built')) } });
		const call = await rig.call('build', { keepFirst: false });
		const patience = call.until(({ status }) => status === 'completed', 1_000);
		await rig.clock.advance(1_000);
		expect(await patience).toBeUndefined();
		const gone = new AbortController();
		const left = call.until(({ status }) => status === 'completed', null, gone.signal);
		gone.abort();
		expect(await left).toBeUndefined();
		const seen = call.until(({ status }) => status === 'completed', null);
		done.open();
		expect((await seen)?.result).toEqual(text('built'));
	});

	it('sees the end of a task that another process runs, also when nobody tells', async () => {
		const done = gate();
		const rig = startRig({ tools: { build: () => done.opened.then(() => text('built')) }, concurrency: 1 });
		const deaf = rig.second({
			backend: { ...rig.backend, signals: { publish: () => {}, subscribe: () => () => {} } },
			concurrency: 0,
		});
		const call = await deaf.call('build');
		const seen = call.until(({ status }) => status === 'completed', null);
		await rig.clock.advance(3_000);
		done.open();
		await rig.clock.advance(3_000);
		expect((await seen)?.result).toEqual(text('built'));
	});

	it('that is kept carries over everything that was journalled and asked', async () => {
		const done = gate();
		let steps = 0;
		const rig = startRig({
			tools: {
				build: async (task) => {
					await task.step('first', () => {
						steps += 1;
						return steps;
					});
					await done.opened;
					return text('built');
				},
			},
		});
		const call = await rig.call('build', { keepFirst: false, policy: POLICY });
		await settle();
		expect(await rig.backend.store.get(call.taskId)).toBeUndefined();
		await call.keep();
		const stored = await rig.backend.store.load(call.taskId);
		expect(stored?.record).toMatchObject({ journalled: true, status: 'working' });
		expect(stored?.steps).toEqual([{ name: 'first', value: 1 }]);
		expect(stored?.record.lease?.expiresAtMs).toBe(rig.clock.nowMs() + 8_000);
		rig.crash();
		const next = rig.second();
		done.open();
		await next.clock.advance(10_000);
		expect((await next.stored(call.taskId)).result).toEqual(text('built'));
		expect(steps).toBe(1);
	});
});
