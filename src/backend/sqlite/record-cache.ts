import type { TaskRecord } from '../record.ts';

/** How many records are kept; polled tasks are few beside those that wait or have ended. */
const MAX_RECORDS = 2_000;

/** Longest result, in characters, that is worth its memory. */
const MAX_RESULT_LENGTH = 16_384;

/**
 * Records that were read lately, for clients that poll. It is never behind: what this process writes it forgets
 * by itself, and what another process commits shows in SQLite's `data_version`, which every look begins with.
 */
export class RecordCache {
	readonly #records = new Map<string, TaskRecord>();
	#dataVersion = -1;

	/** A record that is still what the file has; `dataVersion` is the file's at this moment. */
	get(taskId: string, dataVersion: number): TaskRecord | undefined {
		if (dataVersion !== this.#dataVersion) this.clear();
		this.#dataVersion = dataVersion;
		return this.#records.get(taskId);
	}

	/** Keeps what was just read. */
	put(record: TaskRecord, resultLength: number): void {
		if (resultLength > MAX_RESULT_LENGTH) return;
		if (this.#records.size >= MAX_RECORDS) this.clear();
		this.#records.set(record.taskId, record);
	}

	forget(taskId: string): void {
		this.#records.delete(taskId);
	}

	clear(): void {
		this.#records.clear();
	}
}
