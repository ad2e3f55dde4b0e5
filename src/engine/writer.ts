import type { Backend } from '../backend/backend.ts';
import type { TaskRecord } from '../backend/record.ts';
import type { Durability } from '../backend/store.ts';
import { HoldfastError } from '../errors.ts';
import type { Clock } from './clock.ts';
import { type Refusal, type TaskEvent, transition } from './transition.ts';

/** What became of an event. */
export interface Applied {
	/** The record as it is stored now; undefined when the task is gone. */
	readonly record: TaskRecord | undefined;
	/** Undefined when the event changed the record. */
	readonly refusal: Refusal | 'gone' | undefined;
}

const MAX_CONFLICTS = 50;

/** The one way in which a stored task changes: decide, compare and set, tell. */
export class TaskWriter {
	readonly #backend: Backend;
	readonly #clock: Clock;

	constructor(backend: Backend, clock: Clock) {
		this.#backend = backend;
		this.#clock = clock;
	}

	/**
	 * Applies an event to a task, beginning with `known`, which may be outdated. A changed record is given to
	 * `onStored` before anybody is told.
	 */
	async apply(
		taskId: string,
		event: TaskEvent,
		known?: TaskRecord,
		onStored?: (record: TaskRecord) => void,
	): Promise<Applied> {
		let record = known ?? (await this.#backend.store.get(taskId));
		for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts++) {
			if (!record) return { record: undefined, refusal: 'gone' };
			const outcome = transition(record, event, this.#clock.nowMs());
			if (outcome.kind === 'refused') {
				// A refusal on an outdated record proves nothing.
				const current: TaskRecord | undefined =
					conflicts === 0 && known ? await this.#backend.store.get(taskId) : record;
				if (current?.revision === record.revision) return { record, refusal: outcome.refusal };
				record = current;
				continue;
			}
			if (await this.#backend.store.replace(outcome.record, durabilityOf(event))) {
				onStored?.(outcome.record);
				this.tell(outcome.record);
				return { record: outcome.record, refusal: undefined };
			}
			record = await this.#backend.store.get(taskId);
		}
		throw new HoldfastError(
			'STORE_UNUSABLE',
			`Task ${taskId} changed ${MAX_CONFLICTS} times under one write`,
		);
	}

	/** Tells every process that a record was stored. */
	tell(record: TaskRecord): void {
		const { taskId, revision, runAtMs } = record;
		this.#backend.signals.publish({ taskId, revision, runnable: runAtMs !== null });
	}
}

function durabilityOf(event: TaskEvent): Durability {
	return event.type === 'progress' || event.type === 'claim' || event.type === 'steady' ? 'normal' : 'full';
}
