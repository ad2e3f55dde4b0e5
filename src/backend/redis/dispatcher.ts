import { decodeText } from '../columns.ts';
import type { Dispatcher } from '../dispatcher.ts';
import type { Connection } from './connection.ts';
import { TAKE } from './scripts.ts';

/** How long a worker has for claiming what it was handed, before it is handed to another one. */
const OFFER_MS = 1_000;

/** Takes what is runnable from the sorted set of those tasks. What one worker took is passed over by the others. */
export class RedisDispatcher implements Dispatcher {
	readonly #connection: Connection;

	constructor(connection: Connection) {
		this.#connection = connection;
	}

	async take(nowMs: number, limit: number): Promise<readonly string[]> {
		const ids = await this.#connection.script<string[]>(TAKE, () => [nowMs, limit, nowMs + OFFER_MS]);
		return ids.map(decodeText);
	}

	async nextRunAtMs(): Promise<number | null> {
		const { run, base } = this.#connection;
		const [, score] = await run<string[]>('ZRANGE', `${base}run`, 0, 0, 'WITHSCORES');
		return score === undefined ? null : Number(score);
	}
}
