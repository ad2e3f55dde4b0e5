import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileJournal } from '../../src/client/journal/file-journal.ts';
import type { Journal } from '../../src/client/journal/journal.ts';
import { memoryJournal } from '../../src/client/journal/memory-journal.ts';
import { done, FakeServer, task } from './fake-server.ts';

let folder = '';
const journals: Journal[] = [];
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), 'holdfast-journal-'));
});
afterEach(async () => {
	for (const journal of journals.splice(0)) await journal.close();
	rmSync(folder, { recursive: true, force: true });
});

/** A journal that is closed after the test. */
function kept(journal: Journal): Journal {
	journals.push(journal);
	return journal;
}

function openFile(name = 'journal.db'): Journal {
	return kept(fileJournal(join(folder, name)));
}

const KEY = { server: 's', taskId: 't' };
const ENTRY = {
	...KEY,
	...{ tool: 'slow', protocolVersion: '2026-07-28', firstSeenAtMs: 1_000, ttlMs: null, argumentsDigest: 'd' },
};
const OUTCOME = { kind: 'completed', result: { content: [] } } as const;

describe.each([
	['the memory journal', () => kept(memoryJournal())],
	['the file journal', () => openFile()],
])('%s', (_name, make) => {
	it('keeps what is added, once, by server', async () => {
		const journal = make();
		await journal.add(ENTRY);
		await journal.add({ ...ENTRY, tool: 'again' });
		await journal.add({ ...ENTRY, server: 'other' });
		const entry = { ...ENTRY, answers: {}, outcome: null, endedAtMs: null, delivered: false };
		expect(await journal.find(KEY)).toEqual(entry);
		expect(await journal.list('s')).toEqual([entry]);
		expect(await journal.find({ ...KEY, taskId: 'x' })).toBeUndefined();
	});

	it('takes one answer for a question and forgets its words when it was sent', async () => {
		const journal = make();
		await journal.add(ENTRY);
		expect(await journal.answer(KEY, '__proto__', { action: 'accept' })).toBe(true);
		expect(await journal.answer(KEY, '__proto__', { action: 'decline' })).toBe(false);
		expect(await journal.answer(KEY, 'b', { action: 'cancel' })).toBe(true);
		await journal.sent(KEY, ['b', 'unknown']);
		const answers = (await journal.find(KEY))?.answers ?? {};
		expect(Object.entries(answers).sort(([a], [b]) => (a < b ? -1 : 1))).toEqual([
			['__proto__', { response: { action: 'accept' } }],
			['b', { response: null }],
		]);
	});

	it('lets one host at a time claim a question, until it gives the claim up, lapses or is known to be dead', async () => {
		const journal = make();
		await journal.add(ENTRY);
		const claim = (owner: string, nowMs: number, gone: string | null = null) =>
			journal.claim(KEY, 'k', { owner, nowMs, untilMs: nowMs + 100, gone });
		expect(await claim('a', 0)).toBe('a');
		expect(await claim('b', 50)).toBe('a');
		expect(await claim('a', 50)).toBe('a');
		expect(await claim('b', 120)).toBe('a');
		expect(await claim('b', 151)).toBe('b');
		expect(await claim('c', 152, 'a')).toBe('b');
		expect(await claim('c', 152, 'b')).toBe('c');
		await journal.release(KEY, 'k', 'b');
		expect(await claim('b', 153)).toBe('c');
		await journal.release(KEY, 'k', 'c');
		expect(await claim('b', 154)).toBe('b');
		expect(
			await journal.claim({ ...KEY, taskId: 'x' }, 'k', { owner: 'z', nowMs: 0, untilMs: 1, gone: null }),
		).toBe('z');
	});

	it('keeps the first outcome and gives it to one taker', async () => {
		const journal = make();
		await journal.add(ENTRY);
		expect(await journal.deliver(KEY)).toBe(false);
		await journal.end(KEY, OUTCOME, 5_000);
		await journal.end(KEY, { kind: 'cancelled', confirmed: true, message: '' }, 6_000);
		expect(await journal.deliver(KEY)).toBe(true);
		expect(await journal.deliver(KEY)).toBe(false);
		expect(await journal.find(KEY)).toMatchObject({ outcome: OUTCOME, endedAtMs: 5_000, delivered: true });
	});

	it('forgets what ended long ago, never what is open', async () => {
		const journal = make();
		await journal.add(ENTRY);
		await journal.add({ ...ENTRY, taskId: 'open' });
		await journal.answer(KEY, 'k', {});
		await journal.end(KEY, OUTCOME, 5_000);
		await journal.expire(5_000);
		expect(await journal.list('s')).toHaveLength(2);
		await journal.expire(5_001);
		expect((await journal.list('s')).map(({ taskId }) => taskId)).toEqual(['open']);
		await journal.remove({ ...KEY, taskId: 'open' });
		expect(await journal.list('s')).toEqual([]);
	});
});

describe('the file journal on disk', () => {
	it('is found again by the next process, and read by its owner only', async () => {
		const first = openFile('deep/journal.db');
		await first.add(ENTRY);
		await first.answer(KEY, 'k', { action: 'accept' });
		await first.close();
		await first.close();
		expect(await openFile('deep/journal.db').find(KEY)).toMatchObject({
			answers: { k: { response: { action: 'accept' } } },
		});
		expect(statSync(join(folder, 'deep/journal.db')).mode & 0o077).toBe(0);
		await expect(first.list('s')).rejects.toMatchObject({ code: 'CLOSED' });
	});

	it('can be used by two processes at once', async () => {
		const [one, two] = [openFile(), openFile()];
		await one.add(ENTRY);
		await one.end(KEY, OUTCOME, 1);
		expect(await Promise.all([one.answer(KEY, 'k', {}), two.answer(KEY, 'k', {})])).toEqual([true, false]);
		expect(await Promise.all([two.deliver(KEY), one.deliver(KEY)])).toEqual([true, false]);
	});

	it('refuses a file that is something else, and leaves it alone', async () => {
		writeFileSync(join(folder, 'text'), 'not a database, but long enough to be mistaken for one'.repeat(40));
		expect(() => openFile('text')).toThrow(expect.objectContaining({ code: 'JOURNAL_UNUSABLE' }));
		const other = new DatabaseSync(join(folder, 'other.db'));
		other.exec('CREATE TABLE a (b)');
		expect(() => openFile('other.db')).toThrow(expect.objectContaining({ code: 'JOURNAL_UNUSABLE' }));
		expect(other.prepare('SELECT count(*) AS n FROM sqlite_schema').get()).toEqual({ n: 1 });
		other.close();
	});

	it('takes a journal of the first version over', async () => {
		const first = openFile();
		await first.add(ENTRY);
		await first.close();
		const database = new DatabaseSync(join(folder, 'journal.db'));
		database.exec('DROP TABLE claims; PRAGMA user_version = 1');
		database.close();
		const journal = openFile();
		expect(await journal.find(KEY)).toMatchObject(KEY);
		expect(await journal.claim(KEY, 'k', { owner: 'a', nowMs: 0, untilMs: 1, gone: null })).toBe('a');
	});

	it('refuses a journal of a newer version', async () => {
		await openFile().close();
		const newer = new DatabaseSync(join(folder, 'journal.db'));
		newer.exec('PRAGMA user_version = 99');
		newer.close();
		expect(() => openFile()).toThrow(expect.objectContaining({ code: 'JOURNAL_NEWER' }));
	});
});

describe('a task client with a journal', () => {
	it('has the task on disk before it asks for it the first time (T72, C7)', async () => {
		const fake = new FakeServer();
		const journal = openFile();
		let atFirstPoll: unknown;
		fake.get = () => {
			const database = new DatabaseSync(join(folder, 'journal.db'));
			atFirstPoll = database.prepare('SELECT task_id, tool, arguments_digest, delivered FROM tasks').all();
			database.close();
			return done('ok');
		};
		const tasks = await fake.taskClient({ journal });
		const result = tasks.callTool({ name: 'slow', arguments: { b: 1, a: { d: 1, c: 2 } } });
		await fake.clock.advance(1_000);
		await result;
		expect(atFirstPoll).toEqual([
			{
				...{ task_id: 't1', tool: 'slow', delivered: 0 },
				arguments_digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
			},
		]);
		expect(await tasks.openTasks()).toEqual([]);
	});

	it('picks every open task up after a crash, within half a second (C7, T72)', async () => {
		const fake = new FakeServer();
		fake.call = ({ name }) => ({ resultType: 'task', ...task({ taskId: String(name) }) });
		fake.get = (_n, taskId) => task({ taskId });
		const before = await fake.taskClient({ journal: openFile() });
		for (const name of ['a', 'b', 'c']) await before.startTool({ name, arguments: { name } });
		await fake.clock.advance(2_000);
		before.close();

		fake.get = (_n, taskId) => done(taskId, { taskId });
		const after = await fake.taskClient({ journal: openFile() });
		expect(await after.openTasks()).toMatchObject(
			['a', 'b', 'c'].map((tool) => ({ tool, outcome: null, delivered: false })),
		);
		const executions = await after.resumeAll();
		await fake.clock.advance(500);
		const results = await Promise.all(executions.map((execution) => execution.result()));
		expect(results).toMatchObject(['a', 'b', 'c'].map((name) => ({ content: [{ text: name }] })));
	});

	it('delivers a result once, and leaves it readable until it is acknowledged (C7)', async () => {
		const fake = new FakeServer();
		fake.get = () => done('ok');
		const first = await fake.taskClient({ journal: openFile() });
		const execution = await first.startTool({ name: 'slow' });
		await fake.clock.advance(1_000);
		// Learned by the first process, but not delivered by it.
		first.close();

		const second = await fake.taskClient({ journal: openFile() });
		const polls = fake.of('tasks/get').length;
		const [resumed] = await second.resumeAll();
		expect(await resumed?.deliverOnce()).toMatchObject({ kind: 'completed' });
		expect(await resumed?.deliverOnce()).toBeUndefined();
		expect(fake.of('tasks/get')).toHaveLength(polls);
		second.close();

		const third = await fake.taskClient({ journal: openFile() });
		expect(await third.resumeAll()).toEqual([]);
		expect(await third.openTasks()).toMatchObject([{ delivered: true, outcome: { kind: 'completed' } }]);
		const read = await third.resume(execution.reference ?? '');
		expect(await read.result()).toMatchObject({ content: [{ text: 'ok' }] });
		await read.acknowledge();
		expect(await third.openTasks()).toEqual([]);
	});

	it('forgets a result that nobody acknowledged when its retention is over', async () => {
		const fake = new FakeServer();
		fake.get = () => done('ok');
		const tasks = await fake.taskClient({ retentionMs: 3_600_000 });
		await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(1_000);
		expect(await tasks.openTasks()).toHaveLength(1);
		await fake.clock.advance(4_000_000);
		expect(await tasks.openTasks()).toEqual([]);
	});

	it('gives the result although the journal cannot be written, and says so', async () => {
		const fake = new FakeServer();
		fake.get = () => done('ok');
		const journal = openFile();
		await journal.close();
		const problems: unknown[] = [];
		const tasks = await fake.taskClient({ journal, onProblem: (error) => problems.push(error) });
		const result = tasks.callTool({ name: 'slow' });
		await fake.clock.advance(1_000);
		expect(await result).toMatchObject({ content: [{ text: 'ok' }] });
		expect(problems).toContainEqual(expect.objectContaining({ code: 'CLOSED' }));
	});

	it('measures the lifetime of a task from when an earlier process first saw it (T73)', async () => {
		const fake = new FakeServer();
		fake.call = () => ({ resultType: 'task', ...task({ ttlMs: 60_000 }) });
		const journal = openFile();
		const before = await fake.taskClient({ journal });
		await before.startTool({ name: 'slow' });
		before.close();
		await fake.clock.advance(50_000);
		const after = await fake.taskClient({ journal });
		await after.client.close();
		const [execution] = await after.resumeAll().catch(() => []);
		await fake.clock.advance(11_000);
		expect(execution?.outcome).toMatchObject({ kind: 'lost', code: 'TASK_EXPIRED' });
	});
});
