/** What holds for a task whatever happens to it, in whatever order. */
import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import type { TaskPolicy, TaskRecord } from '../../src/backend/record.ts';
import { dueAtMs, isExpired, keptUntilMs } from '../../src/engine/deadlines.ts';
import { DEFAULT_LIMITS } from '../../src/engine/options.ts';
import { type TaskEvent, transition } from '../../src/engine/transition.ts';
import { TaskWriter } from '../../src/engine/writer.ts';
import { isAllowedArc, isTerminal } from '../../src/protocol/status.ts';
import type { InputResponses } from '../../src/protocol/task.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { ANY_INPUT, DAY_MS, HOUR_MS, POLICY } from '../support/engine-rig.ts';

const START_MS = Date.UTC(2026, 6, 28);
const LEASE_MS = 8_000;
/** Keys that would do harm as plain property names are keys like any other. */
const KEYS = ['approve', 'name', '__proto__', 'constructor', 'toString', ''] as const;

/** An event as a sequence draws it: tokens and instants are made real when its turn comes. */
type Drawn =
	| {
			readonly type: 'claim' | 'steady' | 'cancel' | 'interrupt' | 'died' | 'stopped' | 'sweep';
			readonly stale: boolean;
	  }
	| { readonly type: 'progress' | 'complete' | 'fail'; readonly stale: boolean; readonly words: string }
	| { readonly type: 'ask'; readonly stale: boolean; readonly key: string; readonly words: string }
	| { readonly type: 'answer'; readonly keys: readonly string[] }
	| { readonly type: 'park'; readonly stale: boolean; readonly waitMs: number | null }
	| { readonly type: 'retry' | 'release'; readonly stale: boolean; readonly waitMs: number };

interface Turn {
	readonly event: Drawn;
	/** Time that passes before it; negative where a clock was set back. */
	readonly passesMs: number;
	/** Whether the holder renewed its lease meanwhile. */
	readonly renewed: boolean;
}

const stale = fc.integer({ min: 0, max: 5 }).map((one) => one === 0);
const key = fc.constantFrom(...KEYS);
const words = fc.string({ maxLength: 8 });
const waitMs = fc.oneof(fc.nat(10_000), fc.nat(10 * DAY_MS));

const drawn: fc.Arbitrary<Drawn> = fc.oneof(
	{
		weight: 6,
		arbitrary: fc.record({
			type: fc.constantFrom('claim' as const, 'sweep' as const),
			stale: fc.constant(false),
		}),
	},
	{
		weight: 2,
		arbitrary: fc.record({
			type: fc.constantFrom('steady' as const, 'interrupt' as const, 'died' as const),
			stale,
		}),
	},
	{
		weight: 1,
		arbitrary: fc.record({ type: fc.constantFrom('cancel' as const, 'stopped' as const), stale }),
	},
	{
		weight: 2,
		arbitrary: fc.record({
			type: fc.constantFrom('progress' as const, 'complete' as const, 'fail' as const),
			stale,
			words,
		}),
	},
	{ weight: 5, arbitrary: fc.record({ type: fc.constant('ask' as const), stale, key, words }) },
	{
		weight: 5,
		arbitrary: fc.record({
			type: fc.constant('answer' as const),
			keys: fc.uniqueArray(key, { maxLength: 3 }),
		}),
	},
	{
		weight: 3,
		arbitrary: fc.record({
			type: fc.constant('park' as const),
			stale,
			waitMs: fc.option(waitMs, { nil: null }),
		}),
	},
	{
		weight: 2,
		arbitrary: fc.record({ type: fc.constantFrom('retry' as const, 'release' as const), stale, waitMs }),
	},
);

const turns: fc.Arbitrary<readonly Turn[]> = fc.array(
	fc.record({
		event: drawn,
		passesMs: fc.oneof(
			fc.constant(0),
			fc.nat(2_000),
			fc.nat(LEASE_MS * 2),
			fc.nat(10 * DAY_MS),
			fc.integer({ min: -5_000, max: 0 }),
		),
		renewed: fc.boolean(),
	}),
	{ maxLength: 40 },
);

const policies: fc.Arbitrary<TaskPolicy> = fc
	.record({
		resume: fc.constantFrom('always' as const, 'journalled' as const, 'never' as const),
		retentionMs: fc.oneof(fc.integer({ min: 1_000, max: 10_001 }), fc.constant(DAY_MS)),
		inputWaitMs: fc.oneof(fc.integer({ min: 1_000, max: 60_000 }), fc.constant(7 * DAY_MS)),
		maxCrashes: fc.integer({ min: 1, max: 4 }),
	})
	.map((some) => ({ ...POLICY, ...some }));

const beginnings: fc.Arbitrary<TaskRecord> = fc
	.record({ policy: policies, leased: fc.boolean(), journalled: fc.boolean() })
	.map(({ policy, leased, journalled }) => newRecord(policy, leased, journalled));

function newRecord(policy: TaskPolicy, leased = false, journalled = false): TaskRecord {
	const record: TaskRecord = {
		taskId: 'task-1',
		revision: 1,
		tool: 'build',
		principal: 'alice',
		idempotencyKey: null,
		argumentsDigest: 'digest',
		status: 'working',
		statusMessage: null,
		progress: null,
		createdAtMs: START_MS,
		lastUpdatedAtMs: START_MS,
		ttlMs: policy.retentionMs,
		policy,
		inputCapabilities: ANY_INPUT,
		openInputs: {},
		inputResponses: {},
		journalled,
		attempt: leased ? 1 : 0,
		retries: 0,
		crashes: 0,
		releasedSinceMs: null,
		waitedMs: 0,
		waitingSinceMs: null,
		lease: leased ? { owner: 'first', token: 'lease-0', expiresAtMs: START_MS + LEASE_MS } : null,
		runAtMs: leased ? null : START_MS,
		dueAtMs: 0,
		cancelRequestedAtMs: null,
		result: null,
		error: null,
		trace: {},
	};
	return { ...record, dueAtMs: dueAtMs(record) };
}

/** An answer map with exactly these keys as its own, as `JSON.parse` would make it. */
function responsesTo(keys: readonly string[]): InputResponses {
	return Object.fromEntries(keys.map((name) => [name, { action: 'accept', content: { to: name } }]));
}

function realise(event: Drawn, record: TaskRecord, nowMs: number, serial: number): TaskEvent {
	const token = 'stale' in event && event.stale ? 'a-lease-of-long-ago' : (record.lease?.token ?? 'none');
	switch (event.type) {
		case 'claim':
			return {
				type: 'claim',
				lease: { owner: 'w', token: `lease-${serial}`, expiresAtMs: nowMs + LEASE_MS },
			};
		case 'cancel':
		case 'sweep':
			return { type: event.type };
		case 'steady':
		case 'interrupt':
		case 'died':
		case 'stopped':
			return { type: event.type, token };
		case 'progress':
			return { type: 'progress', token, progress: { progress: 1 }, statusMessage: event.words };
		case 'complete':
			return { type: 'complete', token, result: { content: [], words: event.words } };
		case 'fail':
			return { type: 'fail', token, error: { code: -32000, message: event.words } };
		case 'ask':
			return {
				type: 'ask',
				token,
				key: event.key,
				request: { method: 'elicitation/create', params: { message: event.words } },
				statusMessage: 'Asking',
			};
		case 'answer':
			return { type: 'answer', responses: responsesTo(event.keys) };
		case 'park':
			return {
				type: 'park',
				token,
				runAtMs: event.waitMs === null ? null : nowMs + event.waitMs,
				openInputs: 0,
			};
		case 'retry':
			return { type: 'retry', token, runAtMs: nowMs + event.waitMs, statusMessage: 'Again' };
		case 'release':
			return { type: 'release', token, runAtMs: nowMs + event.waitMs, isUnknown: true };
	}
}

/** Plays a sequence and shows each step to `check`. */
function play(
	first: TaskRecord,
	sequence: readonly Turn[],
	check: (before: TaskRecord, event: TaskEvent, after: TaskRecord, nowMs: number) => void,
): TaskRecord {
	let record = first;
	let nowMs = START_MS;
	sequence.forEach((turn, serial) => {
		nowMs = Math.max(START_MS, nowMs + turn.passesMs);
		if (turn.renewed && record.lease !== null) {
			const expiresAtMs = nowMs + LEASE_MS;
			record = { ...record, lease: { ...record.lease, expiresAtMs }, dueAtMs: expiresAtMs };
		}
		const event = realise(turn.event, record, nowMs, serial + 1);
		const outcome = transition(record, event, nowMs);
		const after = outcome.kind === 'changed' ? outcome.record : record;
		check(record, event, after, nowMs);
		record = after;
	});
	return record;
}

/** Holds in every sequence: each of these is looked at after each event. */
function holds(
	property: (before: TaskRecord, event: TaskEvent, after: TaskRecord, nowMs: number) => void,
): void {
	fc.assert(
		fc.property(beginnings, turns, (first, sequence) => void play(first, sequence, property)),
		{ numRuns: 2_000 },
	);
}

describe('whatever happens to a task', () => {
	test('T24: a terminal state is never rewritten', () => {
		holds((before, _event, after) => {
			if (isTerminal(before.status)) expect(after).toBe(before);
		});
	});

	test('T24: its status changes along the allowed arcs only', () => {
		holds((before, _event, after) => {
			if (before.status !== after.status) expect(isAllowedArc(before.status, after.status)).toBe(true);
		});
	});

	it('has the next revision after each change and the same one after each refusal', () => {
		holds((before, _event, after) => {
			expect(after.revision).toBe(after === before ? before.revision : before.revision + 1);
		});
	});

	it('keeps what identifies it', () => {
		holds((before, _event, after) => {
			const { taskId, tool, principal, idempotencyKey, createdAtMs, argumentsDigest } = before;
			expect(after).toMatchObject({ taskId, tool, principal, idempotencyKey, createdAtMs, argumentsDigest });
		});
	});

	test('T21: it is input_required exactly while a question is open', () => {
		holds((_before, _event, after) => {
			expect(after.status === 'input_required').toBe(Object.keys(after.openInputs).length > 0);
		});
	});

	test('T21: it has a result only when completed and an error only when failed', () => {
		holds((_before, _event, after) => {
			expect(after.result !== null).toBe(after.status === 'completed');
			expect(after.error !== null).toBe(after.status === 'failed');
		});
	});

	it('is never stuck: it is leased, or runnable, or waits for an answer, and is looked at in finite time', () => {
		holds((_before, _event, after) => {
			expect(Number.isFinite(after.dueAtMs)).toBe(true);
			if (isTerminal(after.status)) {
				expect(after).toMatchObject({ lease: null, runAtMs: null, openInputs: {} });
				return;
			}
			const ways = [
				after.lease !== null,
				after.runAtMs !== null,
				after.lease === null && after.runAtMs === null && after.status === 'input_required',
			];
			expect(ways.filter(Boolean)).toHaveLength(1);
			for (const open of Object.values(after.openInputs)) {
				if (after.lease === null) expect(after.dueAtMs).toBeLessThanOrEqual(open.deadlineAtMs);
			}
			if (after.lease !== null) expect(after.dueAtMs).toBe(after.lease.expiresAtMs);
		});
	});

	test('T25: while it lives it is never expired, and an end is readable for the whole retention time', () => {
		holds((_before, _event, after, nowMs) => {
			if (!isTerminal(after.status)) expect(isExpired(after, nowMs + 100 * DAY_MS)).toBe(false);
			else
				expect(after.createdAtMs + after.ttlMs).toBeGreaterThanOrEqual(
					after.lastUpdatedAtMs + after.policy.retentionMs,
				);
		});
	});

	test('T25: the life that is promised reaches beyond the next look of the sweeper and every deadline', () => {
		holds((before, _event, after, nowMs) => {
			if (after === before || isTerminal(after.status)) return;
			const promisedUntilMs = after.createdAtMs + after.ttlMs;
			expect(Number.isInteger(after.ttlMs)).toBe(true);
			expect(promisedUntilMs).toBeGreaterThanOrEqual(nowMs + after.policy.retentionMs / 2);
			for (const open of Object.values(after.openInputs))
				expect(promisedUntilMs).toBeGreaterThanOrEqual(open.deadlineAtMs + after.policy.retentionMs);
			if (after.lease === null) expect(after.dueAtMs).toBeLessThanOrEqual(promisedUntilMs);
		});
	});

	it('never goes back in time', () => {
		holds((before, _event, after) => {
			expect(after.lastUpdatedAtMs).toBeGreaterThanOrEqual(before.lastUpdatedAtMs);
		});
	});

	test('T31: an input key never gets a second question, and an answer is never lost or replaced', () => {
		holds((before, event, after) => {
			for (const [name, response] of Object.entries(before.inputResponses))
				expect(Object.getOwnPropertyDescriptor(after.inputResponses, name)?.value).toBe(response);
			if (event.type !== 'ask' || after === before) return;
			expect(Object.hasOwn(before.inputResponses, event.key)).toBe(false);
			expect(Object.hasOwn(before.openInputs, event.key)).toBe(false);
			expect(Object.hasOwn(after.openInputs, event.key)).toBe(true);
		});
	});

	test('T32: an answer is taken for open keys only, `__proto__` and `constructor` among them', () => {
		holds((before, event, after) => {
			if (event.type !== 'answer' || isTerminal(before.status)) return;
			const given = Object.keys(event.responses);
			const open = Object.keys(before.openInputs);
			const taken = given.filter((name) => open.includes(name));
			expect(after === before).toBe(taken.length === 0);
			expect(Object.keys(after.openInputs).sort()).toEqual(
				open.filter((name) => !taken.includes(name)).sort(),
			);
			expect(Object.keys(after.inputResponses).sort()).toEqual(
				[...Object.keys(before.inputResponses), ...taken].sort(),
			);
			expect(Object.getPrototypeOf(after.inputResponses)).toBe(Object.prototype);
		});
	});

	it('does not listen to a worker whose lease is not the current one', () => {
		holds((before, event, after) => {
			if ('token' in event && event.token !== before.lease?.token) expect(after).toBe(before);
		});
	});

	it('is claimed only when its time has come and nobody else has it', () => {
		holds((before, event, after, nowMs) => {
			if (event.type !== 'claim' || after === before) return;
			expect(before.lease).toBeNull();
			expect(before.runAtMs).not.toBeNull();
			expect(before.runAtMs).toBeLessThanOrEqual(nowMs);
			expect(after.attempt).toBe(before.attempt + 1);
		});
	});

	it('is never run again once a cancel was requested', () => {
		holds((_before, _event, after) => {
			if (after.cancelRequestedAtMs !== null && !isTerminal(after.status)) expect(after.lease).not.toBeNull();
		});
	});

	it('is not taken from a worker whose lease is still good', () => {
		holds((before, event, after, nowMs) => {
			if (event.type !== 'sweep' || before.lease === null || before.lease.expiresAtMs <= nowMs) return;
			if (!isTerminal(after.status)) expect(after.lease).toEqual(before.lease);
		});
	});

	it('is not entered again after a crash unless its policy allows it', () => {
		holds((before, event, after) => {
			const lost = ['interrupt', 'died', 'sweep'].includes(event.type);
			if (!lost || before.lease === null || after.lease !== null || after === before) return;
			const { resume } = before.policy;
			if (resume === 'never' || (resume === 'journalled' && !before.journalled))
				expect(isTerminal(after.status)).toBe(true);
		});
	});

	it('is not overdue any more after the sweeper looked at it twice', () => {
		holds((_before, event, after, nowMs) => {
			if (event.type !== 'sweep') return;
			const again = transition(after, event, nowMs);
			const last = again.kind === 'changed' ? again.record : after;
			if (!isTerminal(last.status)) expect(last.dueAtMs).toBeGreaterThan(nowMs);
		});
	});

	test('T24: every sequence can still be brought to an end', () => {
		fc.assert(
			fc.property(beginnings, turns, (first, sequence) => {
				let record = play(first, sequence, () => {});
				let nowMs = record.lastUpdatedAtMs;
				for (let round = 0; round < 200 && !isTerminal(record.status); round++) {
					nowMs = Math.max(nowMs, record.lease === null ? (record.runAtMs ?? record.dueAtMs) : nowMs) + 1;
					const claim = transition(
						record,
						realise({ type: 'claim', stale: false }, record, nowMs, 900 + round),
						nowMs,
					);
					if (claim.kind === 'changed') record = claim.record;
					const token = record.lease?.token ?? '';
					const done: TaskEvent =
						record.lease === null ? { type: 'sweep' } : { type: 'complete', token, result: { content: [] } };
					const outcome = transition(record, done, nowMs);
					if (outcome.kind === 'changed') record = outcome.record;
				}
				expect(isTerminal(record.status)).toBe(true);
			}),
			{ numRuns: 500 },
		);
	});
});

describe('several writers at once', () => {
	/** Endings that race: each worker with the lease, a client that cancels, a sweeper after the lease. */
	const endings: readonly TaskEvent[] = [
		{ type: 'complete', token: 'lease-0', result: { content: [] } },
		{ type: 'fail', token: 'lease-0', error: { code: -32000, message: 'no' } },
		{ type: 'stopped', token: 'lease-0' },
		{ type: 'cancel' },
		{ type: 'sweep' },
		{ type: 'complete', token: 'lease-of-a-zombie', result: { content: [] } },
	];
	const others: readonly TaskEvent[] = [
		{ type: 'progress', token: 'lease-0', progress: { progress: 1 }, statusMessage: 'one' },
		{
			type: 'ask',
			token: 'lease-0',
			key: '__proto__',
			request: { method: 'elicitation/create', params: { message: 'Really?' } },
			statusMessage: 'Asking',
		},
		{ type: 'answer', responses: responsesTo(['__proto__', 'constructor']) },
		{ type: 'park', token: 'lease-0', runAtMs: null, openInputs: 1 },
		{ type: 'interrupt', token: 'lease-0' },
	];

	test('T24: of all that race to end a task exactly one does', async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.scheduler(),
				fc.shuffledSubarray([...endings, ...others], { minLength: 2 }),
				fc.nat(2 * HOUR_MS),
				async (scheduler, events, lateMs) => {
					const clock = new FakeClock(START_MS);
					const backend = memory({ time: clock });
					const first = newRecord({ ...POLICY, resume: 'always' }, true, true);
					await backend.store.create(
						{ record: first, arguments: {}, prepared: null, steps: [] },
						DEFAULT_LIMITS,
					);
					clock.jump(lateMs);
					const terminals = new Set<string>();
					const told: number[] = [];
					backend.signals.subscribe((change) => void told.push(change.revision));
					const writer = new TaskWriter(
						{
							...backend,
							store: Object.assign(Object.create(backend.store) as typeof backend.store, {
								get: scheduler.scheduleFunction((taskId: string) => backend.store.get(taskId)),
								replace: scheduler.scheduleFunction(async (record: TaskRecord) => {
									const kept = await backend.store.replace(record, 'full');
									if (kept && isTerminal(record.status)) terminals.add(JSON.stringify(record));
									return kept;
								}),
							}),
						},
						clock,
					);
					const applied = events.map((event) => writer.apply(first.taskId, event));
					await scheduler.waitIdle();
					await Promise.all(applied);
					const last = await backend.store.get(first.taskId);
					expect(terminals.size).toBe(last && isTerminal(last.status) ? 1 : 0);
					if (terminals.size === 1) expect([...terminals]).toEqual([JSON.stringify(last)]);
					const revisions = Array.from({ length: (last?.revision ?? 1) - 1 }, (_, index) => index + 2);
					expect(told.sort((a, b) => a - b)).toEqual(revisions);
				},
			),
			{ numRuns: 300 },
		);
	});

	test('T30: answers of several clients to several questions are all kept', async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.scheduler(),
				fc.shuffledSubarray([...KEYS], { minLength: 2 }),
				async (scheduler, keys) => {
					const clock = new FakeClock(START_MS);
					const backend = memory({ time: clock });
					let asked = newRecord(POLICY, true);
					for (const name of keys) {
						const outcome = transition(
							asked,
							realise({ type: 'ask', stale: false, key: name, words: '?' }, asked, START_MS, 1),
							START_MS,
						);
						if (outcome.kind === 'changed') asked = outcome.record;
					}
					await backend.store.create(
						{ record: asked, arguments: {}, prepared: null, steps: [] },
						DEFAULT_LIMITS,
					);
					const writer = new TaskWriter(
						{
							...backend,
							store: Object.assign(Object.create(backend.store) as typeof backend.store, {
								get: scheduler.scheduleFunction((taskId: string) => backend.store.get(taskId)),
								replace: scheduler.scheduleFunction((record: TaskRecord) =>
									backend.store.replace(record, 'full'),
								),
							}),
						},
						clock,
					);
					const applied = keys.map((name) =>
						writer.apply(asked.taskId, { type: 'answer', responses: responsesTo([name]) }),
					);
					await scheduler.waitIdle();
					await Promise.all(applied);
					const last = await backend.store.get(asked.taskId);
					expect(Object.keys(last?.inputResponses ?? {}).sort()).toEqual([...keys].sort());
					expect(last).toMatchObject({ status: 'working', openInputs: {} });
				},
			),
			{ numRuns: 100 },
		);
	});
});

describe('a record that lives', () => {
	test('T25: is kept past its promised time when it is looked at late', () => {
		const record = newRecord({ ...POLICY, retentionMs: 1_001 });
		const late = record.createdAtMs + 50 * DAY_MS;
		const outcome = transition(record, { type: 'sweep' }, late);
		expect(outcome.kind).toBe('changed');
		if (outcome.kind === 'changed') expect(keptUntilMs(outcome.record, late)).toBeGreaterThan(late);
	});
});
