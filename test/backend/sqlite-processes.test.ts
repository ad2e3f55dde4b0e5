import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { Database } from '../../src/backend/sqlite/database.ts';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { SqliteSignals } from '../../src/backend/sqlite/signals.ts';
import { SqliteStore } from '../../src/backend/sqlite/store.ts';
import type { TaskChange } from '../../src/backend/signals.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { ENDED, newDetails, newRecord, revised, TEST_LIMITS } from '../../src/testing/records.ts';
import { onFile, sqliteFolder } from './sqlite-folder.ts';

const newFile = sqliteFolder();
const WRITER = fileURLToPath(new URL('./sqlite-writer.ts', import.meta.url));

function writer(
	file: string,
	count: number,
	principal = 'local',
): ChildProcess & { stdout: NodeJS.ReadableStream } {
	return spawn(
		process.execPath,
		['--disable-warning=ExperimentalWarning', WRITER, file, String(count), principal],
		{
			stdio: ['ignore', 'pipe', 'inherit'],
		},
	);
}

/** What the counters say next to what there is, and SQLite's own check. */
function audit(file: string) {
	return {
		integrity: onFile(file, 'PRAGMA integrity_check'),
		counters: onFile(file, 'SELECT principal, open, ended FROM counters WHERE id > 0 ORDER BY principal'),
		counted: onFile(
			file,
			`SELECT principal, sum(status = 'working') AS open, sum(status <> 'working') AS ended
				FROM tasks GROUP BY principal ORDER BY principal`,
		),
		open: onFile<{ open: number }>(file, 'SELECT open FROM counters WHERE id = 0')[0]?.open,
	};
}

describe('several processes', () => {
	test('write the same file at the same time, and none is turned away', async () => {
		const file = newFile();
		const children = ['ada', 'ada', 'bob'].map((principal) => writer(file, 100, principal));
		const codes = await Promise.all(
			children.map(async (child) => {
				child.stdout.resume();
				return (await once(child, 'exit'))[0] as unknown;
			}),
		);
		expect(codes).toEqual([0, 0, 0]);
		const counters = [
			{ principal: 'ada', open: 0, ended: 200 },
			{ principal: 'bob', open: 0, ended: 100 },
		];
		expect(audit(file)).toEqual({
			integrity: [{ integrity_check: 'ok' }],
			counters,
			counted: counters,
			open: 0,
		});
	});

	test('one that is killed leaves every task it told of, and a sound file', async () => {
		const file = newFile();
		const child = writer(file, 1_000_000);
		const told: string[] = [];
		for await (const line of createInterface(child.stdout)) {
			told.push(line);
			if (told.length === 30) child.kill('SIGKILL');
		}
		const backend = sqlite(file);
		await backend.open();
		for (const taskId of told)
			expect(await backend.store.get(taskId)).toMatchObject({ status: 'completed', revision: 3 });
		const { integrity, counters, counted } = audit(file);
		expect(integrity).toEqual([{ integrity_check: 'ok' }]);
		expect(counters).toEqual(counted);
		expect((await backend.store.create(newDetails(), TEST_LIMITS)).kind).toBe('created');
		await backend.close();
	});

	test('are told of what another one did', async () => {
		const file = newFile();
		const { signals, heard, close } = await watched(file);
		const child = writer(file, 3);
		const ids: string[] = [];
		for await (const line of createInterface(child.stdout)) ids.push(line);
		signals.poll();
		expect(heard).toEqual(ids.map((taskId) => ({ taskId, revision: 3, runnable: false })));
		close();
	});
});

/** Signals on a file with a clock that a test moves, and what they told. */
async function watched(file: string) {
	const database = new Database(file);
	const clock = new FakeClock();
	const signals = new SqliteSignals(database, 25, clock);
	const heard: TaskChange[] = [];
	await database.open();
	signals.start();
	const leave = signals.subscribe((change) => void heard.push(change));
	const close = () => {
		leave();
		signals.stop();
		database.close();
	};
	return { store: new SqliteStore(database, clock), signals, clock, heard, leave, close };
}

describe('signals', () => {
	test('tell of a change of another connection with the next look, and once', async () => {
		const file = newFile();
		const here = await watched(file);
		const there = await watched(file);
		const record = newRecord();
		await there.store.create(newDetails(record), TEST_LIMITS);
		await here.clock.advance(24);
		expect(here.heard).toEqual([]);
		await here.clock.advance(1);
		expect(here.heard).toEqual([{ taskId: record.taskId, revision: 1, runnable: true }]);
		await there.store.replace(revised(record, ENDED), 'full');
		await here.clock.advance(100);
		expect(here.heard.slice(1)).toEqual([{ taskId: record.taskId, revision: 2, runnable: false }]);
		// Its own changes are told by publish() alone.
		await there.clock.advance(1_000);
		expect(there.heard).toEqual([]);
		here.close();
		there.close();
	});

	test('do not repeat own changes when another one comes', async () => {
		const file = newFile();
		const here = await watched(file);
		const there = await watched(file);
		const theirs = newDetails();
		await here.store.create(newDetails(), TEST_LIMITS);
		await there.store.create(theirs, TEST_LIMITS);
		await here.store.create(newDetails(), TEST_LIMITS);
		here.signals.poll();
		expect(here.heard.map(({ taskId }) => taskId)).toEqual([theirs.record.taskId]);
		here.close();
		there.close();
	});

	test('look less often while nothing happens, and often again when something does', async () => {
		const { store, signals, clock, close } = await watched(newFile());
		expect(signals.delayMs).toBe(25);
		await clock.advance(40 * 25);
		expect(signals.delayMs).toBe(50);
		await clock.advance(60_000);
		expect(signals.delayMs).toBe(250);
		signals.publish({ taskId: 'x', revision: 1, runnable: false });
		expect(signals.delayMs).toBe(25);
		expect(clock.pending).toBe(1);
		await store.nowMs();
		close();
	});

	test('look only while someone listens', async () => {
		const file = newFile();
		const here = await watched(file);
		const there = await watched(file);
		here.leave();
		expect(here.clock.pending).toBe(0);
		await there.store.create(newDetails(), TEST_LIMITS);
		const late: TaskChange[] = [];
		here.signals.subscribe((change) => void late.push(change));
		expect(here.clock.pending).toBe(1);
		await here.clock.advance(100);
		expect(late).toEqual([]);
		here.close();
		expect(here.clock.pending).toBe(0);
		there.close();
	});

	test('keep the log of changes short', async () => {
		const file = newFile();
		const { store, close } = await watched(file);
		onFile(
			file,
			`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20223)
				INSERT INTO changes (seq, task, origin) SELECT i, 1, 1 FROM n`,
		);
		await store.create(newDetails(), TEST_LIMITS);
		expect(onFile(file, 'SELECT min(seq) AS first, max(seq) AS last FROM changes')).toEqual([
			{ first: 10_225, last: 20_224 },
		]);
		close();
	});
});
