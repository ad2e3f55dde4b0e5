import { randomInt } from 'node:crypto';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { HoldfastError, messageOf } from '../../errors.ts';
import type { Durability } from '../store.ts';
import { assertLocalFileSystem } from './file-system.ts';
import { checkVersion, migrate } from './migrations.ts';

/** How long SQLite itself waits for another process's transaction, in milliseconds. */
const BUSY_TIMEOUT_MS = 5_000;

/** How often a transaction that SQLite refused as busy is begun. Some refusals come without any wait. */
const BUSY_ATTEMPTS = 3;

/** Result codes of SQLite, without their extended part. */
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;

/** A prepared statement whose rows have a known shape. */
export interface Statement<Row> {
	get(...parameters: SQLInputValue[]): Row | undefined;
	all(...parameters: SQLInputValue[]): Row[];
	run(...parameters: SQLInputValue[]): { readonly lastInsertRowid: number | bigint };
}

/**
 * One SQLite file. It has a single connection, whose `synchronous` is switched between transactions: a second
 * connection for the other durability would throw away this one's page cache with every write, and
 * `data_version`, which tells of the writes of others, would tell of our own too.
 */
export class Database {
	/** Where the file is; absolute. */
	readonly file: string;
	/** Tells our own entries in the log of changes from those of others. */
	readonly origin: number = randomInt(1, 2 ** 31);
	readonly #statements = new Map<string, StatementSync>();
	readonly #tuples = new Map<string, StatementSync>();
	#connection: DatabaseSync | undefined;
	#durability: Durability | undefined;
	#isClosed = false;

	constructor(file: string) {
		this.file = file;
	}

	/** Creates the file where there is none, and brings its schema up to date. */
	async open(): Promise<void> {
		if (this.#isClosed) throw new HoldfastError('CLOSED', `the store ${this.file} was closed before`);
		if (this.#connection) return;
		assertLocalFileSystem(this.file);
		for (let attempt = 1; ; attempt++) {
			try {
				this.#connection = connect(this.file);
				return;
			} catch (error) {
				if (!isBusy(error) || attempt === BUSY_ATTEMPTS) throw unusable(this.file, error);
				await sleep(attempt * 50);
			}
		}
	}

	/** Lets go of the file. Calling it twice does nothing. */
	close(): void {
		this.#isClosed = true;
		this.#statements.clear();
		this.#tuples.clear();
		this.#connection?.close();
		this.#connection = undefined;
	}

	/** The statement for this SQL, prepared once. */
	statement<Row = never>(sql: string): Statement<Row> {
		let statement = this.#statements.get(sql);
		if (!statement) {
			statement = this.#opened().prepare(sql);
			this.#statements.set(sql, statement);
		}
		// SQLite's columns are what the SQL says they are: the one place where a row gets its type.
		return statement as unknown as Statement<Row>;
	}

	/** As {@link statement}, but rows are arrays, which Node makes three times as fast as objects. */
	tuples<Row extends readonly unknown[] = never>(sql: string): Statement<Row> {
		let statement = this.#tuples.get(sql);
		if (!statement) {
			statement = this.#opened().prepare(sql);
			statement.setReturnArrays(true);
			this.#tuples.set(sql, statement);
		}
		return statement as unknown as Statement<Row>;
	}

	/** Runs one reading statement. */
	read<Result>(work: () => Result): Result {
		this.#opened();
		try {
			return work();
		} catch (error) {
			throw unusable(this.file, error);
		}
	}

	/** Runs several reading statements that see the same state. */
	snapshot<Result>(work: () => Result): Result {
		return this.#transaction('BEGIN', work);
	}

	/** Runs a transaction that is kept as a whole, or leaves nothing behind and throws. */
	write<Result>(durability: Durability, work: () => Result): Result {
		this.read(() => this.#waitForDisk(durability));
		// IMMEDIATE: a transaction that reads first and then writes is refused without any wait when another
		// process wrote in between.
		return this.#transaction('BEGIN IMMEDIATE', work);
	}

	/** FULL waits for the disk with every commit, NORMAL only when the write-ahead log is folded in. */
	#waitForDisk(durability: Durability): void {
		if (durability === this.#durability) return;
		this.#opened().exec(`PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`);
		this.#durability = durability;
	}

	#transaction<Result>(begin: 'BEGIN' | 'BEGIN IMMEDIATE', work: () => Result): Result {
		this.#opened();
		this.#begin(begin);
		try {
			const result = work();
			this.statement('COMMIT').run();
			return result;
		} catch (error) {
			this.#rollback();
			throw unusable(this.file, error);
		}
	}

	#begin(begin: 'BEGIN' | 'BEGIN IMMEDIATE'): void {
		for (let attempt = 1; ; attempt++) {
			try {
				this.statement(begin).run();
				return;
			} catch (error) {
				if (!isBusy(error) || attempt === BUSY_ATTEMPTS) throw unusable(this.file, error);
			}
		}
	}

	#rollback(): void {
		try {
			this.statement('ROLLBACK').run();
		} catch {
			// After a full disk or a failed write SQLite has rolled back by itself.
		}
	}

	#opened(): DatabaseSync {
		if (this.#connection) return this.#connection;
		throw this.#isClosed
			? new HoldfastError('CLOSED', `the store ${this.file} is closed`)
			: new HoldfastError('NOT_STARTED', `the store ${this.file} is used before open()`);
	}
}

function connect(file: string): DatabaseSync {
	createPrivately(file);
	const connection = new DatabaseSync(file);
	try {
		connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
		// Before anything is written, so that a file which is not ours is not turned into one with a log.
		checkVersion(connection, file);
		useWriteAheadLog(connection, file);
		migrate(connection, file);
		connection.exec(
			'PRAGMA cache_size = -16000; PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY',
		);
		// Only macOS knows it: without it a power cut can lose what fsync has confirmed.
		connection.exec('PRAGMA fullfsync = ON');
		return connection;
	} catch (error) {
		connection.close();
		throw error;
	}
}

function useWriteAheadLog(connection: DatabaseSync, file: string): void {
	const mode = connection.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
	if (mode !== 'wal')
		throw new HoldfastError('STORE_UNUSABLE', `${file} cannot be used: its file system has no shared memory`);
}

/** Tasks carry what people asked for and were answered, so nobody else may read the file. */
function createPrivately(file: string): void {
	mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
	try {
		// Never opened when it exists: closing it here would drop the locks of another connection.
		closeSync(openSync(file, 'wx', 0o600));
	} catch (error) {
		if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
	}
}

function isBusy(error: unknown): boolean {
	if (!(error instanceof Error && 'errcode' in error)) return false;
	const code = Number(error.errcode) & 0xff;
	return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

function unusable(file: string, error: unknown): HoldfastError {
	if (error instanceof HoldfastError) return error;
	const advice = isBusy(error) ? ' Another process has held its lock for too long.' : '';
	return new HoldfastError('STORE_UNUSABLE', `${file} cannot be used: ${messageOf(error)}.${advice}`, {
		cause: error,
	});
}
