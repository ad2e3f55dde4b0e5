import { decodeText } from '../columns.ts';
import type { Dispatcher } from '../dispatcher.ts';
import type { Run } from './database.ts';
import type { Statements } from './statements.ts';

/** Reads what is runnable straight from the tasks, through an index that has only those. */
export class PostgresDispatcher implements Dispatcher {
	readonly #run: Run;
	readonly #statements: Statements;

	constructor(run: Run, statements: Statements) {
		this.#run = run;
		this.#statements = statements;
	}

	async take(nowMs: number, limit: number): Promise<readonly string[]> {
		const rows = await this.#run<[taskId: string]>(this.#statements.runnable, [nowMs, limit]);
		return rows.map(([taskId]) => decodeText(taskId));
	}

	async nextRunAtMs(): Promise<number | null> {
		const [row] = await this.#run<[runAtMs: number]>(this.#statements.nextRunAt, []);
		return row?.[0] ?? null;
	}
}
