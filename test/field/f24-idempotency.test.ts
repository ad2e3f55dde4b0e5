/** F24: a retried write makes walls, sites and mails twice. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { TaskFailure } from '../../src/errors.ts';
import { SUBJECT_TOKENS } from './auth.ts';
import { advanceUntil, eventually, type HttpRig, serveHttp, settledFlag, text } from './harness.ts';
import { errorOf } from './wire.ts';

const RETENTION_MS = 3_600_000;

interface Site {
	readonly rig: HttpRig;
	/** What was built: a step, since a handler that sleeps is entered again. */
	readonly built: string[];
}

async function site(): Promise<Site> {
	const built: string[] = [];
	const rig = await serveHttp({
		http: { auth: SUBJECT_TOKENS },
		tools: (server, tasks) => {
			const options = { syncWindowMs: 0, retentionMs: RETENTION_MS };
			const inputSchema = z.object({ wall: z.string(), height: z.number().optional() });
			server.registerTool(
				'build_wall',
				{ inputSchema },
				tasks.handler(options, async ({ wall }, task) => {
					await task.step('build', () => void built.push(wall));
					await task.sleep('dry', 60_000);
					return text(`${wall} stands`);
				}),
			);
			server.registerTool(
				'break_wall',
				{ inputSchema },
				tasks.handler(options, ({ wall }) => {
					built.push(wall);
					throw new TaskFailure(-32_000, 'The crane fell over');
				}),
			);
		},
	});
	return { rig, built };
}

describe('F24: the same write twice', () => {
	it('F24: the same idempotency key and arguments joins the running task, also when both come at once', async () => {
		const { rig, built } = await site();
		const ada = rig.connect({ token: 'ada' });
		const first = { wall: 'north', height: 3 };
		const second = { height: 3, wall: 'north' };
		const calls = [first, second, first].map((args) => ada.start('build_wall', args, { key: 'k1' }));
		// A call that joins looks for the end of the task once more before it answers.
		const all = Promise.all(calls);
		await advanceUntil(rig.clock, settledFlag(all), { stepMs: 1 });
		const ids = await all;
		expect(new Set(ids).size).toBe(1);
		expect(built).toEqual(['north']);
		const retry = ada.start('build_wall', first, { key: 'k1' });
		await advanceUntil(rig.clock, settledFlag(retry), { stepMs: 1 });
		expect(await retry).toBe(ids[0]);
		await rig.clock.advance(60_000);
		await eventually(async () => (await ada.get(ids[0] ?? '')).status === 'completed');
		expect(await ada.call('build_wall', first, { key: 'k1' })).toMatchObject(text('north stands'));
		expect(built).toEqual(['north']);
	});

	it('F24: the same key with other arguments, or for another tool, is a conflict and runs nothing', async () => {
		const { rig, built } = await site();
		const ada = rig.connect({ token: 'ada' });
		await ada.start('build_wall', { wall: 'north' }, { key: 'k1' });
		for (const [tool, args] of [
			['build_wall', { wall: 'south' }],
			['build_wall', { wall: 'north', height: 4 }],
			['break_wall', { wall: 'north' }],
		] as const) {
			const error = errorOf(await ada.beginCall(tool, args, { key: 'k1' }).reply);
			expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(/idempotency key/i) });
		}
		expect(built).toEqual(['north']);
		expect(await rig.records()).toHaveLength(1);
	});

	it('F24: the same key of another principal is independent', async () => {
		const { rig, built } = await site();
		const adas = await rig.connect({ token: 'ada' }).start('build_wall', { wall: 'north' }, { key: 'k1' });
		const bobs = await rig.connect({ token: 'bob' }).start('build_wall', { wall: 'south' }, { key: 'k1' });
		expect(adas).not.toBe(bobs);
		await eventually(() => built.length === 2 || undefined);
		expect(built).toEqual(['north', 'south']);
	});

	it('F24: the same key after a failure returns the failure and runs nothing', async () => {
		const { rig, built } = await site();
		const ada = rig.connect({ token: 'ada' });
		const taskId = await ada.start('break_wall', { wall: 'north' }, { key: 'k1' });
		await eventually(async () => (await ada.get(taskId)).status === 'failed');
		const error = errorOf(await ada.beginCall('break_wall', { wall: 'north' }, { key: 'k1' }).reply);
		expect(error).toMatchObject({ code: -32_000, message: 'The crane fell over' });
		expect(built).toEqual(['north']);
	});

	it('F24: the same key after the task was forgotten is a new run', async () => {
		const { rig, built } = await site();
		const ada = rig.connect({ token: 'ada' });
		const first = await ada.start('build_wall', { wall: 'north' }, { key: 'k1' });
		await rig.clock.advance(60_000);
		await eventually(async () => (await ada.get(first)).status === 'completed');
		await rig.clock.advance(RETENTION_MS + 2_000);
		await expect(ada.get(first)).rejects.toThrow('Task not found');
		const second = await ada.start('build_wall', { wall: 'north' }, { key: 'k1' });
		expect(second).not.toBe(first);
		await eventually(() => built.length === 2 || undefined);
	});

	it('F24: the same key in the moment between expiry and sweep is a new run too', async () => {
		const { rig, built } = await site();
		const ada = rig.connect({ token: 'ada' });
		const first = await ada.start('build_wall', { wall: 'north' }, { key: 'k1' });
		await rig.clock.advance(60_000);
		await eventually(async () => (await ada.get(first)).status === 'completed');
		rig.clock.jump(RETENTION_MS + 1);
		await expect(ada.get(first)).rejects.toThrow('Task not found');
		const second = await ada.start('build_wall', { wall: 'north' }, { key: 'k1' });
		expect(second).not.toBe(first);
		await eventually(() => built.length === 2 || undefined);
	});

	it('F24: without a key the same call twice is two runs', async () => {
		const { rig, built } = await site();
		const ada = rig.connect({ token: 'ada' });
		const [first, second] = await Promise.all(
			['north', 'north'].map((wall) => ada.start('build_wall', { wall })),
		);
		expect(first).not.toBe(second);
		await eventually(() => built.length === 2 || undefined);
	});
});
