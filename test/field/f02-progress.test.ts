/** F02: after a call went to the background, its progress notes are received and thrown away. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import type { TaskContext } from '../../src/server/index.ts';
import { advanceUntil, eventually, type HttpRig, serveHttp, settledFlag, text } from './harness.ts';

const NOTES = 600;
const NOTE_EVERY_MS = 2_000;
const POLL_EVERY_MS = 30_000;

let folder = '';
beforeAll(() => {
	folder = mkdtempSync(join(tmpdir(), 'holdfast-f02-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Noted {
	readonly rig: HttpRig;
	readonly taskId: string;
	readonly task: TaskContext;
	readonly end: () => void;
}

/** A running task whose handler says what the test wants. */
async function noted(file: string): Promise<Noted> {
	const end = Promise.withResolvers<void>();
	let context: TaskContext | undefined;
	const rig = await serveHttp({
		backend: (clock) => sqlite({ file, time: clock }),
		tools: (server, tasks) => {
			server.registerTool(
				'migrate',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
					context = task;
					await end.promise;
					return text('migrated');
				}),
			);
		},
	});
	const call = rig.wire.start('migrate');
	await advanceUntil(rig.clock, settledFlag(call));
	const task = await eventually(() => context, 'the handler');
	return { rig, taskId: await call, task, end: end.resolve };
}

function sizeOf(file: string): number {
	return statSync(file).size;
}

describe('F02: progress notes while nobody listens', () => {
	it(`F02: each poll over 20 minutes sees the last of ${NOTES} notes, and the store stays small`, async () => {
		const file = join(folder, 'slow.db');
		const { rig, taskId, task, end } = await noted(file);
		const before = { ...rig.writes };
		let lastUpdatedAt = '';
		let polls = 0;
		for (let note = 1; note <= NOTES; note++) {
			task.progress({ progress: note, total: NOTES, message: `row ${note} of ${NOTES}` });
			await rig.clock.advance(NOTE_EVERY_MS);
			if ((note * NOTE_EVERY_MS) % POLL_EVERY_MS !== 0) continue;
			const seen = await rig.wire.get(taskId);
			polls += 1;
			expect(seen.statusMessage).toContain(`row ${note} of ${NOTES}`);
			expect(Date.parse(seen.lastUpdatedAt)).toBeGreaterThan(Date.parse(lastUpdatedAt) || 0);
			lastUpdatedAt = seen.lastUpdatedAt;
		}
		expect(polls).toBe(40);
		expect(rig.clock.nowMs() - Date.parse((await rig.wire.get(taskId)).createdAt)).toBeGreaterThanOrEqual(
			1_200_000,
		);
		// Nothing waits for the disk because of a note, nothing is journalled, and the file does not grow.
		expect(rig.writes.full - before.full).toBe(0);
		expect(rig.writes.step - before.step).toBe(0);
		expect(await rig.records()).toHaveLength(1);
		expect(sizeOf(file)).toBeLessThanOrEqual(256 * 1024);
		const details = await rig.backend.store.load(taskId);
		expect(details?.steps).toEqual([]);
		expect(JSON.stringify(details).length).toBeLessThan(4_000);
		end();
		await eventually(async () => (await rig.wire.get(taskId)).status === 'completed');
	});

	it('F02: a burst of 1,000 notes in a second costs a few writes, and the last one is what a poll sees', async () => {
		const { rig, taskId, task, end } = await noted(join(folder, 'burst.db'));
		const before = rig.writes.normal;
		for (let note = 1; note <= 1_000; note++) {
			task.progress({ progress: note, total: 1_000, message: `row ${note}` });
			await rig.clock.advance(1);
		}
		await rig.clock.advance(1_000);
		expect((await rig.wire.get(taskId)).statusMessage).toContain('row 1000');
		expect(rig.writes.normal - before).toBeLessThanOrEqual(4);
		end();
	});

	it('F02: one note every 2 s is not one write per note', async () => {
		const { rig, task, end } = await noted(join(folder, 'seldom.db'));
		const before = rig.writes.normal;
		for (let note = 1; note <= 60; note++) {
			task.progress({ progress: note, total: 60, message: `row ${note}` });
			await rig.clock.advance(NOTE_EVERY_MS);
		}
		end();
		expect(rig.writes.normal - before).toBeLessThan(30);
	});

	it('F02: the last note before a worker dies is what the next poll sees', async () => {
		const file = join(folder, 'dead.db');
		const { rig, taskId, task } = await noted(file);
		task.progress('row 17');
		await rig.clock.advance(1_000);
		const other = await serveHttp({
			backend: (clock) => sqlite({ file, time: clock }),
			clock: rig.clock,
			concurrency: 0,
			tools: () => {},
		});
		expect((await other.wire.get(taskId)).statusMessage).toBe('row 17');
	});
});
