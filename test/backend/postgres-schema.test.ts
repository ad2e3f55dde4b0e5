import { afterAll, describe, expect, test } from 'vitest';
import { migrate, postgres } from '../../src/backend/postgres/index.ts';
import { MIGRATIONS, migrateSchema } from '../../src/backend/postgres/migrations.ts';
import { Database } from '../../src/backend/postgres/database.ts';
import { settingsOf } from '../../src/backend/postgres/options.ts';
import { newDetails, TEST_LIMITS } from '../../src/testing/records.ts';
import { postgresService } from '../support/postgres.ts';

const service = await postgresService();

describe('options', () => {
	test.each([
		[{ url: 'mysql://localhost/x' }, '`url`'],
		[{ url: '' }, '`url`'],
		[{ url: 'postgres://localhost/x', directUrl: 'localhost' }, '`directUrl`'],
		[{ url: 'postgres://localhost/x', schema: 'Tasks' }, '`schema`'],
		[{ url: 'postgres://localhost/x', schema: 'x"; DROP SCHEMA public; --' }, '`schema`'],
		[{ url: 'postgres://localhost/x', schema: 'pg_tasks' }, '`schema`'],
		[{ url: 'postgres://localhost/x', connections: 0 }, '`connections`'],
		[{ url: 'postgres://localhost/x', patienceMs: 1.5 }, '`patienceMs`'],
		[{ url: 'postgres://localhost/x', pollIntervalMs: 1 }, '`pollIntervalMs`'],
	])('%o is refused', (options, name) => {
		expect(() => postgres(options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
		expect(() => postgres(options)).toThrow(name);
	});
});

describe.skipIf(typeof service === 'string')('a schema', () => {
	if (typeof service === 'string') return;
	const { url, newSchema, query } = service;
	afterAll(() => service.close());

	const opening = (schema: string, to = url): Promise<unknown> =>
		postgres({ url: to, schema })
			.open()
			.catch((error: unknown) => error);

	test('that was not migrated is refused, with the command that helps', async () => {
		const schema = newSchema();
		expect(await opening(schema)).toMatchObject({ code: 'STORE_OLDER', message: /`holdfast migrate` once/ });
		expect(await query(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`)).toEqual([]);
	});

	test('is migrated once, also by several at the same time', async () => {
		const schema = newSchema();
		const outcomes = await Promise.all([1, 2, 3].map(() => migrate({ url, schema })));
		expect(outcomes.map(({ from }) => from).sort((a, b) => a - b)).toEqual([0, 1, 1]);
		expect(await migrate({ url, schema })).toEqual({ from: 1, to: 1 });
	});

	test('of a newer version is refused, untouched', async () => {
		const schema = newSchema();
		await migrate({ url, schema });
		await query(`UPDATE ${schema}.holdfast SET version = 7`);
		const newer = { code: 'STORE_NEWER', message: /version 7.*up to 1.*Update holdfast/ };
		expect(await opening(schema)).toMatchObject(newer);
		await expect(migrate({ url, schema })).rejects.toMatchObject(newer);
	});

	test('of an older version is refused until it is migrated; a migration that fails leaves it as it was', async () => {
		const schema = newSchema();
		const added = { version: 2, sql: ['ALTER TABLE tasks ADD COLUMN colour text'] };
		const broken = { version: 3, sql: ['DROP TABLE nothing'] };
		await migrate({ url, schema });
		const database = new Database(settingsOf({ url, schema }));
		await database.open(async () => {});
		const through = (migrations: typeof MIGRATIONS) =>
			database.transaction((run) => migrateSchema(run, schema, 'here', migrations));
		await expect(through([...MIGRATIONS, added, broken])).rejects.toThrow('nothing');
		expect(await query(`SELECT version FROM ${schema}.holdfast`)).toEqual([{ version: 1 }]);
		expect(await through([...MIGRATIONS, added])).toEqual({ from: 1, to: 2 });
		await database.close();
		await query(`UPDATE ${schema}.holdfast SET version = 0`);
		expect(await opening(schema)).toMatchObject({ code: 'STORE_OLDER' });
	});

	test('of another application is refused, untouched', async () => {
		const schema = newSchema();
		await query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.books (title text)`);
		const foreign = { code: 'STORE_UNUSABLE', message: /another application/ };
		expect(await opening(schema)).toMatchObject(foreign);
		await expect(migrate({ url, schema })).rejects.toMatchObject(foreign);
	});

	test('at an address where nobody listens is refused, without the password', async () => {
		const error = await opening('tasks', 'postgres://ada:secret@127.0.0.1:1/x');
		expect(error).toMatchObject({ code: 'STORE_UNUSABLE', message: /127\.0\.0\.1:1\/x cannot be used/ });
		expect(String(error)).not.toContain('secret');
	});

	test('is of no use before open() and after close()', async () => {
		const backend = await service.newBackend();
		await expect(backend.store.get('x')).rejects.toMatchObject({ code: 'NOT_STARTED' });
		await backend.open();
		await backend.close();
		await backend.close();
		await expect(backend.store.create(newDetails(), TEST_LIMITS)).rejects.toMatchObject({ code: 'CLOSED' });
	});

	test('has the clock of the database, where no other was given', async () => {
		const backend = await service.newBackend();
		await backend.open();
		const [row] = await query<{ now: number }>(
			'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
		);
		expect(Math.abs((await backend.store.nowMs()) - (row?.now ?? 0))).toBeLessThan(5_000);
		await backend.close();
	});
});
