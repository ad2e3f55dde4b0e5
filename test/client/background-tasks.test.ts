import { describe, expect, it } from 'vitest';
import { type BackgroundEnd, BackgroundTasks } from '../../src/client/background-tasks.ts';
import type { BackgroundTasksOptions } from '../../src/client/background-tasks.ts';
import { memoryJournal } from '../../src/client/journal/memory-journal.ts';
import { settle } from '../../src/testing/index.ts';
import { DROP, done, FakeServer, Refusal, SILENCE, task } from './fake-server.ts';

/** A fake whose tasks are named after the tool, and a manager with the events that it told. */
function background(options: Partial<BackgroundTasksOptions> = {}) {
	const fake = new FakeServer();
	fake.call = ({ name }) => ({ resultType: 'task', ...task({ taskId: String(name) }) });
	fake.get = (_n, taskId) => task({ taskId, statusMessage: 'Compiling' });
	const events: BackgroundEnd[] = [];
	const manager = new BackgroundTasks({
		onEnd: (end) => void events.push(end),
		clock: fake.clock,
		...options,
	});
	return { fake, events, manager };
}

/** The handle of a call that went to the background. */
async function handleOf(fake: FakeServer, started: ReturnType<BackgroundTasks['start']>): Promise<string> {
	await fake.clock.advance(1_100);
	const start = await started;
	if (start.kind !== 'background') throw new Error('It was answered at once');
	return start.handle;
}

describe('a background manager', () => {
	it('gives a handle and words for the model at once, then one event with the result (C2, C8)', async () => {
		const { fake, events, manager } = background();
		const tasks = await fake.taskClient();
		const started = manager.start(tasks, { name: 'build' });
		await fake.clock.advance(1_100);
		const start = await started;
		expect(start).toMatchObject({ kind: 'background', handle: expect.stringMatching(/^task_[0-9a-f]{12}$/) });
		expect(start).toHaveProperty(
			'text',
			expect.stringMatching(/build.*task_.*Compiling.*do not call it again/),
		);
		await fake.clock.advance(60_000);
		expect(events).toEqual([]);
		fake.get = (_n, taskId) => done('built', { taskId });
		await fake.clock.advance(60_000);
		expect(events).toMatchObject([
			{ tool: 'build', status: 'completed', awaited: false, result: { content: [{ text: 'built' }] } },
		]);
		expect(events[0]?.text).toMatch(/task_\w+ of the tool "build" has ended/);
		expect(manager.open).toEqual([]);
		expect(await tasks.openTasks()).toEqual([]);
		expect(fake.clock.pending).toBe(0);
	});

	it('gives the result itself where a call ends within the window', async () => {
		const { fake, events, manager } = background();
		const tasks = await fake.taskClient();
		fake.get = (_n, taskId) => done('fast', { taskId });
		const asTask = manager.start(tasks, { name: 'quick' });
		await fake.clock.advance(1_000);
		expect(await asTask).toMatchObject({ kind: 'result', result: { content: [{ text: 'fast' }] } });
		fake.call = () => ({ resultType: 'complete', content: [{ type: 'text', text: 'at once' }] });
		expect(await manager.start(tasks, { name: 'quick' })).toMatchObject({
			kind: 'result',
			result: { content: [{ text: 'at once' }] },
		});
		fake.call = () => new Refusal(-32602, 'bad arguments');
		await expect(manager.start(tasks, { name: 'quick' })).rejects.toMatchObject({ code: -32602 });
		expect(events).toEqual([]);
		expect(await tasks.openTasks()).toEqual([]);
		expect(fake.clock.pending).toBe(0);
	});

	it('tells failures, cancels and losses apart', async () => {
		const { fake, events, manager } = background();
		const tasks = await fake.taskClient();
		for (const name of ['failed', 'cancelled', 'lost', 'tool_error'])
			await handleOf(fake, manager.start(tasks, { name }));
		fake.get = (_n, taskId) => {
			if (taskId === 'failed')
				return task({ taskId, status: 'failed', error: { code: -32000, message: 'disk' } });
			if (taskId === 'lost') return new Refusal(-32602);
			if (taskId === 'cancelled') return task({ taskId, status: 'cancelled' });
			return task({ taskId, status: 'completed', result: { content: [], isError: true } });
		};
		await fake.clock.advance(10_000);
		const byTool = Object.fromEntries(events.map((event) => [event.tool, event]));
		expect(byTool).toMatchObject({
			failed: { status: 'failed', text: expect.stringContaining('disk') as string },
			cancelled: { status: 'cancelled' },
			lost: { status: 'lost', text: expect.stringContaining('unknown') as string },
			tool_error: { status: 'completed', result: { isError: true } },
		});
	});

	it('refuses more calls than its limit allows, before anything is sent (C8)', async () => {
		const { fake, manager } = background({ maxOpen: 2 });
		const tasks = await fake.taskClient();
		await handleOf(fake, manager.start(tasks, { name: 'a' }));
		const second = manager.start(tasks, { name: 'b' });
		await expect(manager.start(tasks, { name: 'c' })).rejects.toMatchObject({ code: 'TASK_LIMIT' });
		await handleOf(fake, second);
		await expect(manager.start(tasks, { name: 'c' })).rejects.toMatchObject({ code: 'TASK_LIMIT' });
		expect(fake.of('tools/call')).toHaveLength(2);
		fake.get = (_n, taskId) => done('done', { taskId });
		await fake.clock.advance(5_000);
		const again = manager.start(tasks, { name: 'c' });
		await fake.clock.advance(5_000);
		expect(await again).toMatchObject({ kind: 'result' });
	});

	it('lets a model wait for a call, at most so long, and read its end again (F01)', async () => {
		const { fake, events, manager } = background();
		const tasks = await fake.taskClient();
		const handle = await handleOf(fake, manager.start(tasks, { name: 'build' }));
		const first = manager.await(handle, 5_000);
		await fake.clock.advance(5_000);
		expect(await first).toMatchObject({
			kind: 'open',
			text: expect.stringMatching(/still working: Compiling/) as string,
		});
		const second = manager.await(handle, 60_000);
		fake.get = (_n, taskId) => done('built', { taskId });
		await fake.clock.advance(5_000);
		expect(await second).toMatchObject({ kind: 'ended', end: { status: 'completed', awaited: true } });
		expect(events).toHaveLength(1);
		expect(await manager.await(handle, 0)).toMatchObject({ kind: 'ended', end: { status: 'completed' } });
		await expect(manager.await('task_unknown', 0)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
		expect(fake.clock.pending).toBe(0);
	});

	it('cancels one call and detaches another, at a word (C5)', async () => {
		const { fake, events, manager } = background();
		const tasks = await fake.taskClient();
		const stop = await handleOf(fake, manager.start(tasks, { name: 'stop' }));
		const leave = await handleOf(fake, manager.start(tasks, { name: 'leave' }));
		fake.get = (_n, taskId) => task({ taskId, status: taskId === 'stop' ? 'cancelled' : 'working' });
		await manager.cancel(stop);
		const reference = manager.detach(leave);
		await fake.clock.advance(60_000);
		expect(events).toMatchObject([{ tool: 'stop', status: 'cancelled' }]);
		expect(fake.of('tasks/cancel').map(({ params }) => params['taskId'])).toEqual(['stop']);
		expect((await tasks.openTasks()).map((open) => open.reference)).toEqual([reference]);
		await expect(manager.await(leave, 0)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
	});

	it('leaves open calls by policy: cancel by default, detach on request (C5)', async () => {
		for (const policy of ['cancel', 'detach'] as const) {
			const { fake, manager, events } = background();
			const tasks = await fake.taskClient();
			await handleOf(fake, manager.start(tasks, { name: 'a' }));
			await handleOf(fake, manager.start(tasks, { name: 'b' }));
			fake.get = (_n, taskId) => task({ taskId, status: 'cancelled' });
			const closed = policy === 'cancel' ? manager.close() : manager.close('detach');
			await fake.clock.advance(2_000);
			await closed;
			expect(fake.of('tasks/cancel')).toHaveLength(policy === 'cancel' ? 2 : 0);
			expect(events).toHaveLength(policy === 'cancel' ? 2 : 0);
			expect(await tasks.openTasks()).toHaveLength(policy === 'cancel' ? 0 : 2);
			expect(tasks.watching).toBe(0);
			await expect(manager.start(tasks, { name: 'c' })).rejects.toMatchObject({ code: 'CLOSED' });
			expect(fake.clock.pending).toBe(0);
		}
	});

	it('is closed after 5 s though the server cannot be told', async () => {
		const { fake, manager } = background();
		const tasks = await fake.taskClient();
		await handleOf(fake, manager.start(tasks, { name: 'a' }));
		fake.cancel = () => DROP;
		fake.get = () => DROP;
		const closed = manager.close();
		await fake.clock.advance(5_000);
		await closed;
		expect(tasks.watching).toBe(0);
		expect(await tasks.openTasks()).toHaveLength(1);
	});

	it('picks everything up after a restart under the same handles, and tells each end once (C7)', async () => {
		const { fake, manager, events } = background();
		const journal = memoryJournal();
		const before = await fake.taskClient({ journal });
		const handles = [];
		for (const name of ['a', 'b']) handles.push(await handleOf(fake, manager.start(before, { name })));
		before.close();

		const after = await fake.taskClient({ journal });
		const later: BackgroundEnd[] = [];
		const next = new BackgroundTasks({ onEnd: (end) => void later.push(end), clock: fake.clock });
		expect(await next.resumeAll(after)).toEqual(handles);
		expect(await next.resumeAll(after)).toEqual([]);
		fake.get = (_n, taskId) => done('done', { taskId });
		await fake.clock.advance(10_000);
		expect(later.map(({ handle }) => handle).sort()).toEqual([...handles].sort());
		expect(events).toEqual([]);
		expect(await next.resumeAll(after)).toEqual([]);
	});

	it('tells an end once, also where two processes of a host share one journal (C7)', async () => {
		const { fake, manager, events } = background();
		const journal = memoryJournal();
		await handleOf(fake, manager.start(await fake.taskClient({ journal }), { name: 'a' }));
		const twin = new BackgroundTasks({ onEnd: (end) => void events.push(end), clock: fake.clock });
		const client = await fake.taskClient({ journal });
		// One connection each, and the fake answers on the last one.
		expect(await twin.resumeAll(client)).toHaveLength(1);
		await journal.end({ server: 'fake', taskId: 'a' }, { kind: 'completed', result: { content: [] } }, 0);
		expect(await journal.deliver({ server: 'fake', taskId: 'a' })).toBe(true);
		fake.get = (_n, taskId) => done('done', { taskId });
		await fake.clock.advance(10_000);
		expect(twin.open).toEqual([]);
		expect(events).toEqual([]);
	});

	it('keeps an end in the journal that its host could not take', async () => {
		const problems: unknown[] = [];
		const { fake, manager } = background({
			onEnd: async () => {
				throw new Error('The host is busy');
			},
			onProblem: (error) => problems.push(error),
		});
		const tasks = await fake.taskClient();
		await handleOf(fake, manager.start(tasks, { name: 'a' }));
		fake.get = (_n, taskId) => done('done', { taskId });
		await fake.clock.advance(5_000);
		expect(problems).toMatchObject([{ message: 'The host is busy' }]);
		expect(await tasks.openTasks()).toMatchObject([{ delivered: true, outcome: { kind: 'completed' } }]);
	});

	it('takes a slow call to a server without Tasks to the background too', async () => {
		const { fake, manager, events } = background();
		let answer: (value: unknown) => void = () => {};
		fake.call = () =>
			new Promise((resolve) => {
				answer = resolve;
			});
		const tasks = await fake.taskClient();
		const handle = await handleOf(fake, manager.start(tasks, { name: 'plain' }));
		expect(manager.open).toEqual([{ handle, tool: 'plain', state: undefined }]);
		answer({ resultType: 'complete', content: [{ type: 'text', text: 'at last' }] });
		await settle();
		expect(events).toMatchObject([
			{ handle, status: 'completed', result: { content: [{ text: 'at last' }] } },
		]);

		fake.call = () => SILENCE;
		const stuck = await handleOf(fake, manager.start(tasks, { name: 'stuck' }));
		await manager.cancel(stuck);
		await settle();
		expect(events).toMatchObject([{}, { handle: stuck, status: 'cancelled' }]);
	});
});
