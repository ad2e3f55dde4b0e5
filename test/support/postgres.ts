/** Where tests find a Postgres: the service that answers, else one of their own, else none. */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { migrate, postgres, type PostgresOptions } from '../../src/backend/postgres/index.ts';
import type { Backend } from '../../src/backend/backend.ts';
import { messageOf } from '../../src/errors.ts';
import { canConnect, OwnPostgres } from './own-postgres.ts';

const SERVICE = process.env['HOLDFAST_TEST_POSTGRES'] ?? 'postgres://postgres@127.0.0.1:5432/test';

/** A Postgres for the tests of one file. */
export interface PostgresService {
	readonly url: string;
	/** A name that no other test has; its schema goes away with `close`. */
	readonly newSchema: () => string;
	/** A migrated schema with nothing in it, and a backend on it that is not open yet. */
	readonly newBackend: (options?: Partial<PostgresOptions>) => Promise<Backend>;
	/** Runs SQL behind the backend's back. */
	readonly query: <Row>(sql: string) => Promise<Row[]>;
	readonly close: () => Promise<void>;
}

/**
 * Finds or starts a Postgres. Answers the reason as a text where there is none; in continuous integration that is an
 * error, since tests that are skipped there prove nothing.
 */
export async function postgresService(): Promise<PostgresService | string> {
	if (await canConnect(SERVICE)) return serviceAt(SERVICE, async () => {});
	try {
		const own = await OwnPostgres.create();
		return serviceAt(own.url, () => own.remove());
	} catch (error) {
		const reason = `no Postgres at ${SERVICE}, and none could be started: ${messageOf(error)}`;
		if (process.env['CI']) throw new Error(reason, { cause: error });
		return reason;
	}
}

function serviceAt(url: string, stop: () => Promise<void>): PostgresService {
	const schemas: string[] = [];
	const newSchema = (): string => {
		const schema = `test_${randomUUID().slice(0, 13).replace('-', '_')}`;
		schemas.push(schema);
		return schema;
	};
	const query = async <Row>(sql: string): Promise<Row[]> => {
		const client = new Client({ connectionString: url });
		await client.connect();
		try {
			return (await client.query(sql)).rows as Row[];
		} finally {
			await client.end();
		}
	};
	return {
		url,
		newSchema,
		query,
		newBackend: async (options = {}) => {
			const all = { url, schema: newSchema(), ...options };
			await migrate(all);
			return postgres(all);
		},
		close: async () => {
			for (const schema of schemas) await query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
			await stop();
		},
	};
}
