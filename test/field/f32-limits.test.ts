/** F32: side maps outlive their tasks, and one client pins unlimited memory for all. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { memory } from '../../src/backend/memory/index.ts';
import { Engine, type TaskCall } from '../../src/engine/engine.ts';
import { DEFAULT_LIMITS, DEFAULT_TIMING, SILENT } from '../../src/engine/options.ts';
import { NO_INPUT } from '../../src/protocol/capabilities.ts';
import { checkOptions } from '../../src/server/tool-options.ts';
import { FakeClock, settle } from '../../src/testing/index.ts';
import { SUBJECT_TOKENS } from './auth.ts';
import { heapBytes } from '../support/memory.ts';
import { eventually, type HttpRig, type RigOptions, serveHttp, text } from './harness.ts';
import { errorOf, type Wire } from './wire.ts';

const TASKS = 100_000;
const BATCH = 200;
const HOUR_MS = 3_600_000;
const options: RigOptions = {
	http: { auth: SUBJECT_TOKENS },
	tools: (server, tasks) => {
		const inputSchema = z.object({});
		const policy = { syncWindowMs: 0, retentionMs: 24 * HOUR_MS };
		server.registerTool(
			'quick',
			{ inputSchema },
			tasks.handler(policy, () => text('done')),
		);
		server.registerTool(
			'slow',
			{ inputSchema },
			tasks.handler(policy, async (_args, task) => {
				await task.sleep('long', HOUR_MS);
				return text('done');
			}),
		);
	},
};

async function completed(wire: Wire, taskId: string): Promise<void> {
	await eventually(async () => (await wire.get(taskId)).status === 'completed', 'the end');
}

/** A task that has ended, from one caller. */
async function quick(rig: HttpRig, token: string): Promise<string> {
	const wire = rig.connect({ token });
	const taskId = await wire.start('quick');
	await completed(wire, taskId);
	return taskId;
}

describe('F32: what is left of tasks', () => {
	it(`F32: after ${TASKS} tasks with a TTL of 1 s nothing is left: no record, no timer of theirs, no memory`, {
		timeout: 120_000,
	}, async () => {
		const clock = new FakeClock();
		const backend = memory({ time: clock });
		const engine = new Engine({
			...{ backend, clock, limits: DEFAULT_LIMITS, timing: DEFAULT_TIMING, log: SILENT },
			execute: async () => ({ kind: 'returned', result: { content: [] } }),
			...{ concurrency: BATCH, owner: 'test', isOwnerGone: () => false },
		});
		await backend.open();
		engine.start();
		await settle();
		const call: TaskCall = {
			...{ tool: 'quick', arguments: { text: 'x'.repeat(100) }, prepared: null, principal: 'ada' },
			...{ policy: checkOptions({ retentionMs: 1_000 }).policyFor({}, true), inputCapabilities: NO_INPUT },
			...{ idempotencyKey: null, trace: {}, keepFirst: true, joinsRunning: false, enter: null },
		};
		const idleTimers = clock.pending;
		const batch = async (): Promise<void> => {
			for (let made = 0; made < BATCH; made++) await engine.call(call);
			await settle();
			// One sweeper for all of them: the number of timers does not grow with the number of tasks.
			expect(clock.pending).toBeLessThanOrEqual(idleTimers + 1);
			await clock.advance(2_500);
		};
		// Twice, so that what is loaded and cached once is not counted.
		for (let made = 0; made < 5_000; made += BATCH) await batch();
		const base = heapBytes();
		for (let made = 0; made < TASKS; made += BATCH) await batch();
		expect(heapBytes() - base).toBeLessThan(4 * 1024 * 1024);
		expect(engine.running).toBe(0);
		expect(clock.pending).toBeLessThanOrEqual(idleTimers);
		const left = await engine.list({ principal: null, statuses: null, limit: 10, cursor: null });
		expect(left.records).toEqual([]);
		await engine.stop(0);
		expect(clock.pending).toBe(0);
	});

	it('F32: of a caller that keeps ending tasks with a TTL of 24 h, the oldest make room; nobody else’s do', async () => {
		const rig = await serveHttp({ ...options, limits: { maxKeptPerPrincipal: 5 } });
		const bobs = await quick(rig, 'bob');
		const adas: string[] = [];
		for (let made = 0; made < 20; made++) adas.push(await quick(rig, 'ada'));
		const records = await rig.records();
		expect(records.filter(({ principal }) => principal.includes('ada')).length).toBeLessThanOrEqual(6);
		const wire = rig.connect({ token: 'ada' });
		expect((await wire.get(adas.at(-1) ?? '')).status).toBe('completed');
		await expect(wire.get(adas[0] ?? '')).rejects.toThrow('Task not found');
		expect((await rig.connect({ token: 'bob' }).get(bobs)).status).toBe('completed');
	});

	it('F32: a caller at its limit of open tasks is told so, others are not affected, and an ended task makes room', async () => {
		const rig = await serveHttp({ ...options, limits: { maxOpenPerPrincipal: 3 } });
		const ada = rig.connect({ token: 'ada' });
		const open = [await ada.start('slow'), await ada.start('slow'), await ada.start('slow')];
		const before = await rig.records();
		const error = errorOf(await ada.beginCall('slow').reply);
		expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(/3 open tasks.*limit/) });
		expect(await rig.records()).toHaveLength(before.length);
		await eventually(() => rig.server.engine.running === 3 || undefined, 'no handler of a refused call');
		expect(await rig.connect({ token: 'bob' }).start('slow')).toBeTypeOf('string');
		await ada.cancel(open[0] ?? '');
		await eventually(async () => (await ada.get(open[0] ?? '')).status === 'cancelled');
		expect(await ada.start('slow')).toBeTypeOf('string');
	});

	it('F32: a server at its limit refuses more with a clear error, and goes on serving what it has', async () => {
		const rig = await serveHttp({ ...options, limits: { maxOpen: 4 } });
		const ids: [Wire, string][] = [];
		for (const token of ['a', 'b', 'c', 'd']) {
			const wire = rig.connect({ token });
			ids.push([wire, await wire.start('slow')]);
		}
		const error = errorOf(await rig.connect({ token: 'e' }).beginCall('slow').reply);
		expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(/4 open tasks.*limit/) });
		for (const [wire, taskId] of ids) expect((await wire.get(taskId)).status).toBe('working');
	});

	it('F32: a cancel in the very moment of the creation leaves no working ghost', async () => {
		const rig = await serveHttp({ ...options, limits: { maxOpenPerPrincipal: 50 }, concurrency: 4 });
		const ada = rig.connect({ token: 'ada' });
		const ids: string[] = [];
		for (let made = 0; made < 40; made++)
			ids.push(
				await ada.start(made % 2 === 0 ? 'slow' : 'quick').then(async (taskId) => {
					await Promise.all([ada.cancel(taskId), ada.cancel(taskId)]);
					return taskId;
				}),
			);
		await eventually(async () => {
			await rig.clock.advance(100);
			return (await rig.records()).every(({ status }) => status === 'cancelled' || status === 'completed');
		}, 'the end of all');
		expect(rig.server.engine.running).toBe(0);
		for (const { status, lease, runAtMs } of await rig.records()) {
			expect(['cancelled', 'completed']).toContain(status);
			expect({ lease, runAtMs }).toEqual({ lease: null, runAtMs: null });
		}
		// None of them counts against the caller any more.
		for (let made = 0; made < 50; made++) await ada.start('slow');
		expect(ids).toHaveLength(40);
	});

	it('F32: a burst of calls at the limit creates exactly as many tasks as the limit allows', async () => {
		const rig = await serveHttp({ ...options, limits: { maxOpenPerPrincipal: 10 } });
		const ada = rig.connect({ token: 'ada' });
		const replies = await Promise.all(Array.from({ length: 40 }, () => ada.beginCall('slow').reply));
		expect(replies.filter(({ text: body }) => body.includes('"resultType":"task"'))).toHaveLength(10);
		expect(await rig.records()).toHaveLength(10);
	});
});
