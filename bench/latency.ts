/** Whether reading one task takes as long among a million as among a thousand. */
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

const FEW = 1_000;
const MANY = 1_000_000;
const ROUNDS = 11;
const READS = 5_000;

export function measure(): Promise<readonly Figure[]> {
	return withFolder(async (folder) => {
		const few = await open(join(folder, 'few.db'), FEW);
		const many = await open(join(folder, 'many.db'), MANY);
		const fewRounds: Round[] = [];
		const manyRounds: Round[] = [];
		await read(few);
		await read(many);
		for (let round = 0; round < ROUNDS; round++) {
			fewRounds.push(await read(few));
			manyRounds.push(await read(many));
		}
		await few.close();
		await many.close();
		const ratios = (of: keyof Round): number =>
			median(manyRounds.map((round, index) => round[of] / (fewRounds[index]?.[of] ?? 0)));
		const middle = (rounds: readonly Round[], of: keyof Round): number =>
			median(rounds.map((round) => round[of]));
		return [
			{ what: 'p50, 1,000,000 rows against 1,000', value: ratios('p50'), unit: '', goal: { atMost: 1.5 } },
			{ what: 'p99, 1,000,000 rows against 1,000', value: ratios('p99'), unit: '' },
			{ what: '1,000 rows, p50', value: middle(fewRounds, 'p50'), unit: 'us' },
			{ what: '1,000 rows, p99', value: middle(fewRounds, 'p99'), unit: 'us' },
			{ what: '1,000,000 rows, p50', value: middle(manyRounds, 'p50'), unit: 'us' },
			{ what: '1,000,000 rows, p99', value: middle(manyRounds, 'p99'), unit: 'us' },
		];
	});
}

interface Opened {
	readonly engine: Engine;
	/** Of any tasks, all over the file. */
	readonly taskIds: readonly string[];
	close(): Promise<void>;
}

interface Round {
	readonly p50: number;
	readonly p99: number;
}

/** Reads tasks at random, in microseconds. */
async function read({ engine, taskIds }: Opened): Promise<Round> {
	const times: number[] = [];
	for (let index = 0; index < READS; index++) {
		const taskId = taskIds[Math.floor(Math.random() * taskIds.length)] ?? '';
		const startedAt = performance.now();
		await engine.get(taskId, 'anonymous');
		times.push((performance.now() - startedAt) * 1000);
	}
	return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}

async function open(file: string, rows: number): Promise<Opened> {
	await make(file, Math.min(rows, FEW));
	if (rows > FEW) multiply(file, rows);
	const backend = sqlite(file);
	const engine = await startEngine(backend, 64, async () => ({ kind: 'returned', result: RESULT }));
	return {
		engine,
		taskIds: pick(file),
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
		SELECT id + copy * ${made}, substr(hex(randomblob(14)), 1, 27), ${task} FROM copies CROSS JOIN tasks`);
	for (const table of ['payloads', 'results']) {
		const value = columns(table, 'id');
		database.exec(`INSERT INTO ${table} (id, ${value}) ${copies}
			SELECT id + copy * ${made}, ${value} FROM copies CROSS JOIN ${table}`);
	}
	database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
	database.close();
}

function pick(file: string): readonly string[] {
	const database = new DatabaseSync(file, { readOnly: true });
	const last = Number(database.prepare('SELECT max(id) AS id FROM tasks').get()?.['id']);
	const every = Math.max(1, Math.floor(last / 100_000));
	const taskIds = database
		.prepare('SELECT task_id FROM tasks WHERE id % ? = 0')
		.all(every)
		.map((row) => String(row['task_id']));
	database.close();
	return taskIds;
}
