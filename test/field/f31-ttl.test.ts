/** F31: a working task is deleted at its TTL, or becomes unreachable while its handler hangs on. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { memory } from '../../src/backend/memory/index.ts';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import type { DetailedTask } from '../../src/protocol/task.ts';
import { eventually, type HttpRig, serveHttp, text } from './harness.ts';

const MINUTE_MS = 60_000;
const RETENTION_MS = 5 * MINUTE_MS;
const WORK_MS = 19 * MINUTE_MS;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-f31-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

const QUESTION = {
	mode: 'form',
	message: 'Overwrite?',
	requestedSchema: { type: 'object', properties: {} },
} as const;

interface Long {
	readonly rig: HttpRig;
	readonly taskId: string;
	/** Ends the work of a handler that stays in memory. */
	readonly finish: () => void;
	/** Whether the handler's question got its answer, or was taken back. */
	readonly waiters: string[];
}

async function long(
	backend: 'memory' | 'sqlite',
	tool: 'busy' | 'asks',
	inputWaitMs = 60 * MINUTE_MS,
): Promise<Long> {
	const finish = Promise.withResolvers<void>();
	const waiters: string[] = [];
	const options = { syncWindowMs: 0, retentionMs: RETENTION_MS, inputWaitMs, parkAfterMs: 60 * MINUTE_MS };
	const rig = await serveHttp({
		backend: (time) =>
			backend === 'memory' ? memory({ time }) : sqlite({ file: join(folder, `${++files}.db`), time }),
		tools: (server, tasks) => {
			server.registerTool(
				'busy',
				{ inputSchema: z.object({}) },
				tasks.handler(options, async (_args, task) => {
					task.signal.addEventListener('abort', () => waiters.push('signalled'));
					await finish.promise;
					return text('done');
				}),
			);
			server.registerTool(
				'asks',
				{ inputSchema: z.object({}) },
				tasks.handler(options, async (_args, task) => {
					task.signal.addEventListener('abort', () => waiters.push('signalled'));
					const { action } = await task.requireInput('overwrite', QUESTION);
					waiters.push(action);
					await finish.promise;
					return text('done');
				}),
			);
		},
	});
	const taskId = await rig.wire.start(tool);
	await eventually(() => rig.server.engine.running > 0 || undefined);
	return { rig, taskId, finish: finish.resolve, waiters };
}

/** When the client may forget the task, by what it was told. */
function promisedUntilMs({ createdAt, ttlMs }: DetailedTask): number {
	return Date.parse(createdAt) + (ttlMs ?? Infinity);
}

async function ended(rig: HttpRig, taskId: string): Promise<DetailedTask> {
	return eventually(async () => {
		const task = await rig.wire.get(taskId);
		return (task.status !== 'working' && task.status !== 'input_required' && task) || undefined;
	}, 'the end');
}

describe.each(['memory', 'sqlite'] as const)('F31: time runs out under a living task (%s)', (backend) => {
	it('F31: 19 minutes of work under a TTL of 5: there at every poll, its TTL extended before it passes', async () => {
		const { rig, taskId, finish, waiters } = await long(backend, 'busy');
		const first = await rig.wire.get(taskId);
		expect(first.ttlMs).toBe(RETENTION_MS);
		for (let passedMs = 0; passedMs < WORK_MS; passedMs += 15_000) {
			await rig.clock.advance(15_000);
			const task = await rig.wire.get(taskId);
			expect(task.status).toBe('working');
			expect(promisedUntilMs(task)).toBeGreaterThan(rig.clock.nowMs());
		}
		expect((await rig.wire.get(taskId)).ttlMs).toBeGreaterThan(WORK_MS);
		expect(waiters).toEqual([]);
		finish();
		expect(await ended(rig, taskId)).toMatchObject({ status: 'completed', result: text('done') });
	});

	it('F31: the result is kept a full retention time after the end, and no longer', async () => {
		const { rig, taskId, finish } = await long(backend, 'busy');
		await rig.clock.advance(WORK_MS);
		finish();
		const { lastUpdatedAt } = await ended(rig, taskId);
		await rig.clock.advance(1);
		expect(await rig.wire.get(taskId)).toMatchObject({ status: 'completed' });
		await rig.clock.advance(Date.parse(lastUpdatedAt) + RETENTION_MS - 1 - rig.clock.nowMs());
		const last = await rig.wire.get(taskId);
		expect(last).toMatchObject({ status: 'completed', result: text('done') });
		expect(promisedUntilMs(last)).toBe(Date.parse(lastUpdatedAt) + RETENTION_MS);
		await rig.clock.advance(2);
		await expect(rig.wire.get(taskId)).rejects.toThrow('Task not found');
		await rig.clock.advance(2_000);
		expect(await rig.records()).toEqual([]);
	});

	it('F31: an input wait of 10 minutes under a TTL of 5 does not make it vanish, and its TTL covers the wait', async () => {
		const { rig, taskId, finish, waiters } = await long(backend, 'asks');
		await eventually(async () => (await rig.wire.get(taskId)).status === 'input_required');
		for (let minute = 0; minute < 10; minute++) {
			await rig.clock.advance(MINUTE_MS);
			const task = await rig.wire.get(taskId);
			expect(task.inputRequests).toHaveProperty('overwrite');
			expect(promisedUntilMs(task)).toBeGreaterThan(rig.clock.nowMs() + RETENTION_MS);
		}
		await rig.wire.update(taskId, { overwrite: { action: 'accept', content: {} } });
		await eventually(() => waiters.length === 1 || undefined);
		await rig.clock.advance(9 * MINUTE_MS);
		finish();
		expect(await ended(rig, taskId)).toMatchObject({ status: 'completed' });
		expect(waiters).toEqual(['accept']);
	});

	it('F31: a clock that jumps over the TTL while it works loses nothing', async () => {
		const { rig, taskId, finish, waiters } = await long(backend, 'busy');
		rig.clock.jump(RETENTION_MS * 3);
		expect((await rig.wire.get(taskId)).status).toBe('working');
		await rig.clock.advance(5_000);
		const task = await rig.wire.get(taskId);
		expect(task.status).toBe('working');
		expect(promisedUntilMs(task)).toBeGreaterThan(rig.clock.nowMs());
		expect(waiters).toEqual([]);
		finish();
		expect((await ended(rig, taskId)).status).toBe('completed');
	});

	it('F31: a clock that jumps over the TTL while it waits for input leaves the question open', async () => {
		const { rig, taskId, finish } = await long(backend, 'asks');
		await eventually(async () => (await rig.wire.get(taskId)).status === 'input_required');
		rig.clock.jump(RETENTION_MS * 3);
		await rig.clock.advance(5_000);
		const task = await rig.wire.get(taskId);
		expect(task).toMatchObject({ status: 'input_required', inputRequests: { overwrite: {} } });
		expect(promisedUntilMs(task)).toBeGreaterThan(rig.clock.nowMs());
		await rig.wire.update(taskId, { overwrite: { action: 'accept', content: {} } });
		finish();
		expect((await ended(rig, taskId)).status).toBe('completed');
	});

	it('F31: a clock that jumps over the TTL 1 ms after the end keeps the end out of nobody’s way', async () => {
		const { rig, taskId, finish } = await long(backend, 'busy');
		await rig.clock.advance(WORK_MS);
		finish();
		await ended(rig, taskId);
		await rig.clock.advance(1);
		rig.clock.jump(RETENTION_MS - 2);
		expect(await rig.wire.get(taskId)).toMatchObject({ status: 'completed', result: text('done') });
		rig.clock.jump(1);
		await expect(rig.wire.get(taskId)).rejects.toThrow('Task not found');
	});

	it('F31: a question that nobody answers in its own time fails the task, signals the handler and wakes its waiter', async () => {
		const { rig, taskId, waiters } = await long(backend, 'asks', 10 * MINUTE_MS);
		await eventually(async () => (await rig.wire.get(taskId)).status === 'input_required');
		await rig.clock.advance(10 * MINUTE_MS - 5_000);
		expect((await rig.wire.get(taskId)).status).toBe('input_required');
		await rig.clock.advance(10_000);
		const task = await ended(rig, taskId);
		expect(task).toMatchObject({
			status: 'failed',
			error: {
				code: -32603,
				data: { reason: 'input_expired' },
				message: expect.stringContaining('overwrite'),
			},
		});
		expect(task).not.toHaveProperty('inputRequests');
		expect(waiters).toEqual(['signalled']);
		await eventually(() => rig.server.engine.running === 0 || undefined, 'a free slot');
		await rig.clock.advance(RETENTION_MS - 60_000);
		expect((await rig.wire.get(taskId)).status).toBe('failed');
	});
});
