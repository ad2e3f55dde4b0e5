/** F29: a client gives up without a word, and the work goes on for nobody. */
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { TaskContext } from '../../src/server/index.ts';
import {
	advanceUntil,
	eventually,
	type RigOptions,
	serveHttp,
	serveStdio,
	settledFlag,
	text,
} from './harness.ts';
import { callParams } from './wire.ts';

const CALLS = 100;
const GRACE_MS = 5_000;

interface Work {
	/** Signals of the handlers that were entered. */
	readonly signals: AbortSignal[];
	readonly stopped: () => number;
	readonly options: RigOptions;
}

function work(onDisconnect: 'continue' | 'cancel', support: 'optional' | 'forbidden' = 'optional'): Work {
	const signals: AbortSignal[] = [];
	let stopped = 0;
	const enter = (task: TaskContext): void => void signals.push(task.signal);
	const tools: RigOptions['tools'] = (server, tasks) => {
		server.registerTool(
			'query',
			{ inputSchema: z.object({}) },
			tasks.handler({ onDisconnect, support, cancelGraceMs: GRACE_MS }, async (_args, task) => {
				enter(task);
				try {
					for (;;) {
						task.signal.throwIfAborted();
						await turn();
					}
				} finally {
					stopped += 1;
				}
			}),
		);
		server.registerTool(
			'stuck',
			{ inputSchema: z.object({}) },
			tasks.handler({ onDisconnect, support, cancelGraceMs: GRACE_MS }, async (_args, task) => {
				enter(task);
				await new Promise(() => {});
				return text('never');
			}),
		);
	};
	return { signals, stopped: () => stopped, options: { tools, concurrency: CALLS } };
}

describe('F29: calls that nobody waits for', () => {
	it(`F29: when a host drops ${CALLS} calls, the signal fires in all of them and each handler stops in one step`, async () => {
		const { signals, stopped, options } = work('cancel');
		const rig = await serveHttp(options);
		const plain = rig.connect({ capabilities: {} });
		const calls = Array.from({ length: CALLS }, () => plain.beginCall('query'));
		await eventually(() => signals.length === CALLS || undefined, 'all handlers');
		expect(rig.server.engine.running).toBe(CALLS);
		for (const call of calls) call.cut();
		await eventually(() => signals.every((signal) => signal.aborted) || undefined, 'the signals');
		await eventually(() => stopped() === CALLS || undefined, 'the handlers');
		await eventually(() => rig.server.engine.running === 0 || undefined, 'free slots');
		const statuses = (await rig.records()).map(({ status }) => status);
		expect(statuses.filter((status) => status !== 'cancelled')).toEqual([]);
	});

	it('F29: a handler that ignores its signal is named and abandoned after its grace time, and its slot is free', async () => {
		const { signals, options } = work('cancel');
		const rig = await serveHttp({ ...options, concurrency: 2 });
		const plain = rig.connect({ capabilities: {} });
		const calls = [plain.beginCall('stuck'), plain.beginCall('stuck')];
		await eventually(() => signals.length === 2 || undefined, 'the handlers');
		for (const call of calls) call.cut();
		await eventually(() => signals.every((signal) => signal.aborted) || undefined, 'the signals');
		expect(rig.server.engine.running).toBe(2);
		await rig.clock.advance(GRACE_MS);
		await eventually(() => rig.server.engine.running === 0 || undefined, 'free slots');
		expect((await rig.records()).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
		const named = rig.complaints.filter(({ message }) => message.includes('ignores its signal'));
		expect(named.map(({ facts }) => facts['tool'])).toEqual(['stuck', 'stuck']);
		const next = rig.wire.start('query');
		await advanceUntil(rig.clock, settledFlag(next));
		expect((await rig.wire.get(await next)).status).toBe('working');
	});

	it('F29: a handler that ignores tasks/cancel is abandoned as well, and what it does later changes nothing', async () => {
		const late = Promise.withResolvers<void>();
		let context: TaskContext | undefined;
		const rig = await serveHttp({
			tools: (server, tasks) => {
				server.registerTool(
					'stubborn',
					{ inputSchema: z.object({}) },
					tasks.handler({ syncWindowMs: 0, cancelGraceMs: GRACE_MS }, async (_args, task) => {
						context = task;
						await late.promise;
						task.progress('still here');
						await task.step('late', () => 1).catch(() => {});
						return text('late');
					}),
				);
			},
		});
		const taskId = await rig.wire.start('stubborn');
		await eventually(() => context);
		await rig.wire.cancel(taskId);
		await eventually(() => context?.signal.aborted);
		await rig.clock.advance(GRACE_MS - 1);
		expect((await rig.wire.get(taskId)).status).toBe('working');
		await rig.clock.advance(1);
		await eventually(async () => (await rig.wire.get(taskId)).status === 'cancelled');
		const end = await rig.wire.get(taskId);
		late.resolve();
		await rig.clock.advance(10_000);
		expect(await rig.wire.get(taskId)).toEqual(end);
		expect((await rig.backend.store.load(taskId))?.steps).toEqual([]);
	});

	it('F29: by default a dropped call is not a cancel: its work goes on and ends', async () => {
		let entered = 0;
		const rig = await serveHttp({
			tools: (server, tasks) => {
				server.registerTool(
					'import',
					{ inputSchema: z.object({}) },
					tasks.handler({ parkAfterMs: 3_600_000 }, async (_args, task) => {
						entered += 1;
						await task.sleep('rows', 90_000);
						return text('imported');
					}),
				);
			},
		});
		const call = rig.connect({ capabilities: {} }).beginCall('import', {}, { key: 'i1' });
		await eventually(() => entered > 0 || undefined);
		call.cut();
		await rig.clock.advance(90_000);
		await eventually(async () => (await rig.records())[0]?.status === 'completed');
		expect(entered).toBe(1);
	});

	it('F29: over stdio a cancelled note stops the held call it names, and no other, without an answer', async () => {
		const { signals, stopped, options } = work('continue');
		const rig = serveStdio(options);
		for (const id of [1, 2, 3]) {
			const params = callParams('query', {}, {}, {});
			rig.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`);
		}
		await eventually(() => signals.length === 3 || undefined, 'the handlers');
		rig.notify('notifications/cancelled', { requestId: 2, reason: 'gave up' });
		await eventually(() => stopped() === 1 || undefined, 'the stop');
		await rig.clock.advance(GRACE_MS);
		expect(signals.filter((signal) => signal.aborted)).toHaveLength(1);
		expect(rig.server.engine.running).toBe(2);
		expect(rig.messages.filter(({ id }) => id === 2)).toEqual([]);
		expect(rig.isClosed()).toBe(false);
	});

	it('F29: a handler that ignores its signal is abandoned also where its call was never stored', async () => {
		const { signals, options } = work('cancel', 'forbidden');
		const rig = await serveHttp({ ...options, concurrency: 1 });
		const call = rig.connect({ capabilities: {} }).beginCall('stuck');
		await eventually(() => signals.length === 1 || undefined, 'the handler');
		call.cut();
		await eventually(() => signals[0]?.aborted || undefined, 'the signal');
		await rig.clock.advance(GRACE_MS);
		await eventually(() => rig.server.engine.running === 0 || undefined, 'a free slot', 1_000);
	});
});
