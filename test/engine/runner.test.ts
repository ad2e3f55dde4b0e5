import { describe, expect, it } from 'vitest';
import { TaskFailure } from '../../src/errors.ts';
import { settle } from '../../src/testing/fake-clock.ts';
import { gate, HOUR_MS, MINUTE_MS, POLICY, SECOND_MS, startRig, text } from '../support/engine-rig.ts';

describe('a handler', () => {
	it('is entered at once and what it returns is the result', async () => {
		const rig = startRig({ tools: { build: () => text('built') } });
		const taskId = await rig.begin('build');
		expect(await rig.stored(taskId)).toMatchObject({
			status: 'completed',
			result: text('built'),
			attempt: 1,
		});
		expect(rig.engine.running).toBe(0);
	});

	it('finds its arguments, what was prepared, its principal and its attempt', async () => {
		const seen: unknown[] = [];
		const rig = startRig({
			tools: {
				build: ({ taskId, principal, prepared, attempt }, details) => {
					seen.push({ taskId, principal, prepared, attempt, arguments: details.arguments });
					return text('built');
				},
			},
		});
		const taskId = await rig.begin('build', {}, { arguments: { branch: 'main' }, prepared: { plan: 1 } });
		expect(seen).toEqual([
			{ taskId, principal: 'alice', prepared: { plan: 1 }, attempt: 1, arguments: { branch: 'main' } },
		]);
	});

	it('leaves nothing in the store when its call was not kept', async () => {
		const rig = startRig({ tools: { build: () => text('built') } });
		const call = await rig.call('build', { keepFirst: false });
		await settle();
		expect(call.kept).toBe(false);
		expect((await call.current()).status).toBe('completed');
		expect(await rig.backend.store.get(call.taskId)).toBeUndefined();
	});

	it('T22: that throws an ordinary error completes its task with isError', async () => {
		const rig = startRig({
			tools: {
				build: () => {
					throw new Error('no such branch');
				},
			},
		});
		const record = await rig.stored(await rig.begin('build'));
		expect(record.status).toBe('completed');
		expect(record.result).toMatchObject({
			isError: true,
			content: [{ type: 'text', text: 'no such branch' }],
		});
	});

	it('T22: that throws a TaskFailure fails its task with exactly that JSON-RPC error', async () => {
		const rig = startRig({
			tools: {
				build: () => {
					throw new TaskFailure(-32099, 'quota used up', { left: 0 });
				},
			},
		});
		const record = await rig.stored(await rig.begin('build'));
		expect(record).toMatchObject({
			status: 'failed',
			error: { code: -32099, message: 'quota used up', data: { left: 0 } },
		});
	});

	it('that returns no JSON object ends with a tool error', async () => {
		const cycle: Record<string, never> = {};
		Reflect.set(cycle, 'self', cycle);
		const rig = startRig({ tools: { build: () => cycle } });
		expect(await rig.stored(await rig.begin('build'))).toMatchObject({
			status: 'completed',
			result: { isError: true },
		});
	});
});

describe('a step', () => {
	it('is run once though the handler is entered twice', async () => {
		const runs: string[] = [];
		const rig = startRig({
			tools: {
				build: async (task) => {
					const first = await task.step('first', () => runs.push('first'));
					if (task.attempt === 1) throw new Error('flaky');
					return text(`first was ${first}`);
				},
			},
		});
		const taskId = await rig.begin('build', { retry: { maxAttempts: 2, backoffMs: 0, maxBackoffMs: 0 } });
		await rig.clock.advance(SECOND_MS);
		expect(runs).toEqual(['first']);
		expect((await rig.stored(taskId)).result).toEqual(text('first was 1'));
	});

	it('that throws records nothing', async () => {
		let runs = 0;
		const rig = startRig({
			tools: {
				build: async (task) => {
					await task.step('first', () => {
						runs += 1;
						if (runs === 1) throw new Error('flaky');
					});
					return text('built');
				},
			},
		});
		const taskId = await rig.begin('build', { retry: { maxAttempts: 2, backoffMs: 0, maxBackoffMs: 0 } });
		await rig.clock.advance(SECOND_MS);
		expect(runs).toBe(2);
		expect((await rig.stored(taskId)).result).toEqual(text('built'));
	});

	it('refuses what is not JSON', async () => {
		const rig = startRig({
			tools: {
				build: async (task) => {
					await task.step('first', () => 1n as unknown as number);
					return text('built');
				},
			},
		});
		const { result } = await rig.stored(await rig.begin('build'));
		expect(result).toMatchObject({ isError: true });
		expect(JSON.stringify(result)).toContain('first');
	});

	it('keeps its first value where two of one name run at once, now as well as after a restart', async () => {
		const rig = startRig({
			tools: {
				build: async (task) => {
					const values = await Promise.all([task.step('same', () => 'a'), task.step('same', () => 'b')]);
					const later = await task.step('same', () => 'c');
					return text([...values, later].join(' '));
				},
			},
		});
		const taskId = await rig.begin('build');
		const stored = await rig.backend.store.load(taskId);
		expect(stored?.steps).toEqual([{ name: 'same', value: 'a' }]);
		expect(stored?.record.result).toEqual(text('a a a'));
	});
});

describe('retries', () => {
	const flaky = (failures: number) => {
		let runs = 0;
		return () => {
			runs += 1;
			if (runs <= failures) throw new Error(`failure ${runs}`);
			return text(`run ${runs}`);
		};
	};

	it('do not happen unless they were asked for', async () => {
		const rig = startRig({ tools: { build: flaky(1) } });
		const taskId = await rig.begin('build');
		await rig.clock.advance(MINUTE_MS);
		expect((await rig.stored(taskId)).result).toMatchObject({ isError: true });
	});

	it('wait twice as long each time, up to a bound, holding no worker', async () => {
		const rig = startRig({ tools: { build: flaky(4) } });
		const taskId = await rig.begin('build', {
			retry: { maxAttempts: 5, backoffMs: SECOND_MS, maxBackoffMs: 3 * SECOND_MS },
		});
		for (const waitMs of [SECOND_MS, 2 * SECOND_MS, 3 * SECOND_MS, 3 * SECOND_MS]) {
			const waiting = await rig.stored(taskId);
			expect(waiting).toMatchObject({ status: 'working', lease: null });
			expect(waiting.runAtMs).toBe(rig.clock.nowMs() + waitMs);
			expect(rig.engine.running).toBe(0);
			await rig.clock.advance(waitMs - 1);
			expect((await rig.stored(taskId)).revision).toBe(waiting.revision);
			await rig.clock.advance(1);
		}
		expect(await rig.stored(taskId)).toMatchObject({
			status: 'completed',
			result: text('run 5'),
			attempt: 5,
		});
	});

	it('end with the last error when all of them failed', async () => {
		const rig = startRig({ tools: { build: flaky(9) } });
		const taskId = await rig.begin('build', { retry: { maxAttempts: 3, backoffMs: 0, maxBackoffMs: 0 } });
		await rig.clock.advance(SECOND_MS);
		expect(await rig.stored(taskId)).toMatchObject({
			status: 'completed',
			result: { isError: true, content: [{ text: 'failure 3' }] },
			attempt: 3,
		});
	});

	it('do not happen after a TaskFailure', async () => {
		let runs = 0;
		const rig = startRig({
			tools: {
				build: () => {
					runs += 1;
					throw new TaskFailure(-32000, 'final');
				},
			},
		});
		const taskId = await rig.begin('build', { retry: { maxAttempts: 3, backoffMs: 0, maxBackoffMs: 0 } });
		await rig.clock.advance(SECOND_MS);
		expect(runs).toBe(1);
		expect((await rig.stored(taskId)).status).toBe('failed');
	});

	it('happen also for a call that nobody asked to keep', async () => {
		const rig = startRig({ tools: { build: flaky(1) } });
		const call = await rig.call('build', {
			keepFirst: false,
			policy: { ...POLICY, retry: { maxAttempts: 2, backoffMs: 0, maxBackoffMs: 0 } },
		});
		await rig.clock.advance(MINUTE_MS);
		expect((await call.current()).result).toEqual(text('run 2'));
	});
});

describe('concurrency', () => {
	it('keeps calls beyond it in the store and runs them as room comes', async () => {
		const gates = [gate(), gate(), gate()];
		const entered: number[] = [];
		const rig = startRig({
			concurrency: 1,
			tools: {
				build: async (_task, details) => {
					const index = Number(details.arguments['index']);
					entered.push(index);
					await gates[index]?.opened;
					return text(`built ${index}`);
				},
			},
		});
		const ids: string[] = [];
		for (const index of [0, 1, 2]) ids.push(await rig.begin('build', {}, { arguments: { index } }));
		expect(entered).toEqual([0]);
		const queued = await rig.stored(ids[1] ?? '');
		expect(queued).toMatchObject({ status: 'working', lease: null, attempt: 0 });
		expect(queued.statusMessage).toContain('Waiting for a free worker');
		for (const index of [0, 1, 2]) {
			gates[index]?.open();
			await settle();
		}
		expect(entered).toEqual([0, 1, 2]);
		for (const taskId of ids) expect((await rig.stored(taskId)).status).toBe('completed');
	});

	it('holds when many calls come at once', async () => {
		const rig = startRig({
			concurrency: 2,
			tools: { build: async () => gate().opened.then(() => text('never')) },
		});
		await Promise.all(Array.from({ length: 6 }, () => rig.call('build')));
		await settle();
		expect(rig.engine.running).toBe(2);
	});

	it('is shared out by the store: what one process has no room for another one runs', async () => {
		const first = startRig({
			concurrency: 1,
			owner: 'first',
			tools: { build: async () => gate().opened.then(() => text('never')) },
		});
		const second = first.second({ owner: 'second', tools: { build: () => text('built by the second') } });
		await first.begin('build');
		const taskId = await first.begin('build');
		expect((await second.stored(taskId)).result).toEqual(text('built by the second'));
	});
});

describe('a tool that no worker knows', () => {
	it('is waited for, and found when a worker that knows it comes', async () => {
		const old = startRig({ tools: {} });
		const taskId = await old.begin('build');
		await old.clock.advance(10 * SECOND_MS);
		expect((await old.stored(taskId)).status).toBe('working');
		await old.engine.stop(0);
		old.second({ tools: { build: () => text('built') } });
		await old.clock.advance(5 * SECOND_MS);
		expect(await old.stored(taskId)).toMatchObject({
			status: 'completed',
			result: text('built'),
			attempt: 1,
		});
	});

	it('fails after a minute, saying so', async () => {
		const rig = startRig({ tools: {} });
		const taskId = await rig.begin('build');
		await rig.clock.advance(2 * MINUTE_MS);
		const record = await rig.stored(taskId);
		expect(record.status).toBe('failed');
		expect(record.error?.message).toContain('"build"');
	});

	it('is waited for also when the task is old: a new deployment comes up beside the old one', async () => {
		const tools = {
			build: async (task: { sleep(name: string, durationMs: number): Promise<void> }) => {
				await task.sleep('night', 8 * HOUR_MS);
				return text('built');
			},
		};
		const old = startRig({ tools, timing: { sweepMs: 10 * SECOND_MS, leaseMs: HOUR_MS, renewMs: HOUR_MS } });
		const taskId = await old.begin('build');
		await old.clock.advance(7 * HOUR_MS);
		await old.engine.stop(0);
		const without = old.second({ tools: {} });
		await old.clock.advance(HOUR_MS + 10 * SECOND_MS);
		await without.engine.stop(0);
		old.second({ tools });
		await old.clock.advance(10 * SECOND_MS);
		expect(await old.stored(taskId)).toMatchObject({ status: 'completed', result: text('built') });
	});
});
