import type { Lease, OpenInput, TaskProgress, TaskRecord } from '../backend/record.ts';
import type { JsonObject } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import { isTerminal } from '../protocol/status.ts';
import type { InputRequest, InputResponses, WireError } from '../protocol/task.ts';
import { dueAtMs, keptUntilMs } from './deadlines.ts';

/** Something that happens to a task. Those with a `token` come from the worker that holds the lease. */
export type TaskEvent =
	/** A worker takes it. */
	| { readonly type: 'claim'; readonly lease: Lease }
	/** The handler journalled something after a crash: the crash is behind it. */
	| { readonly type: 'steady'; readonly token: string }
	| {
			readonly type: 'progress';
			readonly token: string;
			readonly progress: TaskProgress;
			readonly statusMessage: string;
	  }
	| {
			readonly type: 'ask';
			readonly token: string;
			readonly key: string;
			readonly request: InputRequest;
			readonly statusMessage: string;
	  }
	| { readonly type: 'answer'; readonly responses: InputResponses }
	| { readonly type: 'cancel' }
	/** The worker lets go while the task waits; null is until it is answered. `openInputs` is how many it knew of. */
	| {
			readonly type: 'park';
			readonly token: string;
			readonly runAtMs: number | null;
			readonly openInputs: number;
	  }
	/** The handler threw and is to be entered again. */
	| {
			readonly type: 'retry';
			readonly token: string;
			readonly runAtMs: number;
			readonly statusMessage: string;
	  }
	/** The worker shuts down before the handler ended. */
	| { readonly type: 'interrupt'; readonly token: string }
	/** The worker cannot run it after all: it is stopping, or does not know the tool; another one may. */
	| {
			readonly type: 'release';
			readonly token: string;
			readonly runAtMs: number;
			readonly isUnknown: boolean;
	  }
	| { readonly type: 'complete'; readonly token: string; readonly result: JsonObject }
	| { readonly type: 'fail'; readonly token: string; readonly error: WireError }
	/** The handler stopped because of a cancel, or was abandoned. */
	| { readonly type: 'stopped'; readonly token: string }
	/** Somebody knows that the worker which holds the lease is dead. */
	| { readonly type: 'died'; readonly token: string }
	/** Time has passed. */
	| { readonly type: 'sweep' };

/** Why an event changes nothing. */
export type Refusal =
	/** The task has ended; its status is never rewritten (T24). */
	| 'terminal'
	/** The worker's lease is not the task's any more. */
	| 'lease_lost'
	/** The task is leased, or waits for something. */
	| 'not_runnable'
	/** The key already belongs to another question (T31). */
	| 'key_reused'
	/** There is nothing to change. */
	| 'unchanged';

/** What an event makes of a record. */
export type Transition =
	| { readonly kind: 'changed'; readonly record: TaskRecord }
	| { readonly kind: 'refused'; readonly refusal: Refusal };

type Patch = Partial<Omit<TaskRecord, 'taskId' | 'tool' | 'principal' | 'revision' | 'dueAtMs'>>;

const WORKER_DIED = 'The worker that ran the tool died';

const ENDED: Patch = { lease: null, runAtMs: null, openInputs: {} };

/**
 * Every rule of the state machine: what `event` makes of `record` at `nowMs`. Pure. The changed record has
 * the next revision, its deadlines recomputed, and differs in status only along an allowed arc.
 */
export function transition(record: TaskRecord, event: TaskEvent, nowMs: number): Transition {
	if (isTerminal(record.status)) return refused('terminal');
	if ('token' in event && record.lease?.token !== event.token) return refused('lease_lost');
	const outcome = decide(record, event, nowMs);
	if (typeof outcome === 'string') return refused(outcome);
	// A worker that says anything else than that it does not know the tool, knows it.
	const isKnown = 'token' in event && event.type !== 'release' && event.type !== 'died';
	return changed(record, isKnown ? { ...outcome, releasedSinceMs: null } : outcome, nowMs);
}

function decide(record: TaskRecord, event: TaskEvent, nowMs: number): Patch | Refusal {
	switch (event.type) {
		case 'claim':
			if (record.lease !== null || record.runAtMs === null || record.runAtMs > nowMs) return 'not_runnable';
			return { lease: event.lease, runAtMs: null, attempt: record.attempt + 1 };
		case 'steady':
			return record.crashes === 0 ? 'unchanged' : { crashes: 0 };
		case 'progress':
			return { progress: event.progress, statusMessage: event.statusMessage };
		case 'ask':
			return ask(record, event.key, event.request, event.statusMessage, nowMs);
		case 'answer':
			return answer(record, event.responses, nowMs);
		case 'cancel':
			if (record.cancelRequestedAtMs !== null) return 'unchanged';
			return record.lease === null
				? cancelled(nowMs)
				: { cancelRequestedAtMs: nowMs, statusMessage: 'Stopping: a cancel was requested' };
		case 'park':
			if (record.cancelRequestedAtMs !== null) return cancelled(nowMs);
			return { lease: null, crashes: 0, runAtMs: parkedUntilMs(record, event, nowMs) };
		case 'retry':
			if (record.cancelRequestedAtMs !== null) return cancelled(nowMs);
			return {
				...{ lease: null, crashes: 0, retries: record.retries + 1 },
				...{ runAtMs: event.runAtMs, statusMessage: event.statusMessage },
			};
		case 'interrupt':
			return lapsed(record, 0, 'The server shut down while the tool was running', nowMs);
		case 'release':
			if (record.cancelRequestedAtMs !== null) return cancelled(nowMs);
			return {
				...{ lease: null, runAtMs: event.runAtMs, attempt: record.attempt - 1 },
				releasedSinceMs: event.isUnknown ? (record.releasedSinceMs ?? nowMs) : null,
			};
		case 'complete':
			return {
				...{ ...ENDED, status: 'completed', result: event.result },
				statusMessage: event.result['isError'] === true ? 'The tool reported an error' : 'Done',
			};
		case 'fail':
			return failed(event.error);
		case 'stopped':
			return cancelled(nowMs);
		case 'died':
			return lapsed(record, 1, WORKER_DIED, nowMs);
		case 'sweep':
			return sweep(record, nowMs);
	}
}

function ask(
	record: TaskRecord,
	key: string,
	request: InputRequest,
	statusMessage: string,
	nowMs: number,
): Patch | Refusal {
	const open = own(record.openInputs, key);
	if (open) return sameRequest(open.request, request) ? 'unchanged' : 'key_reused';
	if (own(record.inputResponses, key)) return 'key_reused';
	const input: OpenInput = { request, askedAtMs: nowMs, deadlineAtMs: nowMs + record.policy.inputWaitMs };
	return {
		...{ status: 'input_required', statusMessage, journalled: true, crashes: 0 },
		openInputs: withEntry(record.openInputs, key, input),
		waitingSinceMs: record.waitingSinceMs ?? nowMs,
	};
}

/** Unknown, answered and late keys are ignored (T32); the rest stays outstanding (T30). */
function answer(record: TaskRecord, responses: InputResponses, nowMs: number): Patch | Refusal {
	const accepted = Object.keys(responses).filter((key) => own(record.openInputs, key));
	if (accepted.length === 0) return 'unchanged';
	const left = Object.entries(record.openInputs).filter(([key]) => !accepted.includes(key));
	let inputResponses = record.inputResponses;
	for (const key of accepted) inputResponses = withEntry(inputResponses, key, responses[key] ?? {});
	// A parked handler may wait for any of its questions, not only for all of them.
	const woken = record.lease === null ? { runAtMs: nowMs } : {};
	if (left.length > 0) return { inputResponses, openInputs: Object.fromEntries(left), ...woken };
	const statusMessage = 'Answered, going on';
	const waitedMs = record.waitedMs + nowMs - (record.waitingSinceMs ?? nowMs);
	return {
		...{ inputResponses, openInputs: {}, waitedMs, waitingSinceMs: null },
		...{ status: 'working', statusMessage, ...woken },
	};
}

function sweep(record: TaskRecord, nowMs: number): Patch | Refusal {
	if (record.lease !== null && record.lease.expiresAtMs <= nowMs)
		return lapsed(record, 1, WORKER_DIED, nowMs);
	const missed = Object.entries(record.openInputs).find(([, input]) => input.deadlineAtMs <= nowMs);
	if (missed)
		return failed(internalError(`No answer to "${missed[0]}" came in time`, { reason: 'input_expired' }));
	return keptUntilMs(record, nowMs) > record.createdAtMs + record.ttlMs ? {} : 'unchanged';
}

/** A worker is gone in the middle of the work. */
function lapsed(record: TaskRecord, crash: 0 | 1, what: string, nowMs: number): Patch {
	if (record.cancelRequestedAtMs !== null) return cancelled(nowMs);
	const crashes = record.crashes + crash;
	const { resume, maxCrashes } = record.policy;
	if (resume === 'never' || (resume === 'journalled' && !record.journalled))
		return failed(
			internalError(`${what}; the outcome is unknown. Check before calling it again.`, {
				reason: 'outcome_unknown',
			}),
		);
	if (crashes >= maxCrashes)
		return failed(internalError(`${what}, ${crashes} times in a row`, { reason: 'crash_loop' }));
	const statusMessage = waits(record) ? record.statusMessage : `${what}; going on where it was`;
	return { lease: null, crashes, runAtMs: nowMs, statusMessage };
}

/** An answer that came while the worker was letting go is acted upon at once. */
function parkedUntilMs(
	record: TaskRecord,
	event: TaskEvent & { type: 'park' },
	nowMs: number,
): number | null {
	const answered = Object.keys(record.openInputs).length < event.openInputs;
	return answered ? nowMs : (event.runAtMs ?? (waits(record) ? null : nowMs));
}

function waits(record: TaskRecord): boolean {
	return Object.keys(record.openInputs).length > 0;
}

function failed(error: WireError): Patch {
	return { ...ENDED, status: 'failed', error, statusMessage: error.message };
}

function cancelled(nowMs: number): Patch {
	return { ...ENDED, status: 'cancelled', statusMessage: 'Cancelled', cancelRequestedAtMs: nowMs };
}

function internalError(message: string, data: JsonObject): WireError {
	return { code: WIRE_CODES.internalError, message, data };
}

function changed(record: TaskRecord, patch: Patch, nowMs: number): Transition {
	// Time never runs backwards on a record, whichever machine writes it.
	const lastUpdatedAtMs = Math.max(nowMs, record.lastUpdatedAtMs);
	const next = { ...record, ...patch, revision: record.revision + 1, lastUpdatedAtMs };
	const ttlMs = keptUntilMs(next, lastUpdatedAtMs) - next.createdAtMs;
	return { kind: 'changed', record: { ...next, ttlMs, dueAtMs: dueAtMs({ ...next, ttlMs }) } };
}

function refused(refusal: Refusal): Transition {
	return { kind: 'refused', refusal };
}

/** An own property only: keys come from clients, `__proto__` and `constructor` among them. */
function own<T>(entries: Readonly<Record<string, T>>, key: string): T | undefined {
	return Object.hasOwn(entries, key) ? entries[key] : undefined;
}

function withEntry<T>(entries: Readonly<Record<string, T>>, key: string, value: T): Record<string, T> {
	return Object.fromEntries([...Object.entries(entries), [key, value]]);
}

function sameRequest(a: InputRequest, b: InputRequest): boolean {
	return JSON.stringify(a) === JSON.stringify(b);
}
