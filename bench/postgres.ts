/**
 * Holdfast on Postgres against raw pg-boss on the same server, in one run. `HOLDFAST_TEST_POSTGRES` names another
 * server than the one on this machine; the measurement makes schemas of its own there and drops them.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import type { Backend } from '../src/backend/backend.ts';
import { migrate, postgres } from '../src/backend/postgres/index.ts';
import type { Engine } from '../src/engine/engine.ts';
import { type Figure, median, percentile } from './figures.ts';
import { callOf, Ends, inParallel, RESULT, startEngine } from './fixture.ts';
import { throughPgBoss, withJobBeside } from './postgres-rows.ts';

const URL = process.env['HOLDFAST_TEST_POSTGRES'] ?? 'postgres://postgres@127.0.0.1:5432/test';
const CREATORS = 16;
const WORKERS = 10;
const TASKS = 1_000;
const ROUNDS = 7;
const SAMPLES = 300;
const PAUSE_MS = 10;
const FINISHED = 1_000_000;
const SETTLE = 12;

/** Revisions of a task that is created, claimed and completed. */
const LAST_REVISION = 3;

export async function measure(): Promise<readonly Figure[]> {
	const run = randomUUID().slice(0, 8);
	const names = ['bench', 'bench_full', 'boss', 'beside', 'beside_boss'] as const;
	const schemas = names.map((name) => `${name}_${run}`);
	const [own = '', full = '', boss = '', beside = '', besideBoss = ''] = schemas;
	// Nothing of holdfast keeps a process alive that only waits.
	const alive = setInterval(() => {}, 1_000);
	try {
		for (const schema of [own, full, beside]) await migrate({ url: URL, schema });
		const replicas = await startReplicas(own);
		const [rows, raw, both] = await rounds([
			() => throughput(replicas),
			() => throughPgBoss(URL, boss, TASKS, CREATORS, WORKERS, RESULT),
			() => withJobBeside(URL, beside, besideBoss, TASKS, CREATORS, WORKERS, RESULT),
		]);
		const latencies = await latency(replicas);
		const filled = await startReplicas(full);
		await throughput(filled);
		await fill(full);
		// The first change of each page after a checkpoint writes the whole page to the log: a cost of the checkpoint,
		// and of none of the hundred thousand tasks that follow.
		for (let round = 0; round < SETTLE; round++) await throughput(filled);
		const [few, many] = await rounds([() => throughput(replicas), () => throughput(filled)]);
		await replicas.close();
		await filled.close();
		return [
			{ what: 'raw pg-boss, create to complete', value: median(raw), unit: '/s' },
			{ what: 'holdfast, create to complete', value: median(rows), unit: '/s' },
			{ what: 'holdfast / raw pg-boss', value: ratio(rows, raw), unit: '', goal: { atLeast: 0.9 } },
			{ what: 'rows with a job of pg-boss beside each', value: median(both), unit: '/s' },
			{ what: 'rows with jobs beside / raw pg-boss', value: ratio(both, raw), unit: '' },
			...latencies,
			{ what: `among ${FINISHED} finished tasks, create to complete`, value: median(many), unit: '/s' },
			{
				what: `among ${FINISHED} finished tasks / among few`,
				value: ratio(many, few),
				unit: '',
				goal: { atLeast: 0.9 },
			},
		];
	} finally {
		clearInterval(alive);
		await query(schemas.map((schema) => `DROP SCHEMA IF EXISTS ${schema} CASCADE`).join(';'));
	}
}

/**
 * Measures all contenders in turn, round by round, since neither the disk nor the machine is twice the same. The first
 * round warms up and does not count.
 */
async function rounds<const Contenders extends readonly (() => Promise<number>)[]>(
	contenders: Contenders,
): Promise<{ [Index in keyof Contenders]: number[] }> {
	const values = contenders.map((): number[] => []);
	for (let round = 0; round <= ROUNDS; round++)
		for (const [index, measureOne] of contenders.entries()) {
			const value = await measureOne();
			if (round > 0) values[index]?.push(value);
		}
	return values as { [Index in keyof Contenders]: number[] };
}

/** The median of the rounds' ratios. */
function ratio(values: readonly number[], others: readonly number[]): number {
	return median(values.map((value, round) => value / (others[round] ?? NaN)));
}

/** A request server and a worker, each with its own connections, as if on two machines. */
interface Replicas {
	readonly requests: Engine;
	readonly requestBackend: Backend;
	readonly workerBackend: Backend;
	readonly entered: Map<string, number>;
	readonly returned: Map<string, number>;
	close(): Promise<void>;
}

async function startReplicas(schema: string): Promise<Replicas> {
	const [entered, returned] = [new Map<string, number>(), new Map<string, number>()];
	const requestBackend = postgres({ url: URL, schema });
	const workerBackend = postgres({ url: URL, schema });
	const requests = await startEngine(requestBackend, 0, () => Promise.reject(new Error('runs no tools')));
	const worker = await startEngine(workerBackend, WORKERS, async ({ record }) => {
		entered.set(record.taskId, performance.now());
		returned.set(record.taskId, performance.now());
		return { kind: 'returned', result: RESULT };
	});
	return {
		...{ requests, requestBackend, workerBackend, entered, returned },
		close: async () => {
			await requests.stop(0);
			await worker.stop(1_000);
			await requestBackend.close();
			await workerBackend.close();
		},
	};
}

/** Tasks per second that were created here, run there, and heard here to have ended. */
async function throughput({ requests, requestBackend }: Replicas): Promise<number> {
	const ends = new Ends(requestBackend, LAST_REVISION);
	const startedAt = performance.now();
	const ended: Promise<void>[] = [];
	await inParallel(TASKS, CREATORS, async (number) => {
		const { taskId } = await requests.call(callOf('deploy', number));
		ended.push(ends.of(taskId));
	});
	await Promise.all(ended);
	ends.stop();
	return (1000 * TASKS) / (performance.now() - startedAt);
}

async function latency(replicas: Replicas): Promise<readonly Figure[]> {
	const { requests, requestBackend, entered, returned } = replicas;
	const [pickups, notices]: [number[], number[]] = [[], []];
	for (let sample = 0; sample < SAMPLES; sample++) {
		const ends = new Ends(requestBackend, LAST_REVISION);
		const calledAt = performance.now();
		const { taskId } = await requests.call(callOf('deploy', sample));
		await ends.of(taskId);
		const heardAt = performance.now();
		ends.stop();
		pickups.push((entered.get(taskId) ?? NaN) - calledAt);
		notices.push(heardAt - (returned.get(taskId) ?? NaN));
		await sleep(PAUSE_MS);
	}
	return [
		{ what: 'called to entered, p50', value: percentile(pickups, 0.5), unit: 'ms', goal: { atMost: 10 } },
		{ what: 'called to entered, p99', value: percentile(pickups, 0.99), unit: 'ms' },
		{
			what: 'handler returned to heard on another replica, p50',
			value: percentile(notices, 0.5),
			unit: 'ms',
			goal: { atMost: 25 },
		},
		{
			what: 'handler returned to heard on another replica, p99',
			value: percentile(notices, 0.99),
			unit: 'ms',
		},
	];
}

/** Copies a finished task until there are enough of them. */
async function fill(schema: string): Promise<void> {
	const columns = (
		await query<{ column_name: string }>(
			`SELECT column_name FROM information_schema.columns WHERE table_schema = '${schema}' AND table_name = 'tasks'
			AND column_name NOT IN ('id', 'task_id', 'due_at_ms')`,
		)
	).map((row) => row.column_name);
	await query(
		`INSERT INTO ${schema}.tasks (task_id, due_at_ms, ${columns.join()})
		SELECT md5(n::text), due_at_ms - n, ${columns.join()} FROM (SELECT * FROM ${schema}.tasks LIMIT 1) AS one,
			generate_series(1, ${FINISHED}) AS n`,
	);
	await query(`VACUUM ANALYZE ${schema}.tasks`);
	// Not everybody may; the server then does it by itself, somewhere in the middle.
	await query('CHECKPOINT').catch(() => {});
}

async function query<Row>(sql: string): Promise<Row[]> {
	const client = new Client({ connectionString: URL });
	await client.connect();
	try {
		return (await client.query(sql)).rows as Row[];
	} finally {
		await client.end();
	}
}
