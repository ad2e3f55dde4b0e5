import type { TaskStatus } from '../protocol/status.ts';
import type { TaskDetails, TaskRecord, TaskStep } from './record.ts';

/** How much a write must survive. Both survive the death of the process. */
export type Durability =
	/** Also a power cut: for creation, terminal statuses, steps, questions, answers and cancels. */
	| 'full'
	/** A power cut may lose it: for progress and claims. */
	| 'normal';

/** How many tasks may exist. */
export interface TaskLimits {
	/** Tasks of one principal that have not ended. */
	readonly maxOpenPerPrincipal: number;
	/** Tasks of all principals that have not ended. */
	readonly maxOpen: number;
	/** Ended tasks of one principal that are kept; the oldest make room. */
	readonly maxKeptPerPrincipal: number;
}

/** What became of a create. */
export type CreateOutcome =
	| { readonly kind: 'created' }
	/** The principal already has a task with this idempotency key; nothing was written. */
	| { readonly kind: 'exists'; readonly record: TaskRecord }
	/** A limit was reached; nothing was written. */
	| { readonly kind: 'limit'; readonly scope: 'principal' | 'total'; readonly limit: number };

/** Which tasks to list, newest first. */
export interface TaskQuery {
	readonly principal: string | null;
	/** Null is every status. */
	readonly statuses: readonly TaskStatus[] | null;
	readonly limit: number;
	/** From an earlier page; null is the first page. */
	readonly cursor: string | null;
}

/** One page of a list. Records come without `result`. */
export interface TaskPage {
	readonly records: readonly TaskRecord[];
	/** Null on the last page. */
	readonly nextCursor: string | null;
}

/** A lease that is to go on. */
export interface LeaseClaim {
	readonly taskId: string;
	readonly token: string;
}

/** A lease that goes on, and the record's revision, so that its holder sees a change it was not told of. */
export interface HeldLease {
	readonly taskId: string;
	readonly revision: number;
}

/**
 * What survives a crash. The engine decides every change; a store only writes it where nothing else
 * changed the task meanwhile. All methods reject with `STORE_UNUSABLE` when the storage fails, having
 * changed nothing.
 */
export interface TaskStore {
	/** The clock that decides leases and deadlines on every machine, in milliseconds since the epoch. */
	nowMs(): Promise<number>;
	/** Writes a new task with `full` durability, if the limits allow and its idempotency key is free. */
	create(details: TaskDetails, limits: TaskLimits): Promise<CreateOutcome>;
	/** One record by id. */
	get(taskId: string): Promise<TaskRecord | undefined>;
	/** One record with arguments and journal. */
	load(taskId: string): Promise<TaskDetails | undefined>;
	/**
	 * Writes `record` where the stored revision is `record.revision - 1`. False, having changed nothing,
	 * where it is not, or where the task is gone. `taskId`, `tool`, `principal`, `idempotencyKey` and
	 * `createdAtMs` never change.
	 */
	replace(record: TaskRecord, durability: Durability): Promise<boolean>;
	/**
	 * Adds a finished step with `full` durability and marks the record as journalled (without a new
	 * revision), where the task is leased under this token. False, having changed nothing, where it is
	 * not. A name that is there already keeps its first value.
	 */
	saveStep(taskId: string, token: string, step: TaskStep): Promise<boolean>;
	/**
	 * Moves the expiry of these leases (and `dueAtMs` with it) without a new revision. Answers those that
	 * are still held under their token, also where they had lapsed; all others are lost.
	 */
	renew(leases: readonly LeaseClaim[], expiresAtMs: number): Promise<readonly HeldLease[]>;
	/** Ids of tasks whose `dueAtMs` has come, longest overdue first. */
	due(nowMs: number, limit: number): Promise<readonly string[]>;
	list(query: TaskQuery): Promise<TaskPage>;
	/** Forgets a task where its revision is this one. */
	remove(taskId: string, revision: number): Promise<boolean>;
}
