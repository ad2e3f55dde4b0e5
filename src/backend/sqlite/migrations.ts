import type { DatabaseSync } from 'node:sqlite';
import { HoldfastError } from '../../errors.ts';

/** One numbered change of the schema. A published migration is never edited. */
export interface Migration {
	/** One more than the migration before it; the first is 1. */
	readonly version: number;
	readonly sql: string;
}

/** `HOLD` in ASCII: how a holdfast store is told from any other SQLite file. */
export const APPLICATION_ID = 0x484f4c44;

/**
 * - Columns that end in `_ms` are REAL, because a JavaScript number is a double; SQLite stores whole numbers
 *   as integers all the same.
 * - Values that can be large have tables of their own, so that a progress write never rewrites one.
 * - `has_result` and `has_inputs` say whether the row in `results` and `inputs` counts; a stale one is ignored.
 * - `changes` is a short log that other processes read; see signals.ts.
 * - `counters` makes the limits exact without counting; the row with id 0 is the total of all principals.
 */
const SCHEMA = `
CREATE TABLE tasks (
	id INTEGER PRIMARY KEY,
	task_id TEXT NOT NULL UNIQUE,
	revision INTEGER NOT NULL,
	principal TEXT NOT NULL,
	idempotency_key TEXT,
	tool TEXT NOT NULL,
	status TEXT NOT NULL,
	created_at_ms REAL NOT NULL,
	last_updated_at_ms REAL NOT NULL,
	ttl_ms REAL NOT NULL,
	run_at_ms REAL,
	due_at_ms REAL NOT NULL,
	cancel_requested_at_ms REAL,
	lease_owner TEXT,
	lease_token TEXT,
	lease_expires_at_ms REAL,
	journalled INTEGER NOT NULL,
	policy_id INTEGER NOT NULL,
	has_result INTEGER NOT NULL,
	has_inputs INTEGER NOT NULL,
	body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX tasks_by_key ON tasks (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX tasks_by_run_at ON tasks (run_at_ms) WHERE run_at_ms IS NOT NULL;
CREATE INDEX tasks_by_due_at ON tasks (due_at_ms);
CREATE INDEX tasks_by_principal ON tasks (principal, status);
CREATE INDEX tasks_by_status ON tasks (status);

CREATE TABLE payloads (id INTEGER PRIMARY KEY, arguments TEXT NOT NULL, prepared TEXT NOT NULL) STRICT;
CREATE TABLE results (id INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE inputs (id INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE policies (id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE steps (
	id INTEGER PRIMARY KEY,
	task INTEGER NOT NULL,
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	UNIQUE (task, name)
) STRICT;
CREATE TABLE changes (seq INTEGER PRIMARY KEY, task INTEGER NOT NULL, origin INTEGER NOT NULL) STRICT;

CREATE TABLE counters (
	id INTEGER PRIMARY KEY,
	principal TEXT UNIQUE,
	open INTEGER NOT NULL,
	ended INTEGER NOT NULL
) STRICT;
INSERT INTO counters (id, principal, open, ended) VALUES (0, NULL, 0, 0);

CREATE TRIGGER tasks_inserted AFTER INSERT ON tasks BEGIN
	INSERT INTO counters (principal, open, ended)
		VALUES (NEW.principal, NEW.status IN ('working', 'input_required'), NEW.status NOT IN ('working', 'input_required'))
		ON CONFLICT (principal) DO UPDATE SET open = open + excluded.open, ended = ended + excluded.ended;
	UPDATE counters SET open = open + 1 WHERE id = 0 AND NEW.status IN ('working', 'input_required');
END;
CREATE TRIGGER tasks_ended AFTER UPDATE OF status ON tasks
	WHEN OLD.status IN ('working', 'input_required') AND NEW.status NOT IN ('working', 'input_required')
BEGIN
	UPDATE counters SET open = open - 1, ended = ended + 1 WHERE principal = NEW.principal;
	UPDATE counters SET open = open - 1 WHERE id = 0;
END;
CREATE TRIGGER tasks_reopened AFTER UPDATE OF status ON tasks
	WHEN OLD.status NOT IN ('working', 'input_required') AND NEW.status IN ('working', 'input_required')
BEGIN
	UPDATE counters SET open = open + 1, ended = ended - 1 WHERE principal = NEW.principal;
	UPDATE counters SET open = open + 1 WHERE id = 0;
END;
CREATE TRIGGER tasks_deleted AFTER DELETE ON tasks BEGIN
	UPDATE counters SET open = open - (OLD.status IN ('working', 'input_required')),
		ended = ended - (OLD.status NOT IN ('working', 'input_required')) WHERE principal = OLD.principal;
	DELETE FROM counters WHERE principal = OLD.principal AND open = 0 AND ended = 0;
	UPDATE counters SET open = open - 1 WHERE id = 0 AND OLD.status IN ('working', 'input_required');
	DELETE FROM payloads WHERE id = OLD.id;
	DELETE FROM results WHERE id = OLD.id;
	DELETE FROM inputs WHERE id = OLD.id;
	DELETE FROM steps WHERE task = OLD.id;
END;
`;

/** Every migration, oldest first. */
export const MIGRATIONS: readonly Migration[] = [{ version: 1, sql: SCHEMA }];

/**
 * Refuses a file that is not ours (`STORE_UNUSABLE`) or too new (`STORE_NEWER`) before anything is written to
 * it. Answers its version; 0 is an empty file.
 */
export function checkVersion(
	connection: DatabaseSync,
	file: string,
	migrations: readonly Migration[] = MIGRATIONS,
): number {
	const version = pragma(connection, 'user_version');
	const applicationId = pragma(connection, 'application_id');
	const newest = migrations.at(-1)?.version ?? 0;
	const isEmpty = connection.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
	if (applicationId !== APPLICATION_ID && !(isEmpty && applicationId === 0 && version === 0))
		throw new HoldfastError(
			'STORE_UNUSABLE',
			`${file} is an SQLite database of another application. Choose another file; this one was not touched.`,
		);
	if (version > newest)
		throw new HoldfastError(
			'STORE_NEWER',
			`${file} has store version ${version}, and this holdfast knows versions up to ${newest}. ` +
				'Update holdfast, or choose another file; this one was not touched.',
		);
	return version;
}

/** Brings the schema up to date. Two processes may do it at the same time. */
export function migrate(
	connection: DatabaseSync,
	file: string,
	migrations: readonly Migration[] = MIGRATIONS,
): void {
	if (checkVersion(connection, file, migrations) === migrations.at(-1)?.version) return;
	connection.exec('BEGIN IMMEDIATE');
	try {
		// Read again: another process may have migrated between the check and the lock.
		const from = checkVersion(connection, file, migrations);
		for (const { version, sql } of migrations) {
			if (version <= from) continue;
			connection.exec(sql);
			connection.exec(`PRAGMA user_version = ${version}`);
		}
		connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
		connection.exec('COMMIT');
	} catch (error) {
		connection.exec('ROLLBACK');
		throw error;
	}
}

function pragma(connection: DatabaseSync, name: 'user_version' | 'application_id'): number {
	return Number(connection.prepare(`PRAGMA ${name}`).get()?.[name]);
}
