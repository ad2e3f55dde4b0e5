import { setTimeout as sleep } from 'node:timers/promises';
import { type ClientConfig, Pool, type PoolClient } from 'pg';
import { HoldfastError } from '../../errors.ts';
import { isPassing, unusable } from './failure.ts';
import type { PostgresSettings } from './options.ts';
import { shownUrl } from './options.ts';

/** How long a connection may take to come about, and a statement to be answered, in milliseconds. */
const CONNECT_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 10_000;

/** Pause before the first repetition; doubled up to the longest. */
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;

/** A statement, prepared under its name where the connection allows it. */
export interface Statement {
	readonly name: string;
	readonly text: string;
}

/** What a statement may be given. */
export type Parameter = string | number | boolean | null | readonly string[];

/** Runs a statement and answers its rows as arrays. */
export type Run = <Row extends readonly unknown[]>(
	statement: Statement,
	parameters: readonly Parameter[],
) => Promise<Row[]>;

/** What is done with a database; told whether it was tried before, and may have been done. */
export type Work<Result> = (run: Run, isRepeated: boolean) => Promise<Result>;

/** The connections of one process to a database. */
export class Database {
	/** The database as it may be shown: no user, no password. */
	readonly place: string;
	readonly #settings: PostgresSettings;
	#pool: Pool | undefined;
	#isClosed = false;
	#prepares = false;

	constructor(settings: PostgresSettings) {
		this.#settings = settings;
		this.place = `the schema ${settings.schema} of ${shownUrl(settings.url)}`;
	}

	/** Nothing is tried twice before the database was reached once: a wrong address should be heard of at once. */
	async open(check: (run: Run) => Promise<void>): Promise<void> {
		if (this.#isClosed) throw new HoldfastError('CLOSED', `${this.place} was closed before`);
		if (this.#pool) return;
		const pool = new Pool({
			...connectionConfig(this.#settings.url),
			max: this.#settings.connections,
			allowExitOnIdle: true,
		});
		// An idle connection that breaks is replaced when one is needed.
		pool.on('error', () => {});
		try {
			await check((...query) => this.#on(pool, ...query));
		} catch (error) {
			await pool.end();
			throw unusable(this.place, error);
		}
		this.#pool = pool;
	}

	/** Lets go of all connections. Calling it twice does nothing. */
	async close(): Promise<void> {
		this.#isClosed = true;
		const pool = this.#pool;
		this.#pool = undefined;
		await pool?.end();
	}

	/**
	 * Says that a connection stays the same from one transaction to the next, so that statements may be prepared. A
	 * pooler breaks that.
	 */
	allowPreparing(): void {
		this.#prepares = true;
	}

	/** Runs one statement, which is a transaction by itself; again as {@link attempt} does. */
	readonly run: Run = (statement, parameters) => this.attempt((run) => run(statement, parameters));

	/**
	 * Runs statements, each a transaction by itself; all of them again, for as long as there is patience, where the
	 * database cannot be reached. They may then have been done already, and `work` is told so.
	 */
	attempt<Result>(work: Work<Result>): Promise<Result> {
		return this.#patiently((pool, isRepeated) => work((...query) => this.#on(pool, ...query), isRepeated));
	}

	/** Runs statements as one transaction; again as {@link attempt} does. */
	transaction<Result>(work: Work<Result>): Promise<Result> {
		return this.#patiently(async (pool, isRepeated) => {
			const client = await pool.connect();
			// Without a listener the error of a broken connection would end the process.
			const ignore = (): void => {};
			client.on('error', ignore);
			try {
				await client.query('BEGIN');
				const result = await work((...query) => this.#on(client, ...query), isRepeated);
				await client.query('COMMIT');
				client.off('error', ignore);
				client.release();
				return result;
			} catch (error) {
				// The server rolls back what its client leaves.
				client.release(true);
				throw error;
			}
		});
	}

	async #patiently<Result>(work: (pool: Pool, isRepeated: boolean) => Promise<Result>): Promise<Result> {
		const untilMs = performance.now() + this.#settings.patienceMs;
		for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
			const pool = this.#opened();
			try {
				return await work(pool, pauseMs > FIRST_PAUSE_MS);
			} catch (error) {
				if (this.#isClosed || !isPassing(error) || performance.now() + pauseMs > untilMs)
					throw unusable(this.place, error);
			}
			await sleep(pauseMs);
		}
	}

	async #on<Row extends readonly unknown[]>(
		connection: Pool | PoolClient,
		{ name, text }: Statement,
		parameters: readonly Parameter[],
	): Promise<Row[]> {
		const isPrepared = this.#prepares && name !== '';
		const { rows } = await connection.query<unknown[]>({
			...(isPrepared && { name }),
			...{ text, values: [...parameters], rowMode: 'array' },
		});
		// The columns are what the SQL says they are: the one place where a row gets its type.
		return rows as unknown as Row[];
	}

	#opened(): Pool {
		if (this.#pool) return this.#pool;
		throw this.#isClosed
			? new HoldfastError('CLOSED', `${this.place} is closed`)
			: new HoldfastError('NOT_STARTED', `${this.place} is used before open()`);
	}
}

/** How every connection is made. */
export function connectionConfig(url: string): ClientConfig {
	return {
		connectionString: url,
		application_name: 'holdfast',
		connectionTimeoutMillis: CONNECT_WITHIN_MS,
		query_timeout: ANSWER_WITHIN_MS,
		keepAlive: true,
	};
}
