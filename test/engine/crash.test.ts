import { describe, expect, it } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import type { TaskPolicy } from '../../src/backend/record.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import {
	gate,
	MINUTE_MS,
	question,
	type RigHandler,
	SECOND_MS,
	startRig,
	text,
	withStore,
	YES,
} from '../support/engine-rig.ts';

/** Longer than a lease, so that a dead worker has been noticed. */
const NOTICED_MS = 10 * SECOND_MS;

/** Does one step, then hangs until its process dies; goes through when it is entered again. */
function buildTool(withStep: boolean): { readonly did: string[]; readonly tool: RigHandler } {
	const did: string[] = [];
	return {
		did,
		tool: async (task) => {
			did.push(`enter ${task.attempt}`);
			if (withStep) await task.step('compile', () => void did.push('compile'));
			if (task.attempt === 1) await gate().opened;
			return text(`attempt ${task.attempt}`);
		},
	};
}

async function crashIn(withStep: boolean, policy: Partial<TaskPolicy>) {
	const { did, tool } = buildTool(withStep);
	const dying = startRig({ tools: { build: tool }, owner: 'dying' });
	const taskId = await dying.begin('build', policy);
	await dying.clock.advance(3 * SECOND_MS);
	dying.crash();
	const next = dying.second({ owner: 'next' });
	await next.clock.advance(NOTICED_MS);
	return { did, taskId, next, record: await next.stored(taskId) };
}

describe('a worker that dies in the middle', () => {
	it('is not waited for where the next one knows that it is dead', async () => {
		const { did, tool } = buildTool(true);
		const dying = startRig({ tools: { build: tool }, owner: 'dying' });
		const taskId = await dying.begin('build');
		dying.crash();
		const next = dying.second({ owner: 'next', isOwnerGone: (owner) => owner === 'dying' });
		await next.clock.advance(0);
		expect(await next.stored(taskId)).toMatchObject({ status: 'completed', attempt: 2, crashes: 1 });
		expect(did).toEqual(['enter 1', 'compile', 'enter 2']);
	});

	it('is left alone while nobody knows that it is dead', async () => {
		const { did, tool } = buildTool(true);
		const working = startRig({ tools: { build: tool }, owner: 'working' });
		const taskId = await working.begin('build');
		const next = working.second({ owner: 'next', isOwnerGone: (owner) => owner === 'somebody else' });
		await next.clock.advance(0);
		expect((await next.stored(taskId)).lease?.owner).toBe('working');
		expect(did).toEqual(['enter 1', 'compile']);
	});

	it('is noticed within ten seconds, and the handler is entered again where it had journalled', async () => {
		const { did, record } = await crashIn(true, {});
		expect(record).toMatchObject({ status: 'completed', result: text('attempt 2'), attempt: 2 });
		expect(did).toEqual(['enter 1', 'compile', 'enter 2']);
	});

	it('leaves an unknown outcome where nothing was journalled, and the task says so', async () => {
		const { did, record } = await crashIn(false, {});
		expect(record).toMatchObject({
			status: 'failed',
			error: { code: -32603, data: { reason: 'outcome_unknown' } },
		});
		expect(did).toEqual(['enter 1']);
	});

	it('is followed by another entry where the tool says that it may always be entered again', async () => {
		const { did, record } = await crashIn(false, { resume: 'always' });
		expect(record.status).toBe('completed');
		expect(did).toEqual(['enter 1', 'enter 2']);
	});

	it('is followed by no other entry where the tool says never, journalled or not', async () => {
		const { record } = await crashIn(true, { resume: 'never' });
		expect(record).toMatchObject({ status: 'failed', error: { data: { reason: 'outcome_unknown' } } });
	});

	it('while its task waited for an answer leaves the question open', async () => {
		const tool: RigHandler = async (task) =>
			text((await task.requireInput('approve', question('Go?'))).action);
		const dying = startRig({ tools: { build: tool } });
		const taskId = await dying.begin('build');
		await dying.clock.advance(SECOND_MS);
		dying.crash();
		const next = dying.second();
		await next.clock.advance(NOTICED_MS);
		const record = await next.stored(taskId);
		expect(record).toMatchObject({ status: 'input_required', statusMessage: 'Waiting for an answer: Go?' });
		expect(Object.keys(record.openInputs)).toEqual(['approve']);
		await next.engine.update(taskId, 'alice', { approve: YES });
		await next.clock.advance(SECOND_MS);
		expect((await next.stored(taskId)).result).toEqual(text('accept'));
	});

	it('after a cancel was requested leaves a cancelled task', async () => {
		const { tool } = buildTool(true);
		const dying = startRig({ tools: { build: tool } });
		const taskId = await dying.begin('build');
		dying.crash();
		const next = dying.second();
		await next.engine.cancel(taskId, 'alice');
		expect((await next.stored(taskId)).status).toBe('working');
		await next.clock.advance(NOTICED_MS);
		expect((await next.stored(taskId)).status).toBe('cancelled');
	});

	it('again and again ends the task as failed after so many crashes in a row', async () => {
		const tool: RigHandler = () => gate().opened.then(() => text('never'));
		let rig = startRig({ tools: { build: tool } });
		const taskId = await rig.begin('build', { resume: 'always', maxCrashes: 3 });
		for (let crash = 1; crash <= 3; crash++) {
			rig.crash();
			rig = rig.second();
			await rig.clock.advance(NOTICED_MS);
		}
		expect(await rig.stored(taskId)).toMatchObject({
			status: 'failed',
			attempt: 3,
			error: { data: { reason: 'crash_loop' } },
		});
	});

	it('is forgiven once the handler got further than before', async () => {
		const tool: RigHandler = async (task) => {
			await task.step(`step ${task.attempt}`, () => {});
			if (task.attempt < 6) await gate().opened;
			return text('through');
		};
		let rig = startRig({ tools: { build: tool } });
		const taskId = await rig.begin('build', { maxCrashes: 2 });
		for (let crash = 1; crash <= 5; crash++) {
			rig.crash();
			rig = rig.second();
			await rig.clock.advance(NOTICED_MS);
		}
		expect(await rig.stored(taskId)).toMatchObject({ status: 'completed', result: text('through') });
	});
});

describe('a lease', () => {
	it('is renewed for as long as the handler runs', async () => {
		const done = gate();
		const tool: RigHandler = async () => done.opened.then(() => text('built'));
		const rig = startRig({ tools: { build: tool } });
		const taskId = await rig.begin('build');
		const other = rig.second();
		await rig.clock.advance(2 * MINUTE_MS);
		expect(await rig.stored(taskId)).toMatchObject({ status: 'working', attempt: 1, revision: 1 });
		expect(other.engine.running).toBe(0);
		done.open();
		await rig.clock.advance(SECOND_MS);
		expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('that was lost fences the zombie: its steps, notes, questions and result are refused', async () => {
		const { clock, zombie, next, taskId, wake, seen } = await zombieRig();
		wake.open();
		await clock.advance(5 * SECOND_MS);
		const loaded = await next.backend.store.load(taskId);
		expect(loaded?.record).toMatchObject({ status: 'completed', result: text('from attempt 2') });
		expect(loaded?.steps.map(({ value }) => value)).toEqual([1, 2]);
		expect(seen).toContain('step refused');
		expect(zombie.engine.running).toBe(0);
	});

	it('that was lost fires the signal of the zombie', async () => {
		const { clock, wake, seen } = await zombieRig();
		wake.open();
		await clock.advance(5 * SECOND_MS);
		expect(seen).toContain('signal of attempt 1');
		expect(seen).not.toContain('signal of attempt 2');
	});

	/** One engine is cut from its store for a while, as by a long pause; the other takes over. */
	async function zombieRig() {
		const seen: string[] = [];
		const wake = gate();
		let paused: Promise<void> | undefined;
		const tool: RigHandler = async (task) => {
			const { attempt } = task;
			task.signal.addEventListener('abort', () => seen.push(`signal of attempt ${attempt}`));
			await task.step('first', () => 1);
			if (attempt === 1) {
				await wake.opened;
				task.progress('I am still here');
				await task.step('second', () => 1).catch(() => seen.push('step refused'));
				return text('from attempt 1');
			}
			await task.step('second', () => 2);
			return text('from attempt 2');
		};
		const clock = new FakeClock();
		const backend = memory({ time: clock });
		const zombie = startRig({
			clock,
			backend: withStore(backend, (store) => ({
				renew: async (leases, expiresAtMs) => {
					await paused;
					return store.renew(leases, expiresAtMs);
				},
				get: async (id) => {
					await paused;
					return store.get(id);
				},
				due: async (nowMs, limit) => (paused ? [] : store.due(nowMs, limit)),
			})),
			tools: { build: tool },
		});
		const taskId = await zombie.begin('build');
		paused = wake.opened;
		const next = zombie.second({ backend });
		await clock.advance(NOTICED_MS);
		return { clock, zombie, next, taskId, wake, seen };
	}
});
