import { describe, expect, it } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import { pollIntervalMs } from '../../src/engine/poll-interval.ts';
import type { TaskContext } from '../../src/engine/task-context.ts';
import { FakeClock, settle } from '../../src/testing/fake-clock.ts';
import {
	DAY_MS,
	gate,
	HOUR_MS,
	later,
	MINUTE_MS,
	question,
	SECOND_MS,
	SLOW_BEAT,
	startRig,
	text,
	withStore,
	YES,
} from '../support/engine-rig.ts';

describe('progress', () => {
	/** A task whose handler is a test's to speak through, and how often the store was written. */
	async function speaking() {
		const clock = new FakeClock();
		const backend = memory({ time: clock });
		let writes = 0;
		let task: TaskContext | undefined;
		const done = gate();
		const rig = startRig({
			clock,
			backend: withStore(backend, (store) => ({
				replace: (record, durability) => {
					writes += 1;
					return store.replace(record, durability);
				},
			})),
			tools: {
				build: async (context) => {
					task = context;
					await done.opened;
					return text('built');
				},
			},
		});
		const taskId = await rig.begin('build');
		if (!task) throw new Error('the handler was not entered');
		return { rig, taskId, task, done, writes: () => writes };
	}

	it('of a thousand notes a second costs a few writes, and the last one is what is stored', async () => {
		const { rig, taskId, task, writes } = await speaking();
		for (let index = 1; index <= 1_000; index++) {
			task.progress({ progress: index, total: 1_000, message: `note ${index}` });
			await rig.clock.advance(1);
		}
		expect(writes()).toBeLessThanOrEqual(4);
		await rig.clock.advance(500);
		const record = await rig.stored(taskId);
		expect(record.progress).toEqual({ progress: 1_000, total: 1_000, message: 'note 1000' });
		expect(record.statusMessage).toBe('note 1000 (100%)');
	});

	it('is stored at once when it was silent before', async () => {
		const { rig, taskId, task } = await speaking();
		task.progress('compiling');
		await settle();
		expect((await rig.stored(taskId)).statusMessage).toBe('compiling');
	});

	it('says how much and how long where numbers allow it', async () => {
		const { rig, taskId, task } = await speaking();
		await rig.clock.advance(10 * SECOND_MS);
		task.progress({ progress: 1, total: 4, message: 'compiling' });
		await settle();
		expect((await rig.stored(taskId)).statusMessage).toBe('compiling (25%, about 30 s left)');
	});

	it('keeps the words when only numbers are said, until other words are said', async () => {
		const { rig, taskId, task } = await speaking();
		task.progress({ progress: 1, total: 4, message: 'compiling' });
		await rig.clock.advance(SECOND_MS);
		task.progress('linking');
		await rig.clock.advance(SECOND_MS);
		const { progress } = await rig.stored(taskId);
		expect(progress).toEqual({ progress: 1, total: 4, message: 'linking' });
	});

	it('with numbers that are none is taken without them', async () => {
		const { rig, taskId, task } = await speaking();
		task.progress({ progress: Number.NaN, total: Infinity, message: 'odd' });
		await settle();
		expect((await rig.stored(taskId)).progress).toEqual({ progress: 0, message: 'odd' });
	});

	it('never fails the handler, also when the store does', async () => {
		const clock = new FakeClock();
		const rig = startRig({
			clock,
			backend: withStore(memory({ time: clock }), (store) => ({
				replace: (record, durability) =>
					durability === 'normal'
						? Promise.reject(new Error('disk full'))
						: store.replace(record, durability),
			})),
			tools: {
				build: async (task) => {
					task.progress('compiling');
					await settle();
					return text('built');
				},
			},
		});
		const taskId = await rig.begin('build');
		await settle();
		expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('after the handler ended is not recorded', async () => {
		const { rig, taskId, task, done } = await speaking();
		done.open();
		await settle();
		task.progress('too late');
		await rig.clock.advance(SECOND_MS);
		expect(await rig.stored(taskId)).toMatchObject({
			status: 'completed',
			statusMessage: 'Done',
			progress: null,
		});
	});
});

describe('the poll interval', () => {
	const shape = async (estimateMs: number | null, ages: readonly number[]) => {
		const rig = startRig({ tools: { build: () => gate().opened.then(() => text('never')) } });
		const record = await rig.stored(await rig.begin('build', { estimateMs }));
		return ages.map((ageMs) => pollIntervalMs(record, record.createdAtMs + ageMs));
	};

	it('is short while the task is young and long later, within its bounds', async () => {
		expect(await shape(null, [0, 5_000, 20_000, 50_000, MINUTE_MS * 10, DAY_MS])).toEqual([
			1_000, 1_000, 2_000, 5_000, 10_000, 10_000,
		]);
	});

	it('is short again around the time at which the task should end', async () => {
		const minutes = [0, 5, 9.75, 10, 10.25, 15].map((minute) => minute * MINUTE_MS);
		expect(await shape(10 * MINUTE_MS, minutes)).toEqual([1_000, 10_000, 1_500, 1_000, 1_500, 10_000]);
	});

	it('is a whole number and short for a task that has ended', async () => {
		const rig = startRig({ tools: { build: () => text('built') } });
		const record = await rig.stored(await rig.begin('build', { minPollIntervalMs: 250 }));
		expect(pollIntervalMs(record, record.createdAtMs + HOUR_MS)).toBe(250);
	});
});

describe('the time that a task is kept', () => {
	it('T25: grows while the task lives, so that it never vanishes under a client', async () => {
		const done = gate();
		const rig = startRig({
			timing: SLOW_BEAT,
			tools: { build: () => done.opened.then(() => text('built')) },
		});
		const taskId = await rig.begin('build', { retentionMs: DAY_MS });
		const first = (await rig.stored(taskId)).ttlMs;
		await rig.clock.advance(5 * DAY_MS);
		const record = await rig.engine.get(taskId, 'alice');
		expect(record.ttlMs).toBeGreaterThan(first);
		expect(record.createdAtMs + record.ttlMs).toBeGreaterThan(rig.clock.nowMs());
		done.open();
		await settle();
		const ended = await rig.stored(taskId);
		expect(ended.createdAtMs + ended.ttlMs).toBe(ended.lastUpdatedAtMs + DAY_MS);
	});

	it('T25: grows also while the task is parked', async () => {
		const rig = startRig({
			timing: SLOW_BEAT,
			tools: {
				build: async (task) => {
					await task.sleep('month', 30 * DAY_MS);
					return text('built');
				},
			},
		});
		const taskId = await rig.begin('build', { retentionMs: DAY_MS });
		for (let day = 1; day < 30; day++) {
			await rig.clock.advance(DAY_MS);
			const record = await rig.engine.get(taskId, 'alice');
			expect(record.createdAtMs + record.ttlMs).toBeGreaterThan(rig.clock.nowMs());
		}
		await rig.clock.advance(DAY_MS);
		expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('T25: lasts a whole retention time after the end, then the task is unknown and forgotten', async () => {
		const rig = startRig({ tools: { build: () => text('built') }, timing: SLOW_BEAT });
		const taskId = await rig.begin('build', { retentionMs: HOUR_MS });
		await rig.clock.advance(HOUR_MS - 1);
		expect((await rig.engine.get(taskId, 'alice')).status).toBe('completed');
		await rig.clock.advance(1);
		await expect(rig.engine.get(taskId, 'alice')).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
		await rig.clock.advance(6 * HOUR_MS);
		expect(await rig.backend.store.get(taskId)).toBeUndefined();
	});
});

describe('a question', () => {
	const asks = {
		build: async (task: TaskContext) => {
			const { action } = await task.requireInput('approve', question('Go?'));
			return text(action);
		},
	};

	it('fails the task when no answer comes in time, parked or not', async () => {
		for (const parkAfterMs of [SECOND_MS, HOUR_MS]) {
			const rig = startRig({ tools: asks });
			const taskId = await rig.begin('build', { inputWaitMs: MINUTE_MS, parkAfterMs });
			await rig.clock.advance(MINUTE_MS - SECOND_MS);
			expect((await rig.stored(taskId)).status).toBe('input_required');
			await rig.clock.advance(4 * SECOND_MS);
			expect(await rig.stored(taskId)).toMatchObject({
				status: 'failed',
				openInputs: {},
				error: { code: -32603, data: { reason: 'input_expired' } },
			});
			expect(rig.engine.running).toBe(0);
		}
	});

	it('keeps its task until the deadline and beyond', async () => {
		const rig = startRig({ tools: asks });
		const taskId = await rig.begin('build', { inputWaitMs: 7 * DAY_MS, retentionMs: HOUR_MS });
		await later(rig, HOUR_MS);
		await later(rig, 6 * DAY_MS);
		await rig.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect((await rig.stored(taskId)).result).toEqual(text('accept'));
	});
});
