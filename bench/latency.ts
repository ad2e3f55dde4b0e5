/** Whether reading one task takes as long among a million as among a thousand. */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../src/backend/sqlite/index.ts';
import type { Engine } from '../src/engine/engine.ts';
import { type Figure, median, percentile } from './figures.ts';
import {
	backendOn,
	callOf,
	Ends,
	FixedDatabase,
	inParallel,
	RESULT,
	startEngine,
	withFolder,
} from './fixture.ts';
import type { LoadOrder, LoadResult } from './http-load.ts';
import type { ServerReady } from './http-server.ts';
import { next, request } from './wire.ts';

const FEW = 1_000;
const MANY = 1_000_000;
const ROUNDS = 11;
const READS = 5_000;

/** As many tasks as are polled at a time. */
const POLLED = 1_000;

const HTTP_ROUNDS = 7;
const HTTP_ROUND_MS = 400;

export function measure(): Promise<readonly Figure[]> {
	return withFolder(async (folder) => {
		const few = join(folder, 'few.db');
		const many = join(folder, 'many.db');
		await make(few, FEW);
		await make(many, FEW);
		multiply(many, MANY);
		return [...(await throughEngine(few, many)), ...(await overHttp(few, many))];
	});
}

/** Of single reads, in microseconds. */
interface Round {
	readonly p50: number;
	readonly p99: number;
}

interface Pair {
	readonly few: Round;
	readonly many: Round;
}

async function throughEngine(fewFile: string, manyFile: string): Promise<readonly Figure[]> {
	const few = await open(fewFile);
	const many = await open(manyFile);
	const fewIds = pick(fewFile, POLLED);
	const someIds = pick(manyFile, POLLED);
	const anyIds = pick(manyFile, 100_000);
	const readFew = (): Promise<Round> => read(few.engine, fewIds);
	const any = await alternate(ROUNDS, { few: readFew, many: () => read(many.engine, anyIds) });
	const polled = await alternate(ROUNDS, { few: readFew, many: () => read(many.engine, someIds) });
	await few.close();
	await many.close();
	// Of any of a million tasks hardly one was just read, and of a thousand each was: no goal for that ratio.
	return [...figures('engine, 1,000 polled tasks', polled, 1.5), ...figures('engine, any task', any, null)];
}

/** As a client sees it that asks about one task after the other. */
async function overHttp(fewFile: string, manyFile: string): Promise<readonly Figure[]> {
	const children: ChildProcess[] = [];
	const start = async (script: string, ...args: string[]): Promise<ChildProcess> => {
		const child = fork(join(import.meta.dirname, script), args);
		children.push(child);
		return child;
	};
	const serve = async (file: string): Promise<LoadOrder> => {
		const { port } = await next<ServerReady>(await start('http-server.ts', 'stored', file));
		const requests = pick(file, 10_000).map((taskId) => request('tasks/get', taskId, { taskId }));
		return { port, requests, connections: 1, durationMs: HTTP_ROUND_MS };
	};
	try {
		const load = await start('http-load.ts');
		const few = await serve(fewFile);
		const many = await serve(manyFile);
		const ask = async (order: LoadOrder): Promise<Round> => {
			load.send(order);
			const { failure, latenciesMs } = await next<LoadResult>(load);
			if (failure !== null) throw new Error(`a request failed: ${failure.slice(0, 1_000)}`);
			return { p50: percentile(latenciesMs, 0.5) * 1000, p99: percentile(latenciesMs, 0.99) * 1000 };
		};
		const rounds = await alternate(HTTP_ROUNDS, { few: () => ask(few), many: () => ask(many) });
		return figures('tasks/get over HTTP, any task', rounds, 1.2);
	} finally {
		for (const child of children) child.kill();
	}
}

/** Rounds of both in turn, after one that warms up. */
async function alternate(
	rounds: number,
	of: { readonly few: () => Promise<Round>; readonly many: () => Promise<Round> },
): Promise<readonly Pair[]> {
	const pairs: Pair[] = [];
	for (let round = 0; round <= rounds; round++) {
		const pair = { few: await of.few(), many: await of.many() };
		if (round > 0) pairs.push(pair);
	}
	return pairs;
}

function figures(name: string, pairs: readonly Pair[], atMost: number | null): readonly Figure[] {
	const ratio = (of: keyof Round): number => median(pairs.map(({ few, many }) => many[of] / few[of]));
	const middle = (size: keyof Pair, of: keyof Round): number => median(pairs.map((pair) => pair[size][of]));
	return [
		{
			what: `${name}: 1,000,000 rows against 1,000, p50`,
			value: ratio('p50'),
			unit: '',
			...(atMost !== null && { goal: { atMost } }),
		},
		{ what: `${name}: 1,000,000 rows against 1,000, p99`, value: ratio('p99'), unit: '' },
		...(['p50', 'p99'] as const).flatMap((of) => [
			{ what: `${name}: 1,000 rows, ${of}`, value: middle('few', of), unit: 'us' },
			{ what: `${name}: 1,000,000 rows, ${of}`, value: middle('many', of), unit: 'us' },
		]),
	];
}

async function read(engine: Engine, taskIds: readonly string[]): Promise<Round> {
	const times: number[] = [];
	for (let index = 0; index < READS; index++) {
		const taskId = taskIds[Math.floor(Math.random() * taskIds.length)] ?? '';
		const startedAt = performance.now();
		await engine.get(taskId, 'anonymous');
		times.push((performance.now() - startedAt) * 1000);
	}
	return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}

async function open(file: string): Promise<{ readonly engine: Engine; close(): Promise<void> }> {
	const backend = sqlite(file);
	const engine = await startEngine(backend, 64, async () => ({ kind: 'returned', result: RESULT }));
	return {
		engine,
		close: async () => {
			await engine.stop(1_000);
			await backend.close();
		},
	};
}

/** Tasks that the engine made and completed. */
async function make(file: string, rows: number): Promise<void> {
	const backend = backendOn(new FixedDatabase(file, 'normal'));
	const engine = await startEngine(backend, 64, async () => ({ kind: 'returned', result: RESULT }));
	const ends = new Ends(backend, 2);
	await inParallel(rows, 16, async (number) => ends.of((await engine.call(callOf('deploy', number))).taskId));
	await engine.stop(1_000);
	await backend.close();
}

/** Copies the tasks of a file under new ids until there are enough; the engine would take minutes. */
function multiply(file: string, rows: number): void {
	const database = new DatabaseSync(file);
	database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN IMMEDIATE');
	const columns = (table: string, ...replaced: string[]): string =>
		database
			.prepare(`SELECT name FROM pragma_table_info('${table}')`)
			.all()
			.map(({ name }) => String(name))
			.filter((name) => !replaced.includes(name))
			.join(', ');
	const made = Number(database.prepare('SELECT max(id) AS id FROM tasks').get()?.['id']);
	const copies = `WITH RECURSIVE copies (copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies
		WHERE copy < ${Math.ceil(rows / made) - 1})`;
	const task = columns('tasks', 'id', 'task_id');
	database.exec(`INSERT INTO tasks (id, task_id, ${task}) ${copies}
		SELECT id + copy * ${made}, lower(hex(randomblob(20))), ${task} FROM copies CROSS JOIN tasks`);
	for (const table of ['payloads', 'results']) {
		const value = columns(table, 'id');
		database.exec(`INSERT INTO ${table} (id, ${value}) ${copies}
			SELECT id + copy * ${made}, ${value} FROM copies CROSS JOIN ${table}`);
	}
	database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
	database.close();
}

/** Ids of at most `count` tasks, evenly from the whole file. */
function pick(file: string, count: number): readonly string[] {
	const database = new DatabaseSync(file, { readOnly: true });
	const last = Number(database.prepare('SELECT max(id) AS id FROM tasks').get()?.['id']);
	const wanted = Array.from(
		{ length: Math.min(count, last) },
		(_, index) => 1 + Math.floor((index * last) / count),
	);
	const find = database.prepare('SELECT task_id FROM tasks WHERE id = ?');
	const taskIds = wanted.map((id) => String(find.get(id)?.['task_id']));
	database.close();
	return taskIds;
}
