import { describe, expect, it } from 'vitest';
import { settle } from '../../src/testing/index.ts';
import { DROP, done, FakeServer, Refusal, SILENCE, task } from './fake-server.ts';

const MINUTE_MS = 60_000;

describe('polling', () => {
	it('asks within half a second, then at the interval of the server, each time after the last answer (T70)', async () => {
		const fake = new FakeServer();
		fake.get = (n) => (n < 5 ? task({ pollIntervalMs: 5_000 }) : done('done'));
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'slow' });
		await fake.clock.advance(30_000);
		expect(await result).toMatchObject({ content: [{ text: 'done' }] });
		expect(fake.pollTimes()).toEqual([150, 5_150, 10_150, 15_150, 20_150]);
		expect(fake.violations).toEqual([]);
	});

	it('takes 2 s when no interval is given, and asks an old task less often (T70)', async () => {
		const fake = new FakeServer();
		fake.get = () => task({ pollIntervalMs: undefined });
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(10_000);
		expect(fake.pollTimes()).toEqual([150, 2_150, 4_150, 6_150, 8_150]);
		await fake.clock.advance(20 * MINUTE_MS);
		const before = fake.of('tasks/get').length;
		await fake.clock.advance(10 * MINUTE_MS);
		expect(fake.of('tasks/get').length - before).toBe(60);
		execution.detach();
	});

	it('follows an interval that changes, per task, and never asks more often than 4 times a second (T70)', async () => {
		const fake = new FakeServer();
		fake.call = ({ name }) => ({ resultType: 'task', ...task({ taskId: String(name) }) });
		fake.get = (n, taskId) =>
			task({ taskId, pollIntervalMs: taskId === 'fast' ? 0 : n === 1 ? 2_000 : 30_000 });
		const tasks = await fake.taskClient();
		await tasks.startTool({ name: 'fast' });
		await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(MINUTE_MS);
		const times = (id: string) => fake.of('tasks/get').filter(({ params }) => params['taskId'] === id);
		expect(times('slow')).toHaveLength(3);
		expect(times('fast').length).toBeLessThanOrEqual(240);
		tasks.close();
	});

	it('adds up to a tenth at random', async () => {
		const fake = new FakeServer();
		fake.get = () => task({ pollIntervalMs: 10_000 });
		const tasks = await fake.taskClient({ random: () => 0.999 });
		await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(12_000);
		expect(fake.pollTimes()).toEqual([350, 11_349]);
		tasks.close();
	});

	it('asks once for many that wait for one task', async () => {
		const fake = new FakeServer();
		fake.get = (n) => (n < 4 ? task() : done('done'));
		const tasks = await fake.taskClient();
		const first = await tasks.startTool({ name: 'slow' });
		const others = await Promise.all(Array.from({ length: 20 }, () => tasks.resume(first.reference ?? '')));
		const results = Promise.all([first, ...others].map((execution) => execution.result()));
		await fake.clock.advance(10_000);
		expect(await results).toHaveLength(21);
		expect(fake.of('tasks/get')).toHaveLength(4);
		expect(tasks.watching).toBe(0);
		expect(fake.clock.pending).toBe(0);
	});
});

describe('an outage', () => {
	it('never fails a task, and is backed off from (T71)', async () => {
		const fake = new FakeServer();
		let up = true;
		fake.get = () => (up ? task() : DROP);
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(5_000);
		up = false;
		const before = fake.of('tasks/get').length;
		await fake.clock.advance(5 * MINUTE_MS);
		const during = fake.of('tasks/get').length - before;
		expect(during).toBeGreaterThan(5);
		expect(during).toBeLessThan(70);
		expect(execution.state).toMatchObject({ status: 'working', reachable: false });
		fake.get = () => done('survived');
		await fake.clock.advance(MINUTE_MS);
		expect(await execution.result()).toMatchObject({ content: [{ text: 'survived' }] });
		expect(execution.state?.reachable).toBe(true);
	});

	it('costs one request per back-off, however many tasks wait (T71)', async () => {
		const fake = new FakeServer();
		let up = true;
		fake.call = ({ name }) => ({ resultType: 'task', ...task({ taskId: String(name) }) });
		fake.get = (_n, taskId) => (up ? task({ taskId }) : DROP);
		const tasks = await fake.taskClient({ maxConcurrentRequests: 16 });
		await Promise.all(Array.from({ length: 200 }, (_, index) => tasks.startTool({ name: `t${index}` })));
		await fake.clock.advance(3_000);
		up = false;
		const before = fake.of('tasks/get').length;
		await fake.clock.advance(10 * MINUTE_MS);
		// 16 that were let through together, then one at a time: doubling to 10 s, half of it at random.
		expect(fake.of('tasks/get').length - before).toBeLessThan(16 + 130);
		fake.get = (_n, taskId) => done('done', { taskId });
		await fake.clock.advance(MINUTE_MS);
		expect(tasks.watching).toBe(0);
	});

	it('ends when a request is never answered, without a limit on the task (T71)', async () => {
		const fake = new FakeServer();
		fake.get = (n) => (n === 1 ? SILENCE : n === 2 ? task() : done('done'));
		const tasks = await fake.taskClient({ rpcTimeoutMs: 5_000 });
		const result = tasks.callTool({ name: 'slow' }, { timeout: 1_000 });
		await fake.clock.advance(30_000);
		expect(await result).toMatchObject({ content: [{ text: 'done' }] });
		expect(fake.pollTimes()[1]).toBe(150 + 5_000 + 250);
	});

	it('is told apart from the trouble of one task, whose polls alone are slowed down (T71)', async () => {
		const fake = new FakeServer();
		fake.call = ({ name }) => ({ resultType: 'task', ...task({ taskId: String(name) }) });
		fake.get = (_n, taskId) => (taskId === 'bad' ? new Refusal(-32603) : task({ taskId }));
		const tasks = await fake.taskClient();
		const bad = await tasks.startTool({ name: 'bad' });
		await tasks.startTool({ name: 'good' });
		await fake.clock.advance(2 * MINUTE_MS);
		const polls = (id: string) => fake.of('tasks/get').filter(({ params }) => params['taskId'] === id).length;
		expect(polls('good')).toBeGreaterThan(110);
		expect(polls('bad')).toBeLessThan(35);
		expect(bad.outcome).toBeUndefined();
		tasks.close();
	});

	it('ends the task only when it outlasts the lifetime on the own clock (T73)', async () => {
		const fake = new FakeServer();
		fake.call = () => ({ resultType: 'task', ...task({ ttlMs: 300_000 }) });
		fake.get = () => DROP;
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		const result = execution.result().catch((error: unknown) => error);
		await fake.clock.advance(299_000);
		expect(execution.outcome).toBeUndefined();
		await fake.clock.advance(2_000);
		expect(await result).toMatchObject({ code: 'TASK_EXPIRED' });
	});

	it('goes on for ever with a task of unlimited lifetime (T73)', async () => {
		const fake = new FakeServer();
		fake.call = () => ({ resultType: 'task', ...task({ ttlMs: null }) });
		fake.get = () => DROP;
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(24 * 60 * MINUTE_MS);
		expect(execution.outcome).toBeUndefined();
		fake.get = () => done('after a day', { ttlMs: null });
		await fake.clock.advance(MINUTE_MS);
		expect(await execution.result()).toMatchObject({ content: [{ text: 'after a day' }] });
	});

	it('of the connection is over when the host connects the same client again', async () => {
		const fake = new FakeServer();
		fake.get = () => task();
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(2_000);
		await tasks.client.close();
		await fake.clock.advance(MINUTE_MS);
		expect(execution.state?.reachable).toBe(false);
		fake.get = () => done('again');
		await fake.reconnect(tasks.client);
		// At once, not after the back-off.
		await fake.clock.advance(0);
		expect(await execution.result()).toMatchObject({ content: [{ text: 'again' }] });
	});
});

describe('a task that the server forgot', () => {
	it('is asked for once more, then lost with honest words (T71, T23)', async () => {
		const fake = new FakeServer();
		fake.get = (n) => (n < 3 ? task() : new Refusal(-32602, 'Task not found'));
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'slow' }).catch((error: unknown) => error);
		await fake.clock.advance(10_000);
		expect(await result).toMatchObject({
			code: 'TASK_NOT_FOUND',
			message: expect.stringContaining('outcome is unknown') as string,
		});
		expect(fake.of('tasks/get')).toHaveLength(4);
	});

	it('is not lost when only one replica did not know it yet (T12)', async () => {
		const fake = new FakeServer();
		fake.get = (n) => (n === 1 ? new Refusal(-32602) : done('found'));
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'slow' });
		await fake.clock.advance(10_000);
		expect(await result).toMatchObject({ content: [{ text: 'found' }] });
	});
});

describe('updates', () => {
	it('yields each state from the present one on, and ends with the task', async () => {
		const fake = new FakeServer();
		fake.get = (n) =>
			n < 3
				? task({ statusMessage: `step ${n}`, lastUpdatedAt: `2026-07-28T00:00:0${n}Z` })
				: done('done', { lastUpdatedAt: '2026-07-28T00:00:09Z' });
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		const said: (string | undefined)[] = [];
		const reading = (async () => {
			for await (const state of execution.updates()) said.push(state.statusMessage ?? state.status);
		})();
		await fake.clock.advance(10_000);
		await reading;
		expect(said).toEqual(['working', 'step 1', 'step 2', 'completed']);
	});

	it('gives a slow reader the latest state instead of a backlog (F02)', async () => {
		const fake = new FakeServer();
		fake.get = (n) =>
			n < 100
				? task({
						statusMessage: `step ${n}`,
						lastUpdatedAt: new Date(Date.UTC(2026, 6, 28, 0, 0, n)).toISOString(),
					})
				: done('done', { lastUpdatedAt: '2026-07-29T00:00:00Z' });
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		const states = execution.updates();
		expect((await states.next()).value).toMatchObject({ status: 'working' });
		await fake.clock.advance(90_000);
		expect((await states.next()).value).toMatchObject({ statusMessage: 'step 90' });
		await fake.clock.advance(90_000);
		expect((await states.next()).value).toMatchObject({ status: 'completed' });
		expect(await states.next()).toEqual({ value: undefined, done: true });
		await settle();
	});
});
