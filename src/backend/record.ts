import type { InputCapabilities } from '../protocol/capabilities.ts';
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import type { TaskStatus } from '../protocol/status.ts';
import type { InputRequest, InputResponses, WireError } from '../protocol/task.ts';

/** A worker's time-limited right to run a task. */
export interface Lease {
	/** Which process holds it; for people and logs. */
	readonly owner: string;
	/** Unguessable and new for every claim: what fences out a worker that lost its lease. */
	readonly token: string;
	/** Milliseconds since the epoch, on the store's clock. */
	readonly expiresAtMs: number;
}

/**
 * What may happen when a worker dies in the middle of a task: enter the handler again always, only when
 * it journalled something (a step, a question, a sleep), or never.
 */
export type ResumePolicy = 'always' | 'journalled' | 'never';

/** What a handler's thrown errors do when retries were asked for. */
export interface RetryPolicy {
	/** How often the handler is entered because of thrown errors, the first time included. At least 1. */
	readonly maxAttempts: number;
	/** Milliseconds before the second attempt; doubled for each further one. */
	readonly backoffMs: number;
	/** Upper bound of the doubled wait, in milliseconds. */
	readonly maxBackoffMs: number;
}

/** A tool's options as they were when the task was created; a later deployment does not change them. */
export interface TaskPolicy {
	readonly resume: ResumePolicy;
	readonly retry: RetryPolicy;
	/** How long such a call usually takes, in milliseconds; null when unknown. */
	readonly estimateMs: number | null;
	/** Bounds of the poll interval given to clients, in milliseconds. */
	readonly minPollIntervalMs: number;
	readonly maxPollIntervalMs: number;
	/** How long the task stays readable after it ended, in milliseconds. */
	readonly retentionMs: number;
	/** How long a question waits for its answer before the task fails, in milliseconds. */
	readonly inputWaitMs: number;
	/** How long a waiting handler is kept in memory before it is parked, in milliseconds. */
	readonly parkAfterMs: number;
	/** How long a handler may take to stop after a cancel before it is abandoned, in milliseconds. */
	readonly cancelGraceMs: number;
	/** How many crashed workers in a row end the task as `failed`. */
	readonly maxCrashes: number;
}

/** The last thing a handler said about how far it is. */
export interface TaskProgress {
	readonly progress: number;
	readonly total?: number;
	readonly message?: string;
	/** When asking again is worth it, in milliseconds; what the task's own pace says where absent. */
	readonly pollIntervalMs?: number;
}

/** A question that was asked and not answered yet. */
export interface OpenInput {
	readonly request: InputRequest;
	/** Milliseconds since the epoch. */
	readonly askedAtMs: number;
	/** Milliseconds since the epoch at which the task fails for want of an answer. */
	readonly deadlineAtMs: number;
}

/** What is stored for one task, without its arguments and journal: a superset of the wire's Task. */
export interface TaskRecord {
	readonly taskId: string;
	/** Compare-and-set number: every stored change raises it by exactly one. Renewing a lease does not. */
	readonly revision: number;
	readonly tool: string;
	/** Who the task belongs to. */
	readonly principal: string;
	readonly idempotencyKey: string | null;
	/** Digest of the arguments, to tell a repeated call from another one with the same key; empty without a key. */
	readonly argumentsDigest: string;
	readonly status: TaskStatus;
	readonly statusMessage: string | null;
	readonly progress: TaskProgress | null;
	/** Milliseconds since the epoch, as every field that ends in `AtMs`. */
	readonly createdAtMs: number;
	readonly lastUpdatedAtMs: number;
	/** Milliseconds after `createdAtMs` for which the task is kept; grows while the task lives. */
	readonly ttlMs: number;
	readonly policy: TaskPolicy;
	/** What the client that called can be asked for. */
	readonly inputCapabilities: InputCapabilities;
	/** Outstanding questions by key; empty unless `input_required`. */
	readonly openInputs: Readonly<Record<string, OpenInput>>;
	/** Every answer of the task's life by key: the handler's journal of its questions. */
	readonly inputResponses: InputResponses;
	/** How long the task has waited for answers so far, in milliseconds, without the wait that goes on. */
	readonly waitedMs: number;
	/** Since when it waits for answers; null when it does not. */
	readonly waitingSinceMs: number | null;
	/** Whether the handler journalled anything yet, so that entering it again repeats no finished step. */
	readonly journalled: boolean;
	/** How often a handler was entered for this task. */
	readonly attempt: number;
	/** How many thrown errors were retried. */
	readonly retries: number;
	/** How many workers in a row died or vanished while they ran it. */
	readonly crashes: number;
	/** Since when no worker that claimed it knew its tool; null when the last one did. */
	readonly releasedSinceMs: number | null;
	readonly lease: Lease | null;
	/** When a worker may claim it; null while it is leased, waits for input, or has ended. */
	readonly runAtMs: number | null;
	/** When the sweeper must look at it next: lapsed lease, missed answer, expiry. */
	readonly dueAtMs: number;
	readonly cancelRequestedAtMs: number | null;
	/** What the call would have returned; only when `completed`. */
	readonly result: JsonObject | null;
	/** The JSON-RPC error; only when `failed`. */
	readonly error: WireError | null;
	/** Trace context of the call that created it (`traceparent`, `tracestate`, `baggage`), and nothing else. */
	readonly trace: Readonly<Record<string, string>>;
}

/** One finished step of a handler. */
export interface TaskStep {
	/** Unique within the task. */
	readonly name: string;
	readonly value: JsonValue;
}

/** Everything a worker needs to run a task. */
export interface TaskDetails {
	readonly record: TaskRecord;
	/** The arguments as they came over the wire. */
	readonly arguments: JsonObject;
	/** What the tool decided before the task was created; null when it has no such stage. */
	readonly prepared: JsonValue;
	/** In the order in which they finished. */
	readonly steps: readonly TaskStep[];
}
