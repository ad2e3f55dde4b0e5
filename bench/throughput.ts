/**
 * Tasks per second from create to complete, against the very same writes without anything around them: what the
 * engine wrote in a run before is replayed, statement for statement, in as many transactions.
 */
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { Database, type Statement } from '../src/backend/sqlite/database.ts';
import type { Durability } from '../src/backend/store.ts';
import type { Engine } from '../src/engine/engine.ts';
import { type Figure, median } from './figures.ts';
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

const CREATORS = 16;
const CONCURRENCY = 64;

/** Many short rounds, since the disk is never twice the same; the first ones warm up and do not count. */
const ROUNDS = 45;
const WARM_UP = 5;
const TASKS: Readonly<Record<Durability, number>> = { full: 50, normal: 250 };

interface Write {
	readonly sql: string;
	readonly parameters: readonly SQLInputValue[];
}

/** Remembers everything that is written. */
class RecordingDatabase extends FixedDatabase {
	readonly writes: Write[] = [];

	override statement<Row = never>(sql: string): Statement<Row> {
		const statement = super.statement<Row>(sql);
		const isRead = /^\s*(SELECT|PRAGMA)\b/i.test(sql);
		const note = (parameters: SQLInputValue[]): void => {
			if (!isRead) this.writes.push({ sql, parameters });
		};
		return {
			get: (...parameters) => {
				note(parameters);
				return statement.get(...parameters);
			},
			all: (...parameters) => {
				note(parameters);
				return statement.all(...parameters);
			},
			run: (...parameters) => {
				note(parameters);
				return statement.run(...parameters);
			},
		};
	}
}

export async function measure(): Promise<readonly Figure[]> {
	return [...(await compare('full', 'FULL')), ...(await compare('normal', 'NORMAL'))];
}

function compare(durability: Durability, name: string): Promise<readonly Figure[]> {
	return withFolder(async (folder) => {
		const tasks = TASKS[durability];
		const transactions = inTransactions(await record(join(folder, 'recorded.db'), ROUNDS * tasks));
		const perTask = transactions.length / (ROUNDS * tasks);
		const bare = await openBare(join(folder, 'bare.db'), durability);
		const database = new FixedDatabase(join(folder, 'engine.db'), durability);
		const contender = await startContender(database);
		const rounds: { own: Cost; bare: Cost }[] = [];
		for (let round = 0; round < ROUNDS; round++) {
			const part = transactions.slice(
				Math.round(round * tasks * perTask),
				Math.round((round + 1) * tasks * perTask),
			);
			const runOwn = (): Promise<Cost> => costOf(tasks, () => contender.run(tasks));
			const runBare = (): Promise<Cost> => costOf(tasks, async () => bare.replay(part));
			// Whoever comes second finds a disk that the first one has just made busy.
			const ownFirst = round % 2 === 0;
			const first = await (ownFirst ? runOwn() : runBare());
			const second = await (ownFirst ? runBare() : runOwn());
			if (round >= WARM_UP)
				rounds.push(ownFirst ? { own: first, bare: second } : { own: second, bare: first });
		}
		await contender.stop();
		bare.close();
		const ratio = (of: keyof Cost): number => median(rounds.map(({ own, bare }) => bare[of] / own[of]));
		const middle = (who: 'own' | 'bare', of: keyof Cost): number =>
			median(rounds.map((round) => round[who][of]));
		return [
			{ what: `${name}, against bare SQL`, value: ratio('elapsedMs'), unit: '', goal: { atLeast: 0.7 } },
			{ what: `${name}, against bare SQL by CPU time`, value: ratio('cpuMs'), unit: '' },
			{ what: `${name}, tasks per second`, value: 1000 / middle('own', 'elapsedMs'), unit: '/s' },
			{ what: `${name}, CPU time of a task`, value: middle('own', 'cpuMs') * 1000, unit: 'us' },
			{ what: `${name}, CPU time of its bare SQL`, value: middle('bare', 'cpuMs') * 1000, unit: 'us' },
			{ what: `${name}, transactions of a task`, value: perTask, unit: '' },
		];
	});
}

/** Of one task. */
interface Cost {
	readonly elapsedMs: number;
	readonly cpuMs: number;
}

async function costOf(tasks: number, work: () => Promise<void>): Promise<Cost> {
	const usage = process.cpuUsage();
	const startedAt = performance.now();
	await work();
	const elapsedMs = (performance.now() - startedAt) / tasks;
	const { user, system } = process.cpuUsage(usage);
	return { elapsedMs, cpuMs: (user + system) / 1000 / tasks };
}

async function record(file: string, tasks: number): Promise<readonly Write[]> {
	const database = new RecordingDatabase(file, 'normal');
	const contender = await startContender(database);
	await contender.run(tasks);
	const writes = [...database.writes];
	await contender.stop();
	return writes;
}

interface Contender {
	run(tasks: number): Promise<void>;
	stop(): Promise<void>;
}

async function startContender(database: Database): Promise<Contender> {
	const backend = backendOn(database);
	const engine: Engine = await startEngine(backend, CONCURRENCY, async () => ({
		kind: 'returned',
		result: RESULT,
	}));
	const ends = new Ends(backend, 2);
	let made = 0;
	return {
		run: (tasks) =>
			inParallel(tasks, CREATORS, async () => {
				const call = await engine.call(callOf('deploy', made++));
				await ends.of(call.taskId);
			}),
		stop: async () => {
			ends.stop();
			await engine.stop(1_000);
			await backend.close();
		},
	};
}

function inTransactions(writes: readonly Write[]): readonly (readonly Write[])[] {
	const transactions: Write[][] = [];
	for (const write of writes) {
		if (write.sql.startsWith('BEGIN')) transactions.push([]);
		transactions.at(-1)?.push(write);
	}
	// One that only reads, such as a snapshot, is none of the writes.
	return transactions.filter((transaction) => transaction.length > 2);
}

/** The same schema and settings, with `node:sqlite` alone. */
async function openBare(file: string, durability: Durability) {
	const maker = new Database(file);
	await maker.open();
	maker.close();
	const connection = new DatabaseSync(file);
	connection.exec(
		`PRAGMA synchronous = ${durability}; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY`,
	);
	const statements = new Map<string, StatementSync>();
	const prepared = (sql: string): StatementSync => {
		const statement = statements.get(sql) ?? connection.prepare(sql);
		statements.set(sql, statement);
		return statement;
	};
	return {
		replay(transactions: readonly (readonly Write[])[]): void {
			for (const transaction of transactions)
				for (const { sql, parameters } of transaction) prepared(sql).run(...parameters);
		},
		close: () => connection.close(),
	};
}
