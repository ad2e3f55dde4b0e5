import type { Backend } from '../backend/backend.ts';
import type { TaskDetails, TaskRecord } from '../backend/record.ts';
import type { CreateOutcome, TaskLimits } from '../backend/store.ts';
import { HoldfastError } from '../errors.ts';
import type { JsonValue } from '../protocol/json.ts';
import type { Clock } from './clock.ts';
import { type TaskEvent, transition } from './transition.ts';
import type { Applied, TaskWriter } from './writer.ts';

/** What live tasks share. */
export interface LiveDeps {
	readonly backend: Backend;
	readonly writer: TaskWriter;
	readonly clock: Clock;
	readonly limits: TaskLimits;
	readonly leaseMs: number;
}

/**
 * A task whose handler this process runs. Until it is stored it lives in memory only, so that a call which
 * ends at once leaves nothing behind; from then on every change goes to the store first.
 */
export class LiveTask {
	readonly taskId: string;
	readonly token: string;
	readonly details: TaskDetails;
	readonly #deps: LiveDeps;
	readonly #steps: Map<string, JsonValue>;
	readonly #listeners = new Set<(record: TaskRecord) => void>();
	#record: TaskRecord;
	#stored: boolean;
	/** Set when storing begins, since from then on somebody may come to know the task. */
	#kept: boolean;
	#queue: Promise<unknown> = Promise.resolve();

	/** `details.record` holds the lease under which the task runs. */
	constructor(details: TaskDetails, stored: boolean, deps: LiveDeps) {
		const lease = details.record.lease;
		if (lease === null) throw new HoldfastError('LEASE_LOST', `Task ${details.record.taskId} is not leased`);
		this.taskId = details.record.taskId;
		this.token = lease.token;
		this.details = details;
		this.#deps = deps;
		this.#record = details.record;
		this.#stored = stored;
		this.#kept = stored;
		this.#steps = new Map(details.steps.map((step) => [step.name, step.value]));
	}

	/** The record as this process knows it. */
	get record(): TaskRecord {
		return this.#record;
	}

	/** Whether the record is in the store, so that the handle may be given. */
	get stored(): boolean {
		return this.#stored;
	}

	/** Whether the record is in the store, or on its way there. */
	get kept(): boolean {
		return this.#kept;
	}

	/** Calls `listener` after each change of the record that this process sees. */
	onChange(listener: (record: TaskRecord) => void): () => void {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	}

	/**
	 * Applies an event, one at a time; before the task is stored, in memory only. An event that is given as a
	 * function is decided upon when its turn comes; undefined changes nothing.
	 */
	apply(given: TaskEvent | (() => TaskEvent | undefined)): Promise<Applied> {
		return this.#inTurn(async () => {
			const event = typeof given === 'function' ? given() : given;
			if (!event) return { record: this.#record, refusal: 'unchanged' };
			if (this.#stored) {
				// Shown before it is told, so that nobody here reads again what this process wrote itself.
				const show = (record: TaskRecord): void => this.#show(record);
				const applied = await this.#deps.writer.apply(this.taskId, event, this.#renewed(), show);
				if (applied.refusal !== undefined && applied.record) this.#show(applied.record);
				return applied;
			}
			const outcome = transition(this.#record, event, this.#deps.clock.nowMs());
			if (outcome.kind === 'refused') return { record: this.#record, refusal: outcome.refusal };
			this.#show(outcome.record);
			return { record: outcome.record, refusal: undefined };
		});
	}

	/** Stores the task with everything it journalled so far. Throws `TASK_LIMIT` where there are too many. */
	store(): Promise<void> {
		this.#kept = true;
		return this.#inTurn(async () => {
			if (this.#stored) return;
			const record = this.#renewed();
			const steps = [...this.#steps].map(([name, value]) => ({ name, value }));
			const outcome = await this.#deps.backend.store.create(
				{ ...this.details, record, steps },
				this.#deps.limits,
			);
			if (outcome.kind === 'limit') throw limitError(outcome);
			// A call with an idempotency key is stored before its handler is entered.
			if (outcome.kind === 'exists') throw new Error('a task that runs unstored has an idempotency key');
			this.#stored = true;
			this.#show(record);
			this.#deps.writer.tell(record);
		});
	}

	/** The recorded value of a finished step, wrapped, since a step may return null. */
	step(name: string): { readonly value: JsonValue } | undefined {
		return this.#steps.has(name) ? { value: this.#steps.get(name) ?? null } : undefined;
	}

	/**
	 * Records a finished step and answers its value; a name that is there already keeps its first one. Throws
	 * `LEASE_LOST` when the task is not this worker's any more.
	 */
	saveStep(name: string, value: JsonValue): Promise<JsonValue> {
		return this.#inTurn(async () => {
			const first = this.step(name);
			if (first) return first.value;
			const kept =
				!this.#stored || (await this.#deps.backend.store.saveStep(this.taskId, this.token, { name, value }));
			if (!kept)
				throw new HoldfastError('LEASE_LOST', `Task ${this.taskId} was taken over by another worker`);
			this.#steps.set(name, value);
			this.#record = { ...this.#record, journalled: true };
			return value;
		});
	}

	/**
	 * Reads the record again after another process changed it; undefined when the task is gone.
	 *
	 * @param onRead - called when the read begins: a change that is told from then on needs another one.
	 */
	refresh(onRead: () => void): Promise<TaskRecord | undefined> {
		return this.#inTurn(async () => {
			onRead();
			if (!this.#stored) return this.#record;
			const record = await this.#deps.backend.store.get(this.taskId);
			if (record && record.revision > this.#record.revision) this.#show(record);
			return record;
		});
	}

	/** The record with the lease that a write now gives it: each write of the holder renews its lease. */
	#renewed(): TaskRecord {
		const { lease } = this.#record;
		if (lease?.token !== this.token) return this.#record;
		const expiresAtMs = this.#deps.clock.nowMs() + this.#deps.leaseMs;
		return { ...this.#record, lease: { ...lease, expiresAtMs }, dueAtMs: expiresAtMs };
	}

	#show(record: TaskRecord): void {
		this.#record = record;
		for (const listener of [...this.#listeners]) listener(record);
	}

	#inTurn<T>(work: () => Promise<T>): Promise<T> {
		const turn = this.#queue.then(work);
		this.#queue = turn.catch(() => {});
		return turn;
	}
}

/** The error for a create that a limit refused. */
export function limitError(outcome: CreateOutcome & { readonly kind: 'limit' }): HoldfastError {
	return new HoldfastError(
		'TASK_LIMIT',
		outcome.scope === 'principal'
			? `You have ${outcome.limit} open tasks, which is the limit. Wait for one to end, or cancel one.`
			: `The server has ${outcome.limit} open tasks, which is its limit. Try again later.`,
	);
}
