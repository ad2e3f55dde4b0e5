import { decodeText } from '../columns.ts';
import type { Dispatcher } from '../dispatcher.ts';
import type { Run } from './database.ts';
import type { Statements } from './statements.ts';

/** How long a worker has for claiming what it was handed, before it is handed to another one. */
const OFFER_MS = 1_000;

/**
 * Takes what is runnable straight from the tasks, through an index that has only those. Workers that look at the same
 * time pass over each other's tasks instead of racing for them.
 */
export class PostgresDispatcher implements Dispatcher {
	readonly #run: Run;
	readonly #statements: Statements;

	constructor(run: Run, statements: Statements) {
		this.#run = run;
		this.#statements = statements;
	}

	async take(nowMs: number, limit: number): Promise<readonly string[]> {
		const rows = await this.#run<[taskId: string]>(this.#statements.take, [
			...[nowMs, limit, nowMs + OFFER_MS],
			'off',
		]);
		return rows.map(([taskId]) => decodeText(taskId));
	}

	async nextRunAtMs(): Promise<number | null> {
		const [row] = await this.#run<[runAtMs: number]>(this.#statements.nextRunAt, []);
		return row?.[0] ?? null;
	}
}
