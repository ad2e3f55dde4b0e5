import { HoldfastError, isHoldfastError, messageOf } from '../../errors.ts';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { InputResponse } from '../../protocol/task.ts';
import type { TaskOutcome } from '../outcome.ts';
import type { TaskPointer } from '../reference.ts';
import type { Journal, JournalEntry, QuestionClaim, TaskKey } from './journal.ts';

/** `HOLJ` in ASCII: how a journal is told from any other SQLite file. */
const APPLICATION_ID = 0x484f4c4a;
const VERSION = 2;

/** How long a write waits for another process's write. */
const BUSY_TIMEOUT_MS = 5_000;

const SCHEMA = `
CREATE TABLE tasks (
	id INTEGER PRIMARY KEY,
	server TEXT NOT NULL,
	task_id TEXT NOT NULL,
	tool TEXT NOT NULL,
	arguments_digest TEXT NOT NULL,
	protocol_version TEXT NOT NULL,
	first_seen_at_ms REAL NOT NULL,
	ttl_ms REAL,
	outcome TEXT,
	ended_at_ms REAL,
	delivered INTEGER NOT NULL DEFAULT 0,
	UNIQUE (server, task_id)
) STRICT;
CREATE INDEX tasks_by_end ON tasks (ended_at_ms) WHERE ended_at_ms IS NOT NULL;
CREATE TABLE answers (
	task INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
	input_key TEXT NOT NULL,
	response TEXT,
	PRIMARY KEY (task, input_key)
) STRICT, WITHOUT ROWID;
`;

/** Since version 2: which host asks a question. */
const CLAIMS_SCHEMA = `
CREATE TABLE claims (
	task INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
	input_key TEXT NOT NULL,
	owner TEXT NOT NULL,
	until_ms REAL NOT NULL,
	PRIMARY KEY (task, input_key)
) STRICT, WITHOUT ROWID;
`;

const SQL = {
	add: `INSERT INTO tasks (server, task_id, tool, arguments_digest, protocol_version, first_seen_at_ms, ttl_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (server, task_id) DO NOTHING`,
	find: 'SELECT * FROM tasks WHERE server = ? AND task_id = ?',
	list: 'SELECT * FROM tasks WHERE server = ? ORDER BY id',
	answers: 'SELECT input_key, response FROM answers WHERE task = ?',
	answer: `INSERT INTO answers (task, input_key, response)
		SELECT id, ?3, ?4 FROM tasks WHERE server = ?1 AND task_id = ?2 ON CONFLICT DO NOTHING`,
	claim: `INSERT INTO claims (task, input_key, owner, until_ms)
		SELECT id, ?3, ?4, ?6 FROM tasks WHERE server = ?1 AND task_id = ?2
		ON CONFLICT (task, input_key) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms
		WHERE owner IN (?4, ?7) OR until_ms < ?5`,
	claimOwner: `SELECT owner FROM claims WHERE input_key = ?3
		AND task = (SELECT id FROM tasks WHERE server = ?1 AND task_id = ?2)`,
	release: `DELETE FROM claims WHERE input_key = ?3 AND owner = ?4
		AND task = (SELECT id FROM tasks WHERE server = ?1 AND task_id = ?2)`,
	sent: `UPDATE answers SET response = NULL WHERE input_key = ?3
		AND task = (SELECT id FROM tasks WHERE server = ?1 AND task_id = ?2)`,
	end: `UPDATE tasks SET outcome = ?3, ended_at_ms = ?4
		WHERE server = ?1 AND task_id = ?2 AND outcome IS NULL`,
	deliver: `UPDATE tasks SET delivered = 1
		WHERE server = ? AND task_id = ? AND delivered = 0 AND outcome IS NOT NULL`,
	remove: 'DELETE FROM tasks WHERE server = ? AND task_id = ?',
	expire: 'DELETE FROM tasks WHERE ended_at_ms < ?',
} as const;

interface TaskRow {
	readonly id: number;
	readonly server: string;
	readonly task_id: string;
	readonly tool: string;
	readonly arguments_digest: string;
	readonly protocol_version: string;
	readonly first_seen_at_ms: number;
	readonly ttl_ms: number | null;
	readonly outcome: string | null;
	readonly ended_at_ms: number | null;
	readonly delivered: number;
}

interface AnswerRow {
	readonly input_key: string;
	readonly response: string | null;
}

/**
 * A journal in an SQLite file, which is made with its folder when it is missing and can be read by its owner
 * only. Each write waits for the disk, so what was journalled survives a crash and a power cut. Several
 * processes may use one file on a local disk.
 *
 * @throws JOURNAL_UNUSABLE when the file cannot be opened or is something else; JOURNAL_NEWER
 */
export function fileJournal(path: string): Journal {
	return new FileJournal(path);
}

class FileJournal implements Journal {
	readonly #path: string;
	readonly #database: DatabaseSync;
	readonly #statements = new Map<string, StatementSync>();
	#closed = false;

	constructor(path: string) {
		this.#path = path;
		this.#database = this.#guard(() => open(path));
	}

	async add(entry: TaskPointer & { readonly argumentsDigest: string }): Promise<void> {
		const { server, taskId, tool, argumentsDigest, protocolVersion, firstSeenAtMs, ttlMs } = entry;
		this.#run(SQL.add, server, taskId, tool, argumentsDigest, protocolVersion, firstSeenAtMs, ttlMs);
	}

	async find(key: TaskKey): Promise<JournalEntry | undefined> {
		const [row] = this.#all<TaskRow>(SQL.find, key.server, key.taskId);
		return row && this.#entry(row);
	}

	async list(server: string): Promise<readonly JournalEntry[]> {
		return this.#all<TaskRow>(SQL.list, server).map((row) => this.#entry(row));
	}

	async answer(key: TaskKey, inputKey: string, response: InputResponse): Promise<boolean> {
		return this.#run(SQL.answer, key.server, key.taskId, inputKey, JSON.stringify(response)) > 0;
	}

	async claim(key: TaskKey, inputKey: string, claim: QuestionClaim): Promise<string> {
		const { server, taskId } = key;
		const { owner, nowMs, untilMs, gone } = claim;
		this.#run(SQL.claim, server, taskId, inputKey, owner, nowMs, untilMs, gone);
		const [row] = this.#all<{ readonly owner: string }>(SQL.claimOwner, server, taskId, inputKey);
		// A task that the journal does not know is nobody else's.
		return row?.owner ?? owner;
	}

	async release(key: TaskKey, inputKey: string, owner: string): Promise<void> {
		this.#run(SQL.release, key.server, key.taskId, inputKey, owner);
	}

	async sent(key: TaskKey, inputKeys: readonly string[]): Promise<void> {
		for (const inputKey of inputKeys) this.#run(SQL.sent, key.server, key.taskId, inputKey);
	}

	async end(key: TaskKey, outcome: TaskOutcome, atMs: number): Promise<void> {
		this.#run(SQL.end, key.server, key.taskId, JSON.stringify(outcome), atMs);
	}

	async deliver(key: TaskKey): Promise<boolean> {
		return this.#run(SQL.deliver, key.server, key.taskId) > 0;
	}

	async remove(key: TaskKey): Promise<void> {
		this.#run(SQL.remove, key.server, key.taskId);
	}

	async expire(endedBeforeMs: number): Promise<void> {
		this.#run(SQL.expire, endedBeforeMs);
	}

	async close(): Promise<void> {
		if (this.#closed) return;
		this.#closed = true;
		this.#statements.clear();
		this.#database.close();
	}

	#entry(row: TaskRow): JournalEntry {
		const answers = this.#all<AnswerRow>(SQL.answers, row.id);
		return {
			server: row.server,
			taskId: row.task_id,
			tool: row.tool,
			argumentsDigest: row.arguments_digest,
			protocolVersion: row.protocol_version,
			firstSeenAtMs: row.first_seen_at_ms,
			ttlMs: row.ttl_ms,
			answers: Object.fromEntries(
				answers.map(({ input_key, response }) => [
					input_key,
					{ response: response === null ? null : (JSON.parse(response) as InputResponse) },
				]),
			),
			outcome: row.outcome === null ? null : (JSON.parse(row.outcome) as TaskOutcome),
			endedAtMs: row.ended_at_ms,
			delivered: row.delivered === 1,
		};
	}

	/** How many rows a statement changed. */
	#run(sql: string, ...values: (string | number | null)[]): number {
		return this.#guard(() => Number(this.#statement(sql).run(...values).changes));
	}

	#all<Row>(sql: string, ...values: (string | number | null)[]): Row[] {
		// SQLite's columns are what the SQL says they are: the one place where a row gets its type.
		return this.#guard(() => this.#statement(sql).all(...values) as unknown as Row[]);
	}

	#statement(sql: string): StatementSync {
		if (this.#closed) throw new HoldfastError('CLOSED', `The journal ${this.#path} is closed`);
		let statement = this.#statements.get(sql);
		if (!statement) {
			statement = this.#database.prepare(sql);
			this.#statements.set(sql, statement);
		}
		return statement;
	}

	#guard<T>(work: () => T): T {
		try {
			return work();
		} catch (error) {
			if (isHoldfastError(error) || this.#closed) throw error;
			throw new HoldfastError('JOURNAL_UNUSABLE', `${this.#path} cannot be used: ${messageOf(error)}`, {
				cause: error,
			});
		}
	}
}

function open(path: string): DatabaseSync {
	mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
	try {
		// It holds what people asked for and answered. Never opened when it exists: closing it here would drop
		// the locks of another connection.
		closeSync(openSync(path, 'wx', 0o600));
	} catch (error) {
		if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
	}
	const database = new DatabaseSync(path);
	try {
		database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
		check(database, path);
		database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON');
		// Only macOS knows it: without it a power cut can lose what fsync has confirmed.
		database.exec('PRAGMA fullfsync = ON');
		return database;
	} catch (error) {
		database.close();
		throw error;
	}
}

/** Refuses other files and newer journals before anything is written, and makes the tables of a new file. */
function check(database: DatabaseSync, path: string): void {
	database.exec('BEGIN IMMEDIATE');
	try {
		const version = pragma(database, 'user_version');
		const isEmpty = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
		if (pragma(database, 'application_id') !== APPLICATION_ID && !(isEmpty && version === 0))
			throw new HoldfastError('JOURNAL_UNUSABLE', `${path} is an SQLite database of another application`);
		if (version > VERSION)
			throw new HoldfastError(
				'JOURNAL_NEWER',
				`${path} has journal version ${version}, and this holdfast knows versions up to ${VERSION}`,
			);
		if (version === 0) database.exec(`${SCHEMA} PRAGMA application_id = ${APPLICATION_ID};`);
		if (version < VERSION) database.exec(`${CLAIMS_SCHEMA} PRAGMA user_version = ${VERSION};`);
		database.exec('COMMIT');
	} catch (error) {
		database.exec('ROLLBACK');
		throw error;
	}
}

function pragma(database: DatabaseSync, name: 'user_version' | 'application_id'): number {
	return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}
