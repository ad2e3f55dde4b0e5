/**
 * The best host that was measured on tasks, Claude Code 2.1 as an interactive program, as a measure: what it does,
 * and what it does not do.
 */
import { describe, expect, it, vi } from 'vitest';
import { AnswerLater } from '../../src/client/answer-later.ts';
import { BackgroundTasks } from '../../src/client/background-tasks.ts';
import { memoryJournal } from '../../src/client/journal/memory-journal.ts';
import { done, FakeServer, form, Refusal, task } from './fake-server.ts';

const MINUTE_MS = 60_000;

describe('as good as Claude Code interactive', () => {
	it.each([1_000, 5_000, 30_000])(
		'asks for a task within half a second, then at the interval of the server: %i ms (T70)',
		async (pollIntervalMs) => {
			const fake = new FakeServer();
			fake.call = () => ({ resultType: 'task', ...task({ pollIntervalMs, ttlMs: null }) });
			fake.get = () => task({ pollIntervalMs, ttlMs: null });
			const tasks = await fake.taskClient();
			await tasks.startTool({ name: 'slow' });
			await fake.clock.advance(3 * pollIntervalMs + 500);
			const [first = Infinity, ...others] = fake.pollTimes();
			expect(first).toBeLessThanOrEqual(500);
			expect(others.map((at) => at - first)).toEqual([1, 2, 3].map((n) => n * pollIntervalMs));
			tasks.close();
		},
	);

	it('asks every 2 s where the server gives no interval, and at most 4 times a second where it gives a tiny one', async () => {
		for (const [pollIntervalMs, expected] of [
			[undefined, 2_000],
			[50, 250],
		] as const) {
			const fake = new FakeServer();
			fake.get = () => task({ pollIntervalMs });
			const tasks = await fake.taskClient();
			await tasks.startTool({ name: 'slow' });
			await fake.clock.advance(4_500);
			const [first = 0, second = 0, third = 0] = fake.pollTimes();
			expect([second - first, third - second]).toEqual([expected, expected]);
			tasks.close();
		}
	});

	it('sends the answer of a form with one tasks/update, and asks for the task 0.3 s later', async () => {
		const fake = new FakeServer();
		fake.get = (n) =>
			n === 1 ? task({ status: 'input_required', inputRequests: { '1.ask': form() } }) : done('ok');
		const tasks = await fake.taskClient({
			onInput: async () => ({ action: 'accept', content: { ok: true } }),
		});
		const result = tasks.callTool({ name: 'slow' });
		await fake.clock.advance(2_000);
		await result;
		const [update] = fake.of('tasks/update');
		expect(fake.of('tasks/update')).toHaveLength(1);
		expect(update?.params).toMatchObject({
			taskId: 't1',
			inputResponses: { '1.ask': { action: 'accept', content: { ok: true } } },
		});
		expect((fake.of('tasks/get')[1]?.atMs ?? 0) - (update?.atMs ?? 0)).toBe(300);
	});

	it('all but stops asking while a form is open: only so often as to learn that the question is open no more', async () => {
		const fake = new FakeServer();
		fake.get = () => task({ status: 'input_required', inputRequests: { ask: form() }, ttlMs: null });
		const tasks = await fake.taskClient({ onInput: () => new Promise(() => {}) });
		await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(10 * MINUTE_MS);
		expect(fake.of('tasks/get').length).toBeLessThanOrEqual(61);
		tasks.close();
	});

	it('lets a person answer later: nothing is sent, and the task stays input_required', async () => {
		const fake = new FakeServer();
		fake.get = () => task({ status: 'input_required', inputRequests: { ask: form() }, ttlMs: null });
		const onInput = vi.fn(async () => {
			throw new AnswerLater();
		});
		const tasks = await fake.taskClient({ onInput });
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(MINUTE_MS);
		expect(onInput).toHaveBeenCalledTimes(1);
		expect(fake.of('tasks/update')).toEqual([]);
		expect(execution.state?.status).toBe('input_required');
		tasks.close();
	});

	it('tells the model at once, and the result as an event of its own; a turn that polls is never needed', async () => {
		const fake = new FakeServer();
		fake.get = (n) => (n < 10 ? task() : done('released'));
		const ends: unknown[] = [];
		const manager = new BackgroundTasks({ clock: fake.clock, onEnd: (end) => void ends.push(end) });
		const tasks = await fake.taskClient();
		const starting = manager.start(tasks, { name: 'release' });
		await fake.clock.advance(1_500);
		expect(await starting).toMatchObject({
			kind: 'background',
			text: expect.stringMatching(/goes on in the background.*do not call it again/s) as string,
		});
		await fake.clock.advance(MINUTE_MS);
		expect(ends).toMatchObject([{ status: 'completed', result: { content: [{ text: 'released' }] } }]);
	});

	it('asks for the same task again after a restart, and delivers its result (T72)', async () => {
		const fake = new FakeServer();
		const journal = memoryJournal();
		fake.get = () => task();
		const before = await fake.taskClient({ journal });
		await before.startTool({ name: 'slow' });
		await fake.clock.advance(5_000);
		before.close();
		fake.get = () => done('later');
		const after = await fake.taskClient({ journal });
		const startedAtMs = fake.clock.nowMs();
		const [execution] = await after.resumeAll();
		await fake.clock.advance(1_000);
		expect(await execution?.deliverOnce()).toMatchObject({ result: { content: [{ text: 'later' }] } });
		expect((fake.of('tasks/get').at(-1)?.atMs ?? Infinity) - startedAtMs).toBeLessThanOrEqual(500);
		expect(fake.of('tools/call')).toHaveLength(1);
	});

	it('says of a lost task that its outcome is unknown, and that it should not blindly be called again', async () => {
		const fake = new FakeServer();
		fake.get = () => new Refusal(-32602, 'Task not found');
		const ends: { text: string }[] = [];
		const manager = new BackgroundTasks({ clock: fake.clock, onEnd: (end) => void ends.push(end) });
		const tasks = await fake.taskClient();
		await Promise.all([manager.start(tasks, { name: 'release' }), fake.clock.advance(10_000)]);
		expect(ends).toMatchObject([
			{
				status: 'lost',
				text: expect.stringMatching(/outcome is unknown.*check before calling it again/) as string,
			},
		]);
	});
});

describe('better than Claude Code interactive', () => {
	it('listens where the server offers it, and asks once a minute at most', async () => {
		const fake = new FakeServer();
		fake.listen = (taskIds) => taskIds;
		fake.get = () => task({ ttlMs: null });
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(10_000);
		const before = fake.of('tasks/get').length;
		await fake.clock.advance(30 * MINUTE_MS);
		expect(fake.of('tasks/get').length - before).toBeLessThanOrEqual(30);
		fake.notify(done('pushed'));
		await fake.clock.advance(0);
		expect(await execution.result()).toMatchObject({ content: [{ text: 'pushed' }] });
	});

	it('stops at an id that the server has forgotten, after asking once more: 2 requests instead of 291', async () => {
		const fake = new FakeServer();
		fake.call = () => ({ resultType: 'task', ...task({ ttlMs: 300_000 }) });
		fake.get = () => new Refusal(-32602, 'Task not found');
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(5 * MINUTE_MS);
		expect(execution.outcome).toMatchObject({ kind: 'lost', code: 'TASK_NOT_FOUND' });
		expect(fake.of('tasks/get')).toHaveLength(2);
	});

	it('comes back to its tasks without a person, as in a script or a job', async () => {
		const fake = new FakeServer();
		const journal = memoryJournal();
		fake.get = () => task();
		const before = await fake.taskClient({ journal });
		await before.startTool({ name: 'slow' });
		before.close();
		fake.get = (n) =>
			n < 3 ? task({ status: 'input_required', inputRequests: { ask: form() } }) : done('without a person');
		// A host without any handler: the question is declined honestly instead of hanging.
		const headless = await fake.taskClient({ journal });
		const [execution] = await headless.resumeAll();
		await fake.clock.advance(MINUTE_MS);
		expect(await execution?.deliverOnce()).toMatchObject({
			result: { content: [{ text: 'without a person' }] },
		});
		expect(fake.of('tasks/update')[0]?.params).toMatchObject({
			inputResponses: { ask: { action: 'decline' } },
		});
	});

	it('cancels once, waits for what became of the task, and says it', async () => {
		const fake = new FakeServer();
		let isCancelled = false;
		fake.cancel = () => {
			isCancelled = true;
			return {};
		};
		fake.get = () => task(isCancelled ? { status: 'cancelled' } : {});
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await Promise.all([execution.cancel(), execution.cancel()]);
		await fake.clock.advance(5_000);
		expect(fake.of('tasks/cancel')).toHaveLength(1);
		expect(execution.outcome).toMatchObject({ kind: 'cancelled', confirmed: true });
	});
});
