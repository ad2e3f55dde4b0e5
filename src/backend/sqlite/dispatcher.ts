import { decodeText } from '../columns.ts';
import type { Dispatcher } from '../dispatcher.ts';
import type { Database } from './database.ts';
import { NEXT_RUN_AT, RUNNABLE } from './statements.ts';

/** Reads what is runnable straight from the tasks, through an index that has only those. */
export class SqliteDispatcher implements Dispatcher {
	readonly #database: Database;

	constructor(database: Database) {
		this.#database = database;
	}

	async take(nowMs: number, limit: number): Promise<readonly string[]> {
		return this.#database.read(() =>
			this.#database
				.statement<{ task_id: string }>(RUNNABLE)
				.all(nowMs, limit)
				.map((row) => decodeText(row.task_id)),
		);
	}

	async nextRunAtMs(): Promise<number | null> {
		return this.#database.read(
			() => this.#database.statement<{ run_at_ms: number | null }>(NEXT_RUN_AT).get()?.run_at_ms ?? null,
		);
	}
}
