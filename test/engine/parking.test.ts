import { describe, expect, it } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import { isHoldfastError } from '../../src/errors.ts';
import { NO_INPUT } from '../../src/protocol/capabilities.ts';
import { FakeClock, settle } from '../../src/testing/fake-clock.ts';
import {
	DAY_MS,
	gate,
	HOUR_MS,
	later,
	question,
	type RigHandler,
	SECOND_MS,
	SLOW_BEAT,
	startRig,
	text,
	withStore,
	YES,
} from '../support/engine-rig.ts';

/** Triggers once, asks, deploys once; counts what it did. */
function deployTool(): { readonly did: string[]; readonly entered: () => number; readonly tool: RigHandler } {
	const did: string[] = [];
	let entered = 0;
	return {
		did,
		entered: () => entered,
		tool: async (task) => {
			entered += 1;
			await task.step('trigger', () => void did.push('trigger'));
			const answer = await task.requireInput('approve', question('Deploy?'));
			await task.step('deploy', () => void did.push('deploy'));
			return text(answer.action);
		},
	};
}

describe('a handler that asks', () => {
	it('goes on in memory when the answer comes within the grace time', async () => {
		const { tool, did, entered } = deployTool();
		const rig = startRig({ tools: { deploy: tool } });
		const taskId = await rig.begin('deploy');
		expect(await rig.stored(taskId)).toMatchObject({
			status: 'input_required',
			statusMessage: 'Waiting for an answer: Deploy?',
		});
		await rig.clock.advance(29 * SECOND_MS);
		await rig.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect(await rig.stored(taskId)).toMatchObject({ status: 'completed', result: text('accept') });
		expect(entered()).toBe(1);
		expect(did).toEqual(['trigger', 'deploy']);
	});

	it('is parked after the grace time and holds no worker', async () => {
		const { tool } = deployTool();
		const rig = startRig({ tools: { deploy: tool }, concurrency: 1 });
		const taskId = await rig.begin('deploy');
		expect(rig.engine.running).toBe(1);
		await rig.clock.advance(30 * SECOND_MS);
		expect(rig.engine.running).toBe(0);
		expect(await rig.stored(taskId)).toMatchObject({ status: 'input_required', lease: null, runAtMs: null });
	});

	it('is entered again when the answer is there, and no finished step is repeated', async () => {
		const { tool, did, entered } = deployTool();
		const rig = startRig({ tools: { deploy: tool } });
		const taskId = await rig.begin('deploy');
		await later(rig, 3 * DAY_MS);
		await rig.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect(await rig.stored(taskId)).toMatchObject({
			status: 'completed',
			result: text('accept'),
			attempt: 2,
		});
		expect(entered()).toBe(2);
		expect(did).toEqual(['trigger', 'deploy']);
	});

	it('is entered again by another process after the first one stopped', async () => {
		const { tool, did } = deployTool();
		const rig = startRig({ tools: { deploy: tool } });
		const taskId = await rig.begin('deploy');
		await later(rig, HOUR_MS);
		await rig.engine.stop(0);
		const next = rig.second();
		await next.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect((await next.stored(taskId)).status).toBe('completed');
		expect(did).toEqual(['trigger', 'deploy']);
	});

	it('runs neither catch nor finally when it is parked', async () => {
		const seen: string[] = [];
		const rig = startRig({
			tools: {
				deploy: async (task) => {
					try {
						await task.requireInput('approve', question('Deploy?'));
					} catch {
						seen.push('catch');
					} finally {
						seen.push('finally');
					}
					return text('deployed');
				},
			},
		});
		const taskId = await rig.begin('deploy');
		await later(rig, HOUR_MS);
		expect(seen).toEqual([]);
		await rig.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect(seen).toEqual(['finally']);
	});

	it('is not parked where entering it again is not allowed', async () => {
		const { tool } = deployTool();
		const rig = startRig({ tools: { deploy: tool } });
		const taskId = await rig.begin('deploy', { resume: 'never' });
		await later(rig, HOUR_MS);
		expect(rig.engine.running).toBe(1);
		await rig.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect(await rig.stored(taskId)).toMatchObject({ status: 'completed', attempt: 1 });
	});

	it('is not parked while a step of it runs', async () => {
		const slow = gate();
		const rig = startRig({
			tools: {
				deploy: async (task) => {
					await Promise.all([
						task.requireInput('approve', question('Deploy?')),
						task.step('upload', () => slow.opened),
					]);
					return text('deployed');
				},
			},
		});
		const taskId = await rig.begin('deploy');
		await later(rig, HOUR_MS);
		expect(rig.engine.running).toBe(1);
		slow.open();
		await rig.clock.advance(31 * SECOND_MS);
		expect(rig.engine.running).toBe(0);
		await rig.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('asks several things at once and goes on when all are answered', async () => {
		const rig = startRig({
			tools: {
				deploy: async (task) => {
					const answers = await Promise.all([
						task.requireInput('one', question('One?')),
						task.requireInput('two', question('Two?')),
					]);
					return text(answers.map(({ action }) => action).join(' '));
				},
			},
		});
		const taskId = await rig.begin('deploy');
		await later(rig, HOUR_MS);
		await rig.engine.update(taskId, 'alice', { two: { action: 'decline' } });
		await settle();
		expect(Object.keys((await rig.stored(taskId)).openInputs)).toEqual(['one']);
		await rig.engine.update(taskId, 'alice', { one: YES });
		await settle();
		expect((await rig.stored(taskId)).result).toEqual(text('accept decline'));
	});

	it('is refused with INPUT_UNAVAILABLE where the client cannot be asked', async () => {
		const rig = startRig({ tools: { deploy: deployTool().tool } });
		const taskId = await rig.begin('deploy', {}, { inputCapabilities: NO_INPUT });
		const record = await rig.stored(taskId);
		expect(record).toMatchObject({ status: 'completed', result: { isError: true }, openInputs: {} });
	});

	it('T31: is refused a key that belongs to another open question', async () => {
		const codes: unknown[] = [];
		const rig = startRig({
			tools: {
				deploy: async (task) => {
					void task.requireInput('approve', question('Deploy to staging?'));
					await task.requireInput('approve', question('Deploy to production?')).catch((error: unknown) => {
						codes.push(isHoldfastError(error, 'INPUT_KEY_REUSED'));
					});
					return text('done');
				},
			},
		});
		await rig.begin('deploy');
		expect(codes).toEqual([true]);
	});

	it('T31: is refused a key whose answer was given to another question', async () => {
		const rig = startRig({
			tools: {
				deploy: async (task) => {
					await task.requireInput('approve', question('Deploy to staging?'));
					const second = await task.requireInput('approve', question('Drop the production database?'));
					return text(second.action);
				},
			},
		});
		const taskId = await rig.begin('deploy');
		await rig.engine.update(taskId, 'alice', { approve: YES });
		await settle();
		expect((await rig.stored(taskId)).result).toMatchObject({ isError: true });
	});
});

describe('an answer that races with parking', () => {
	it('is not lost, whichever comes first', async () => {
		for (const early of [-1, 0, 1]) {
			const { tool, did } = deployTool();
			const rig = startRig({ tools: { deploy: tool } });
			const taskId = await rig.begin('deploy');
			await rig.clock.advance(30 * SECOND_MS + early - 1);
			const moved = rig.clock.advance(1);
			const updated = rig.engine.update(taskId, 'alice', { approve: YES });
			await Promise.all([moved, updated]);
			await settle();
			expect((await rig.stored(taskId)).status).toBe('completed');
			expect(did).toEqual(['trigger', 'deploy']);
		}
	});

	it('never drops a handler that already went on with a step', async () => {
		const { tool, did } = deployTool();
		const { rig, taskId, answerMeanwhile } = await startWithSlowReads(tool);
		await rig.clock.advance(29 * SECOND_MS);
		await answerMeanwhile(SECOND_MS);
		expect((await rig.stored(taskId)).status).toBe('completed');
		expect(did).toEqual(['trigger', 'deploy']);
	});

	it('is acted upon at once also beside a sleep that goes on for days', async () => {
		const { rig, taskId, answerMeanwhile } = await startWithSlowReads(async (task) => {
			const first = await Promise.race([
				task.requireInput('approve', question('Deploy?')).then(({ action }) => action),
				task.sleep('patience', 7 * DAY_MS).then(() => 'nobody answered'),
			]);
			return text(first);
		});
		await rig.clock.advance(29 * SECOND_MS);
		await answerMeanwhile(SECOND_MS);
		expect((await rig.stored(taskId)).result).toEqual(text('accept'));
	});

	it('wakes no handler that was dropped', async () => {
		const seen: string[] = [];
		const { rig, answerMeanwhile } = await startWithSlowReads(async (task) => {
			try {
				await task.requireInput('approve', question('Deploy?'));
				seen.push(`attempt ${task.attempt} goes on`);
			} finally {
				seen.push('finally');
			}
			return text('deployed');
		});
		await rig.clock.advance(29 * SECOND_MS);
		await answerMeanwhile(SECOND_MS);
		expect(seen).toHaveLength(2);
	});

	/** The answer comes by another process, and this one is slow to read it while the grace time ends. */
	async function startWithSlowReads(tool: RigHandler) {
		const clock = new FakeClock();
		const backend = memory({ time: clock });
		let reading: Promise<void> = Promise.resolve();
		const rig = startRig({
			clock,
			backend: withStore(backend, (store) => ({
				get: async (taskId) => {
					await reading;
					return store.get(taskId);
				},
			})),
			tools: { deploy: tool },
		});
		const taskId = await rig.begin('deploy');
		return {
			rig,
			taskId,
			answerMeanwhile: async (durationMs: number) => {
				const slow = gate();
				reading = slow.opened;
				const other = rig.second({ backend, concurrency: 0 });
				await other.engine.update(taskId, 'alice', { approve: YES });
				await clock.advance(durationMs);
				slow.open();
				await clock.advance(SECOND_MS);
			},
		};
	}
});

describe('a handler that sleeps', () => {
	it('sleeps for days without a worker and is woken once, not earlier or later', async () => {
		let woken = 0;
		const rig = startRig({
			timing: SLOW_BEAT,
			tools: {
				remind: async (task) => {
					await task.sleep('week', 7 * DAY_MS);
					woken += 1;
					return text('now');
				},
			},
		});
		const taskId = await rig.begin('remind');
		const startedAtMs = rig.clock.nowMs();
		await rig.clock.advance(HOUR_MS);
		expect(rig.engine.running).toBe(0);
		expect((await rig.stored(taskId)).runAtMs).toBe(startedAtMs + 7 * DAY_MS);
		await rig.clock.advance(7 * DAY_MS - HOUR_MS - 1);
		expect(woken).toBe(0);
		await rig.clock.advance(1);
		expect(woken).toBe(1);
		expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('does not begin anew after a restart in the middle of it', async () => {
		const tools: Record<string, RigHandler> = {
			remind: async (task) => {
				await task.sleep('days', 3 * DAY_MS);
				return text('now');
			},
		};
		const rig = startRig({ tools, timing: SLOW_BEAT });
		const taskId = await rig.begin('remind');
		await rig.clock.advance(DAY_MS);
		rig.crash();
		await rig.clock.advance(DAY_MS);
		rig.second();
		await rig.clock.advance(DAY_MS - 1);
		expect((await rig.stored(taskId)).status).toBe('working');
		await rig.clock.advance(1);
		expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('stays in memory for a short sleep', async () => {
		const rig = startRig({
			tools: {
				remind: async (task) => {
					await task.sleep('short', 50 * SECOND_MS);
					return text(`attempt ${task.attempt}`);
				},
			},
		});
		const taskId = await rig.begin('remind');
		await rig.clock.advance(50 * SECOND_MS);
		expect((await rig.stored(taskId)).result).toEqual(text('attempt 1'));
	});

	it('sleeps twice in a row under two names', async () => {
		const rig = startRig({
			timing: SLOW_BEAT,
			tools: {
				remind: async (task) => {
					await task.sleep('first', 2 * HOUR_MS);
					await task.sleep('second', 2 * HOUR_MS);
					return text('now');
				},
			},
		});
		const taskId = await rig.begin('remind');
		await rig.clock.advance(4 * HOUR_MS - 1);
		expect((await rig.stored(taskId)).status).toBe('working');
		await rig.clock.advance(1);
		expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('refuses a duration that is no number', async () => {
		for (const durationMs of [Number.NaN, Infinity]) {
			const rig = startRig({
				tools: {
					remind: async (task) => {
						await task.sleep('for ever', durationMs);
						return text('now');
					},
				},
			});
			const taskId = await rig.begin('remind');
			expect((await rig.stored(taskId)).result).toMatchObject({ isError: true });
		}
	});
});
