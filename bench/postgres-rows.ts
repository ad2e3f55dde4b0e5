/** Create → claim → complete on Postgres, in several ways, without an engine around it. */
import { randomUUID } from 'node:crypto';
import { Pool, type QueryConfig } from 'pg';
import { type Job, PgBoss } from 'pg-boss';
import { MACHINE_TIME } from '../src/backend/backend.ts';
import { Database, type Parameter, type Statement, type Work } from '../src/backend/postgres/database.ts';
import { settingsOf } from '../src/backend/postgres/options.ts';
import { statementsFor } from '../src/backend/postgres/statements.ts';
import { PostgresStore } from '../src/backend/postgres/store.ts';
import type { JsonObject } from '../src/protocol/json.ts';
import { ENDED, leased, newDetails, newRecord, revised } from '../src/testing/records.ts';
import { inParallel, LIMITS } from './fixture.ts';

const QUEUE = 'bench';

/** Work that is as large as the benchmarks' tasks: some arguments, half a kilobyte of result. */
export const ARGUMENTS = { branch: 'main', environment: 'production', build: 1_234 };

/** Runs `count` jobs through raw pg-boss and answers jobs per second. */
export async function throughPgBoss(
	url: string,
	schema: string,
	count: number,
	creators: number,
	workers: number,
	result: object,
): Promise<number> {
	const boss = new PgBoss({ connectionString: url, schema, max: 10, supervise: false, schedule: false });
	boss.on('error', (error) => console.error(error));
	await boss.start();
	try {
		await boss.createQueue(QUEUE);
		const startedAt = performance.now();
		await Promise.all([
			inParallel(count, creators, async () => {
				await boss.send(QUEUE, { id: randomUUID(), arguments: ARGUMENTS });
			}),
			fetchAll(boss, count, workers, ({ id }) => boss.complete(QUEUE, id, result)),
		]);
		return (1000 * count) / (performance.now() - startedAt);
	} finally {
		await boss.stop({ graceful: false, close: true });
	}
}

/**
 * The store's own statements with a job of pg-boss beside each row: created in one transaction, claimed by a fetch and
 * the row's claim, completed in one transaction.
 */
export async function withJobBeside(
	url: string,
	schema: string,
	bossSchema: string,
	count: number,
	creators: number,
	workers: number,
	result: JsonObject,
): Promise<number> {
	const boss = new PgBoss({
		connectionString: url,
		schema: bossSchema,
		max: 10,
		supervise: false,
		schedule: false,
	});
	boss.on('error', (error) => console.error(error));
	await boss.start();
	const pool = new Pool({ connectionString: url, max: 10 });
	const database = new CapturingDatabase(settingsOf({ url, schema }));
	const store = new PostgresStore(database, statementsFor(schema), MACHINE_TIME);
	const within = async (
		beside: (db: Db) => Promise<unknown>,
		write: () => Promise<unknown>,
	): Promise<void> => {
		await write();
		const written = database.taken();
		const client = await pool.connect();
		try {
			await client.query('BEGIN');
			await client.query(written);
			await beside({ executeSql: (text, values) => client.query(text, values) });
			await client.query('COMMIT');
		} finally {
			client.release();
		}
	};
	try {
		await boss.createQueue(QUEUE);
		const startedAt = performance.now();
		await Promise.all([
			inParallel(count, creators, async () => {
				const details = newDetails({}, { arguments: ARGUMENTS });
				const { taskId } = details.record;
				await within(
					(db) => boss.send(QUEUE, { taskId }, { db }),
					() => store.create(details, LIMITS),
				);
			}),
			fetchAll(boss, count, workers, async ({ id, data }) => {
				const { taskId } = data as { readonly taskId: string };
				const claimed = revised(newRecord({ taskId }), leased('token', Date.now()));
				await store.replace(claimed, 'normal');
				await pool.query(database.taken());
				await within(
					(db) => boss.complete(QUEUE, id, null, { db }),
					() => store.replace(revised(claimed, { ...ENDED, lease: null, result }), 'full'),
				);
			}),
		]);
		return (1000 * count) / (performance.now() - startedAt);
	} finally {
		await boss.stop({ graceful: false, close: true });
		await pool.end();
	}
}

interface Db {
	executeSql(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Keeps the last statement instead of running it, so that it can be run in a transaction with something else. */
class CapturingDatabase extends Database {
	#written: QueryConfig | undefined;

	override attempt<Result>(work: Work<Result>): Promise<Result> {
		const run = async ({ name, text }: Statement, values: readonly Parameter[]): Promise<never[]> => {
			this.#written = { name, text, values: [...values] };
			return [['1', false, 0, 0, 0]] as never[];
		};
		return work(run, false);
	}

	taken(): QueryConfig {
		if (!this.#written) throw new Error('nothing was written');
		return this.#written;
	}
}

/** Fetches until `count` jobs are done, with at most `workers` under way. */
async function fetchAll(
	boss: PgBoss,
	count: number,
	workers: number,
	work: (job: Job<unknown>) => Promise<unknown>,
): Promise<void> {
	const progress = { done: 0 };
	const busy = new Set<Promise<unknown>>();
	while (progress.done < count) {
		if (busy.size === workers) await Promise.race(busy);
		const jobs = await boss.fetch<unknown>(QUEUE, { batchSize: Math.max(1, workers - busy.size) });
		for (const job of jobs) {
			const ending = work(job).then(() => {
				progress.done += 1;
				busy.delete(ending);
			});
			busy.add(ending);
		}
		if (jobs.length === 0) await Promise.race([...busy, new Promise((resolve) => setTimeout(resolve, 2))]);
	}
}
