/** A SQLite file with its prepared statements and transactions. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

export type Row = Record<string, string | number | bigint | Uint8Array | null>;

export class Database {
	readonly #database: DatabaseSync;
	#inside = false;
	readonly #statements = new Map<string, StatementSync>();

	constructor(file: string, readOnly = false) {
		this.#database = new DatabaseSync(file, { readOnly, timeout: 10_000 });
	}

	exec(sql: string): void {
		this.#database.exec(sql);
	}

	run(sql: string, ...values: SQLInputValue[]): { changes: number; id: number } {
		const { changes, lastInsertRowid } = this.#prepare(sql).run(...values);
		return { changes: Number(changes), id: Number(lastInsertRowid) };
	}

	get<T = Row>(sql: string, ...values: SQLInputValue[]): T | undefined {
		return this.#prepare(sql).get(...values) as T | undefined;
	}

	all<T = Row>(sql: string, ...values: SQLInputValue[]): T[] {
		return this.#prepare(sql).all(...values) as T[];
	}

	iterate<T = Row>(sql: string, ...values: SQLInputValue[]): Iterable<T> {
		return this.#prepare(sql).iterate(...values) as Iterable<T>;
	}

	/** All of some work or none of it; within a transaction, a part of that one that can fail by itself. */
	transaction<T>(work: () => T): T {
		const [begin, commit, undo] = this.#inside
			? ['SAVEPOINT part', 'RELEASE part', 'ROLLBACK TO part; RELEASE part']
			: ['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK'];
		const outer = this.#inside;
		this.run(begin);
		this.#inside = true;
		try {
			const result = work();
			this.run(commit);
			return result;
		} catch (error) {
			this.exec(undo);
			throw error;
		} finally {
			this.#inside = outer;
		}
	}

	close(): void {
		this.#database.close();
	}

	#prepare(sql: string): StatementSync {
		let statement = this.#statements.get(sql);
		if (statement === undefined) {
			statement = this.#database.prepare(sql);
			this.#statements.set(sql, statement);
		}
		return statement;
	}
}

/** A column's value; nothing for NULL. */
export const optional = <T>(value: Row[string] | undefined): T | undefined =>
	value === null || value === undefined ? undefined : (value as T);
