import { describe, expect, it } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import { FakeClock, settle } from '../../src/testing/fake-clock.ts';
import {
	gate,
	MINUTE_MS,
	type RigHandler,
	SECOND_MS,
	startRig,
	text,
	withStore,
} from '../support/engine-rig.ts';

describe('a stop', () => {
	it('lets a running handler end within the drain time', async () => {
		const done = gate();
		const rig = startRig({ tools: { build: () => done.opened.then(() => text('built')) } });
		const taskId = await rig.begin('build');
		const stopped = rig.engine.stop(5 * SECOND_MS);
		await rig.clock.advance(2 * SECOND_MS);
		done.open();
		await stopped;
		expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('renews leases while it drains', async () => {
		const done = gate();
		const rig = startRig({ tools: { build: () => done.opened.then(() => text('built')) } });
		const taskId = await rig.begin('build');
		const stopped = rig.engine.stop(MINUTE_MS);
		rig.second();
		await rig.clock.advance(30 * SECOND_MS);
		done.open();
		await stopped;
		expect(await rig.stored(taskId)).toMatchObject({ status: 'completed', attempt: 1 });
	});

	it('hands back what can be entered again, and the next process goes on at once', async () => {
		const did: string[] = [];
		const tool: RigHandler = async (task) => {
			await task.step('compile', () => void did.push('compile'));
			if (task.attempt === 1) await gate().opened;
			return text(`attempt ${task.attempt}`);
		};
		const rig = startRig({ tools: { build: tool } });
		const taskId = await rig.begin('build');
		await rig.engine.stop(0);
		expect(await rig.stored(taskId)).toMatchObject({ status: 'working', lease: null, crashes: 0 });
		const next = rig.second();
		await settle();
		expect((await next.stored(taskId)).result).toEqual(text('attempt 2'));
		expect(did).toEqual(['compile']);
	});

	it('fails honestly what cannot be entered again', async () => {
		const rig = startRig({ tools: { build: () => gate().opened.then(() => text('never')) } });
		const taskId = await rig.begin('build');
		await rig.engine.stop(0);
		const record = await rig.stored(taskId);
		expect(record).toMatchObject({ status: 'failed', error: { data: { reason: 'outcome_unknown' } } });
		expect(record.statusMessage).toContain('shut down');
	});

	it('does not count as a crash', async () => {
		const tool: RigHandler = async (task) => {
			await task.step('compile', () => {});
			if (task.attempt < 9) await gate().opened;
			return text('through');
		};
		let rig = startRig({ tools: { build: tool } });
		const taskId = await rig.begin('build', { maxCrashes: 1 });
		for (let round = 1; round < 9; round++) {
			await rig.engine.stop(0);
			rig = rig.second();
			await settle();
		}
		expect((await rig.stored(taskId)).result).toEqual(text('through'));
	});

	it('fires the signal of a handler that it leaves behind', async () => {
		const seen: string[] = [];
		const rig = startRig({
			tools: {
				build: async ({ signal }) => {
					signal.addEventListener('abort', () => seen.push('abort'));
					return gate().opened.then(() => text('never'));
				},
			},
		});
		await rig.begin('build');
		await rig.engine.stop(0);
		expect(seen).toEqual(['abort']);
	});

	it('claims nothing more', async () => {
		const rig = startRig({ tools: { build: () => text('built') } });
		await rig.engine.stop(0);
		const taskId = (await rig.call('build')).taskId;
		await rig.clock.advance(MINUTE_MS);
		expect(await rig.stored(taskId)).toMatchObject({ status: 'working', attempt: 0, lease: null });
		const next = rig.second();
		await settle();
		expect((await next.stored(taskId)).status).toBe('completed');
	});

	it('begins no handler afterwards though a claim was under way', async () => {
		const clock = new FakeClock();
		const backend = memory({ time: clock });
		const slow = gate();
		let entered = 0;
		const tools = {
			build: () => {
				entered += 1;
				return gate().opened.then(() => text('never'));
			},
		};
		const waiting = startRig({ clock, backend, tools, concurrency: 0 });
		const taskId = await waiting.begin('build', { resume: 'always' });
		const rig = startRig({
			clock,
			tools,
			backend: withStore(backend, (store) => ({
				load: async (id) => {
					await slow.opened;
					return store.load(id);
				},
			})),
		});
		await settle();
		const stopped = rig.engine.stop(0);
		await settle();
		slow.open();
		await stopped;
		await settle();
		expect(entered).toBe(0);
		expect((await rig.stored(taskId)).lease).toBeNull();
	});
});
