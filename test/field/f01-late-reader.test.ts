/** F01: the answer of a call that went to the background is delivered once, to a listener that has moved on. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
	advanceUntil,
	eventually,
	type HttpRig,
	type RigOptions,
	serveHttp,
	settledFlag,
	text,
} from './harness.ts';
import { textOf } from './wire.ts';

const ANSWER = `${'The answer, at length. '.repeat(1_000)}END`;
const RETENTION_MS = 3_600_000;

function options(): RigOptions {
	return {
		tools: (server, tasks) => {
			server.registerTool(
				'research',
				{ inputSchema: z.object({}) },
				tasks.handler({ retentionMs: RETENTION_MS, parkAfterMs: 3_600_000 }, async (_args, task) => {
					await task.sleep('think', 150_000);
					return text(ANSWER);
				}),
			);
		},
	};
}

async function readsUntilTtl(rig: HttpRig, taskId: string): Promise<void> {
	const { createdAt, lastUpdatedAt } = await eventually(async () => {
		const task = await rig.wire.get(taskId);
		return task.status === 'completed' && task;
	});
	const startedAtMs = Date.parse(createdAt);
	const readAt = async (atMs: number): Promise<string> => {
		await rig.clock.advance(Math.max(0, startedAtMs + atMs - rig.clock.nowMs()));
		const task = await rig.wire.get(taskId);
		expect(task.status).toBe('completed');
		return textOf(task.result);
	};
	expect(Buffer.byteLength(ANSWER)).toBeGreaterThan(22_000);
	expect(await readAt(200_000)).toBe(ANSWER);
	expect(await readAt(400_000)).toBe(ANSWER);
	expect(await readAt(Date.parse(lastUpdatedAt) - startedAtMs + RETENTION_MS - 1_000)).toBe(ANSWER);
	// Reading changed nothing: whoever asks with another connection reads it as well.
	expect(textOf((await rig.connect().get(taskId)).result)).toBe(ANSWER);
	await rig.clock.advance(3_000);
	await expect(rig.wire.get(taskId)).rejects.toThrow('Task not found');
}

it('F01: a host that stopped reading the response at 120 s gets the whole answer with the handle, twice, until its TTL', async () => {
	const rig = await serveHttp(options());
	const call = rig.wire.start('research');
	await advanceUntil(rig.clock, settledFlag(call), { stepMs: 250 });
	const taskId = await call;
	const watching = rig.wire.listen([taskId]);
	await eventually(() => watching.messages.length >= 2 || undefined, 'the first notice');
	await rig.clock.advance(120_000 - 1_000);
	// It stays connected, but nobody reads the stream any more.
	watching.cut();
	await rig.clock.advance(31_000);
	await readsUntilTtl(rig, taskId);
});

it('F01: a held call that is abandoned at 120 s is found again by its idempotency key, with the whole answer', async () => {
	const rig = await serveHttp(options());
	const plain = rig.connect({ capabilities: {} });
	const abandoned = plain.beginCall('research', {}, { key: 'r1' });
	await abandoned.begun;
	await rig.clock.advance(120_000);
	abandoned.cut();
	await rig.clock.advance(30_000);
	const again = plain.call('research', {}, { key: 'r1' });
	await advanceUntil(rig.clock, settledFlag(again));
	expect(textOf(await again)).toBe(ANSWER);
	await rig.clock.advance(200_000);
	expect(textOf(await plain.call('research', {}, { key: 'r1' }))).toBe(ANSWER);
});

it('F01: the answer outlives the process that made it', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-f01-'));
	const backend: RigOptions['backend'] = (clock) => sqlite({ file: join(folder, 'tasks.db'), time: clock });
	const first = await serveHttp({ ...options(), backend });
	const call = first.wire.start('research');
	await advanceUntil(first.clock, settledFlag(call), { stepMs: 250 });
	const taskId = await call;
	await first.clock.advance(150_000);
	await eventually(async () => (await first.wire.get(taskId)).status === 'completed');
	await first.stop();
	const second = await serveHttp({ ...options(), backend, clock: first.clock });
	expect(textOf((await second.wire.get(taskId)).result)).toBe(ANSWER);
	expect(textOf((await second.wire.get(taskId)).result)).toBe(ANSWER);
	await second.stop();
	rmSync(folder, { recursive: true, force: true });
});
