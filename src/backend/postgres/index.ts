import type { Backend } from '../backend.ts';
import { Database } from './database.ts';
import { PostgresDispatcher } from './dispatcher.ts';
import { checkSchema, type MigrationOutcome, migrateSchema } from './migrations.ts';
import { type PostgresOptions, settingsOf } from './options.ts';
import { PostgresSignals } from './signals.ts';
import { statementsFor } from './statements.ts';
import { PostgresStore } from './store.ts';

export type { MigrationOutcome } from './migrations.ts';
export type { PostgresOptions } from './options.ts';

/**
 * A backend in a Postgres database, version 15 or later, for any number of processes on any number of machines.
 * The schema must be there: see {@link migrate}. Needs the package `pg`.
 *
 * `open()` rejects with `STORE_OLDER` or `STORE_NEWER` where the schema is of another version, and with
 * `STORE_UNUSABLE` where the database cannot be reached.
 */
export function postgres(options: PostgresOptions | string): Backend {
	const settings = settingsOf(options);
	const database = new Database(settings);
	const statements = statementsFor(settings.schema);
	const store = new PostgresStore(database, statements, settings.time);
	const signals = new PostgresSignals(database, statements, settings);
	let opening: Promise<void> | undefined;
	const open = async (): Promise<void> => {
		await database.open(async (run) => {
			await checkSchema(run, settings.schema, database.place);
			await store.open(run);
		});
		await signals.start();
	};
	return {
		name: 'postgres',
		store,
		dispatcher: new PostgresDispatcher(database.run, statements),
		signals,
		open: () => (opening ??= open()),
		close: async () => {
			await signals.stop();
			await database.close();
		},
	};
}

/**
 * Creates the schema, or brings it up to date: what `holdfast migrate` does. Processes of the older version must not
 * run meanwhile. Through a transaction or not at all; two at the same time do it once.
 *
 * @throws STORE_NEWER, STORE_UNUSABLE
 */
export async function migrate(options: PostgresOptions | string): Promise<MigrationOutcome> {
	const settings = settingsOf(options);
	const database = new Database(settings);
	await database.open(async () => {});
	try {
		return await database.transaction((run) => migrateSchema(run, settings.schema, database.place));
	} finally {
		await database.close();
	}
}
