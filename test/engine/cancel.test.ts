import { describe, expect, it } from 'vitest';
import { settle } from '../../src/testing/fake-clock.ts';
import { gate, HOUR_MS, later, question, SECOND_MS, startRig, text, YES } from '../support/engine-rig.ts';

/** Resolves when the signal fires. */
const stopped = (signal: AbortSignal): Promise<void> =>
	new Promise((resolve) => {
		signal.addEventListener('abort', () => resolve());
	});

describe('T40: a cancel', () => {
	it('fires the signal of the handler at once, and the task is cancelled when the handler stops', async () => {
		const cleaned = gate();
		const rig = startRig({
			tools: {
				build: async ({ signal }) => {
					await stopped(signal);
					await cleaned.opened;
					throw signal.reason;
				},
			},
		});
		const taskId = await rig.begin('build');
		await rig.engine.cancel(taskId, 'alice');
		await settle();
		const stopping = await rig.stored(taskId);
		expect(stopping).toMatchObject({ status: 'working' });
		expect(stopping.statusMessage).toContain('cancel was requested');
		cleaned.open();
		await settle();
		expect(await rig.stored(taskId)).toMatchObject({ status: 'cancelled', result: null, error: null });
	});

	it('loses to work that got there first', async () => {
		const rig = startRig({
			tools: {
				build: async ({ signal }) => {
					await stopped(signal);
					return text('finished anyway');
				},
			},
		});
		const taskId = await rig.begin('build');
		await rig.engine.cancel(taskId, 'alice');
		await settle();
		expect(await rig.stored(taskId)).toMatchObject({ status: 'completed', result: text('finished anyway') });
	});

	it('abandons a handler that ignores it for longer than the grace time', async () => {
		const stubborn = gate();
		const rig = startRig({ tools: { build: () => stubborn.opened.then(() => text('too late')) } });
		const taskId = await rig.begin('build');
		await rig.engine.cancel(taskId, 'alice');
		await rig.clock.advance(5 * SECOND_MS - 1);
		expect((await rig.stored(taskId)).status).toBe('working');
		await rig.clock.advance(1);
		const cancelled = await rig.stored(taskId);
		expect(cancelled.status).toBe('cancelled');
		expect(rig.engine.running).toBe(0);
		stubborn.open();
		await settle();
		expect(await rig.stored(taskId)).toEqual(cancelled);
	});

	it('reaches a handler in another process', async () => {
		const rig = startRig({
			tools: {
				build: async ({ signal }) => {
					await stopped(signal);
					throw signal.reason;
				},
			},
		});
		const taskId = await rig.begin('build');
		const other = rig.second({ concurrency: 0 });
		await other.engine.cancel(taskId, 'alice');
		await settle();
		expect((await rig.stored(taskId)).status).toBe('cancelled');
	});

	it('reaches a handler in another process also when nobody was told of it', async () => {
		const rig = startRig({
			tools: {
				build: async ({ signal }) => {
					await stopped(signal);
					throw signal.reason;
				},
			},
		});
		const taskId = await rig.begin('build');
		const silent = { ...rig.backend, signals: { publish: () => {}, subscribe: () => () => {} } };
		await rig.second({ backend: silent, concurrency: 0 }).engine.cancel(taskId, 'alice');
		await rig.clock.advance(3 * SECOND_MS);
		expect((await rig.stored(taskId)).status).toBe('cancelled');
	});

	it('ends a parked task at once', async () => {
		let entered = 0;
		const rig = startRig({
			tools: {
				build: async (task) => {
					entered += 1;
					await task.requireInput('approve', question('Go?'));
					return text('built');
				},
			},
		});
		const taskId = await rig.begin('build');
		await later(rig, HOUR_MS);
		await rig.clock.advance(SECOND_MS);
		await rig.engine.cancel(taskId, 'alice');
		expect(await rig.stored(taskId)).toMatchObject({ status: 'cancelled', openInputs: {} });
		await rig.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect(entered).toBe(1);
	});

	it('ends a queued task at once, and its handler is never entered', async () => {
		const entered: string[] = [];
		const first = gate();
		const rig = startRig({
			concurrency: 1,
			tools: {
				build: async ({ taskId }) => {
					entered.push(taskId);
					await first.opened;
					return text('built');
				},
			},
		});
		const running = await rig.begin('build');
		const queued = await rig.begin('build');
		await rig.engine.cancel(queued, 'alice');
		expect((await rig.stored(queued)).status).toBe('cancelled');
		first.open();
		await rig.clock.advance(SECOND_MS);
		expect(entered).toEqual([running]);
	});

	it('ends a wait of the handler by rejecting it', async () => {
		const seen: string[] = [];
		const rig = startRig({
			tools: {
				build: async (task) => {
					try {
						await task.sleep('long', HOUR_MS);
					} catch (error) {
						seen.push((error as Error).name);
						throw error;
					}
					return text('built');
				},
			},
		});
		const taskId = await rig.begin('build');
		await rig.engine.cancel(taskId, 'alice');
		await settle();
		expect(seen).toEqual(['AbortError']);
		expect((await rig.stored(taskId)).status).toBe('cancelled');
	});

	it('does nothing to a task that has ended, however often it comes', async () => {
		const rig = startRig({ tools: { build: () => text('built') } });
		const taskId = await rig.begin('build');
		const before = await rig.stored(taskId);
		await rig.engine.cancel(taskId, 'alice');
		await rig.engine.cancel(taskId, 'alice');
		expect(await rig.stored(taskId)).toEqual(before);
	});

	it('counts once when it comes many times', async () => {
		const rig = startRig({ tools: { build: () => gate().opened.then(() => text('never')) } });
		const taskId = await rig.begin('build');
		await rig.engine.cancel(taskId, 'alice');
		const once = await rig.stored(taskId);
		await rig.engine.cancel(taskId, 'alice');
		expect(await rig.stored(taskId)).toEqual(once);
	});

	it('during the wait between two retries ends the task', async () => {
		const rig = startRig({
			tools: {
				build: () => {
					throw new Error('flaky');
				},
			},
		});
		const taskId = await rig.begin('build', {
			retry: { maxAttempts: 9, backoffMs: HOUR_MS, maxBackoffMs: HOUR_MS },
		});
		await rig.engine.cancel(taskId, 'alice');
		expect(await rig.stored(taskId)).toMatchObject({ status: 'cancelled', runAtMs: null });
	});
});
