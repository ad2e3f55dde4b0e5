import type { Dispatcher } from '../dispatcher.ts';
import type { Connection } from './connection.ts';
import type { HandedTasks } from './handed-tasks.ts';
import { decodeDetails } from './row.ts';
import { TAKE } from './scripts.ts';

/** How long a worker has for claiming what it was handed, before it is handed to another one. */
const OFFER_MS = 1_000;

/**
 * Takes what is runnable from the sorted set of those tasks. What one worker took is passed over by the others. The
 * tasks come with their ids: whoever takes one reads it next.
 */
export class RedisDispatcher implements Dispatcher {
	readonly #connection: Connection;
	readonly #handed: HandedTasks;

	constructor(connection: Connection, handed: HandedTasks) {
		this.#connection = connection;
		this.#handed = handed;
	}

	async take(nowMs: number, limit: number): Promise<readonly string[]> {
		const rows = await this.#connection.script<string[][]>(TAKE, () => [nowMs, limit, nowMs + OFFER_MS]);
		const tasks = rows.map(decodeDetails).filter((details) => details !== undefined);
		this.#handed.put(tasks);
		return tasks.map(({ record }) => record.taskId);
	}

	async nextRunAtMs(): Promise<number | null> {
		const { run, base } = this.#connection;
		const [, score] = await run<string[]>('ZRANGE', `${base}run`, 0, 0, 'WITHSCORES');
		return score === undefined ? null : Number(score);
	}
}
