import { HoldfastError } from '../../errors.ts';
import type { Run } from './database.ts';

/** The oldest server that is supported, as Postgres numbers itself. */
const OLDEST_SERVER = 150_000;

/** One numbered change of the schema. A published migration is never edited. */
export interface Migration {
	/** One more than the migration before it; the first is 1. */
	readonly version: number;
	/** Statements in the schema that is first on the search path. */
	readonly sql: readonly string[];
}

/**
 * - Columns that end in `_ms` are double precision, because a JavaScript number is.
 * - Strings are written by `encodeText`; JSON is kept as text, because `jsonb` refuses a NUL.
 * - Large values leave the row by themselves (TOAST), and an update that does not change them does not write them
 *   again. A result of more than a part is kept in `results`, part by part.
 * - `offered_until_ms` keeps a runnable task that was handed to one worker from being handed to the next one.
 * - Names and keys of any length are unique by their digest; an index refuses long values.
 * - `counters` and `totals` spread each number over several rows, of which a connection always takes the same one:
 *   one row would make every create wait for the disk of the one before it.
 * - `changes` is a short log of what was told; see change-log.ts. It may be lost, so it is not worth a log of its own.
 */
const SCHEMA: readonly string[] = [
	`CREATE TABLE tasks (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		task_id text NOT NULL UNIQUE,
		revision integer NOT NULL,
		principal text NOT NULL,
		idempotency_key text,
		tool text NOT NULL,
		status text NOT NULL,
		created_at_ms double precision NOT NULL,
		last_updated_at_ms double precision NOT NULL,
		ttl_ms double precision NOT NULL,
		run_at_ms double precision,
		offered_until_ms double precision NOT NULL DEFAULT 0,
		due_at_ms double precision NOT NULL,
		cancel_requested_at_ms double precision,
		lease_owner text,
		lease_token text,
		lease_expires_at_ms double precision,
		journalled boolean NOT NULL,
		policy text NOT NULL,
		body text NOT NULL,
		inputs text,
		result text,
		result_parts integer NOT NULL,
		arguments text NOT NULL,
		prepared text NOT NULL
	) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000)`,
	`CREATE UNIQUE INDEX tasks_by_key ON tasks (md5(principal), md5(idempotency_key))
		WHERE idempotency_key IS NOT NULL`,
	'CREATE INDEX tasks_by_run_at ON tasks (run_at_ms, id) WHERE run_at_ms IS NOT NULL',
	'CREATE INDEX tasks_by_due_at ON tasks (due_at_ms, id)',
	'CREATE INDEX tasks_by_principal ON tasks (md5(principal), id)',
	`CREATE TABLE steps (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		task bigint NOT NULL,
		name text NOT NULL,
		value text NOT NULL
	)`,
	'CREATE UNIQUE INDEX steps_by_name ON steps (task, md5(name))',
	`CREATE TABLE results (
		task bigint NOT NULL,
		part integer NOT NULL,
		value text NOT NULL,
		PRIMARY KEY (task, part)
	)`,
	'ALTER TABLE results ALTER COLUMN value SET STORAGE EXTERNAL',
	`CREATE TABLE counters (
		principal text NOT NULL,
		slot integer NOT NULL,
		open bigint NOT NULL,
		ended bigint NOT NULL
	) WITH (fillfactor = 50)`,
	'CREATE UNIQUE INDEX counters_by_slot ON counters (md5(principal), slot)',
	'CREATE TABLE totals (slot integer PRIMARY KEY, open bigint NOT NULL) WITH (fillfactor = 10)',
	`CREATE UNLOGGED TABLE changes (
		seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		at timestamptz NOT NULL DEFAULT clock_timestamp(),
		batch text NOT NULL
	)`,
];

/** Every migration, oldest first. */
export const MIGRATIONS: readonly Migration[] = [{ version: 1, sql: SCHEMA }];

/** Which versions a schema went through. */
export interface MigrationOutcome {
	/** 0 where there was none. */
	readonly from: number;
	readonly to: number;
}

/**
 * Refuses a server that is too old, and a schema that is not there, too old, too new or of another application.
 *
 * @throws STORE_UNUSABLE, STORE_OLDER, STORE_NEWER
 */
export async function checkSchema(run: Run, schema: string, place: string): Promise<void> {
	await assertServer(run, place);
	const version = await versionOf(run, schema, place);
	const newest = MIGRATIONS.at(-1)?.version ?? 0;
	if (version === newest) return;
	throw new HoldfastError(
		'STORE_OLDER',
		`${place} has ${version === 0 ? 'no tables of holdfast' : `store version ${version}`}, and this holdfast ` +
			`needs version ${newest}. Run \`holdfast migrate\` once, before the servers are started.`,
	);
}

/**
 * Brings a schema up to date, in one transaction. Two processes may do it at the same time.
 *
 * @param run - statements of one transaction.
 */
export async function migrateSchema(
	run: Run,
	schema: string,
	place: string,
	migrations: readonly Migration[] = MIGRATIONS,
): Promise<MigrationOutcome> {
	await assertServer(run, place);
	await run(plain('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))'), [`holdfast ${schema}`]);
	const from = await versionOf(run, schema, place, migrations);
	const to = migrations.at(-1)?.version ?? 0;
	if (from === to) return { from, to };
	if (from === 0) {
		await run(plain(`CREATE SCHEMA IF NOT EXISTS "${schema}"`), []);
		await run(plain(`CREATE TABLE "${schema}".holdfast (version integer NOT NULL)`), []);
		await run(plain(`INSERT INTO "${schema}".holdfast (version) VALUES (0)`), []);
	}
	await run(plain(`SET LOCAL search_path TO "${schema}"`), []);
	for (const { version, sql } of migrations)
		if (version > from) for (const statement of sql) await run(plain(statement), []);
	await run(plain(`UPDATE "${schema}".holdfast SET version = $1`), [to]);
	return { from, to };
}

async function assertServer(run: Run, place: string): Promise<void> {
	const [row] = await run<[number: number, version: string]>(
		plain("SELECT current_setting('server_version_num')::integer, current_setting('server_version')"),
		[],
	);
	if ((row?.[0] ?? 0) < OLDEST_SERVER)
		throw new HoldfastError('STORE_UNUSABLE', `${place} is on Postgres ${row?.[1]}; it must be 15 or later`);
}

/** 0 where the schema is not there or empty. */
async function versionOf(
	run: Run,
	schema: string,
	place: string,
	migrations: readonly Migration[] = MIGRATIONS,
): Promise<number> {
	const [found] = await run<[isOurs: boolean, isEmpty: boolean]>(
		plain(`SELECT count(*) FILTER (WHERE relname = 'holdfast') > 0, count(*) = 0
			FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)`),
		[schema],
	);
	const [isOurs, isEmpty] = found ?? [false, true];
	if (!isOurs && !isEmpty)
		throw new HoldfastError(
			'STORE_UNUSABLE',
			`${place} has tables of another application. Choose another schema; this one was not touched.`,
		);
	if (!isOurs) return 0;
	const [row] = await run<[version: number]>(plain(`SELECT version FROM "${schema}".holdfast`), []);
	const version = row?.[0] ?? 0;
	const newest = migrations.at(-1)?.version ?? 0;
	if (version > newest)
		throw new HoldfastError(
			'STORE_NEWER',
			`${place} has store version ${version}, and this holdfast knows versions up to ${newest}. ` +
				'Update holdfast, or choose another schema; this one was not touched.',
		);
	return version;
}

/** A statement that is run too rarely to be prepared. */
function plain(text: string): { readonly name: string; readonly text: string } {
	return { name: '', text };
}
