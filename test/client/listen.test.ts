import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { TaskClient } from '../../src/client/task-client.ts';
import { done, FakeServer, Refusal, task } from './fake-server.ts';
import { connectHttp, connectInMemory, serveHttp, text } from './server.ts';

const MINUTE_MS = 60_000;

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

/** A fake that offers listening for every id. */
function listening(): FakeServer {
	const fake = new FakeServer();
	fake.call = ({ name }) => ({ resultType: 'task', ...task({ taskId: String(name) }) });
	fake.get = (_n, taskId) => task({ taskId });
	fake.listen = (taskIds) => taskIds;
	return fake;
}

describe('listening', () => {
	it('replaces polling by a slow backstop, and a pushed end is the end (T50)', async () => {
		const fake = listening();
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'a' });
		await fake.clock.advance(40 * MINUTE_MS);
		// Two before the stream stood, then one a minute.
		expect(fake.of('tasks/get').length).toBeLessThanOrEqual(2 + 40);
		expect(fake.of('subscriptions/listen')).toHaveLength(1);
		fake.notify(done('pushed', { taskId: 'a' }));
		await fake.clock.advance(0);
		expect(await result).toMatchObject({ content: [{ text: 'pushed' }] });
		expect(fake.clock.pending).toBe(0);
		expect(fake.violations).toEqual([]);
	});

	it('is not begun for a task that ends within a second', async () => {
		const fake = listening();
		fake.get = () => done('fast', { taskId: 'a' });
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'a' });
		await fake.clock.advance(5_000);
		await result;
		expect(fake.of('subscriptions/listen')).toHaveLength(0);
	});

	it('uses one stream for all tasks of a connection, replaced when further tasks come', async () => {
		const fake = listening();
		const tasks = await fake.taskClient();
		for (let index = 0; index < 50; index++) await tasks.startTool({ name: `t${index}` });
		await fake.clock.advance(3_000);
		expect(fake.of('subscriptions/listen')).toHaveLength(1);
		await tasks.startTool({ name: 'later' });
		await fake.clock.advance(6_000);
		expect(fake.of('subscriptions/listen')).toHaveLength(2);
		expect(fake.of('notifications/cancelled').map(({ params }) => params['requestId'])).toEqual([
			fake.listenIds[0],
		]);
		const asked = fake.of('subscriptions/listen')[1]?.params['notifications'] as { taskIds: string[] };
		expect(asked.taskIds).toHaveLength(51);
		tasks.close();
	});

	it('is given up where the server does not offer it, and the task is polled', async () => {
		for (const refusal of [new Refusal(-32601), []]) {
			const fake = listening();
			fake.listen = () => refusal;
			const tasks = await fake.taskClient();
			await tasks.startTool({ name: 'a' });
			await fake.clock.advance(30_000);
			await tasks.startTool({ name: 'b' });
			await fake.clock.advance(30_000);
			expect(fake.of('subscriptions/listen')).toHaveLength(1);
			expect(fake.of('tasks/get').length).toBeGreaterThan(80);
			tasks.close();
		}
	});

	it('polls what the server did not honour, and listens for the rest (T54)', async () => {
		const fake = listening();
		fake.listen = (taskIds) => taskIds.filter((taskId) => taskId !== 'foreign');
		const tasks = await fake.taskClient();
		await tasks.startTool({ name: 'own' });
		await tasks.startTool({ name: 'foreign' });
		await fake.clock.advance(MINUTE_MS - 1_000);
		const polls = (id: string) => fake.of('tasks/get').filter(({ params }) => params['taskId'] === id).length;
		expect(polls('own')).toBeLessThanOrEqual(3);
		expect(polls('foreign')).toBeGreaterThan(50);
		tasks.close();
	});

	it('is begun anew after a drop and after the end of the server, with polling in between (T55)', async () => {
		const fake = listening();
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'a' });
		await fake.clock.advance(20_000);
		for (const how of ['remote', 'graceful'] as const) {
			const polls = fake.of('tasks/get').length;
			const streams = fake.of('subscriptions/listen').length;
			fake.endListen(how);
			await fake.clock.advance(15_000);
			expect(fake.of('subscriptions/listen')).toHaveLength(streams + 1);
			expect(fake.of('tasks/get').length).toBeLessThanOrEqual(polls + 2);
		}
		fake.notify(done('after two drops', { taskId: 'a' }));
		await fake.clock.advance(0);
		expect(await result).toMatchObject({ content: [{ text: 'after two drops' }] });
	});

	it('backs off from a server whose streams fall at once', async () => {
		const fake = listening();
		fake.listen = (taskIds, id) => {
			setImmediate(() => fake.endListen('remote', id));
			return taskIds;
		};
		const tasks = await fake.taskClient();
		await tasks.startTool({ name: 'a' });
		await fake.clock.advance(10 * MINUTE_MS);
		expect(fake.of('subscriptions/listen').length).toBeLessThan(50);
		tasks.close();
	});

	it('learns from the backstop what a dead stream did not tell (F08)', async () => {
		const fake = listening();
		const tasks = await fake.taskClient({ listenBackstopMs: 30_000 });
		const result = tasks.callTool({ name: 'a' });
		await fake.clock.advance(10_000);
		fake.get = () => done('found by polling', { taskId: 'a' });
		await fake.clock.advance(31_000);
		expect(await result).toMatchObject({ content: [{ text: 'found by polling' }] });
	});

	it('opens a new stream when polls find what the old one missed (F08)', async () => {
		const fake = listening();
		const tasks = await fake.taskClient({ listenBackstopMs: 30_000 });
		for (const name of ['a', 'b', 'c']) await tasks.startTool({ name });
		await fake.clock.advance(10_000);
		expect(fake.of('subscriptions/listen')).toHaveLength(1);
		fake.get = (_n, taskId) => (taskId === 'c' ? task({ taskId }) : done('unheard', { taskId }));
		await fake.clock.advance(40_000);
		expect(fake.of('subscriptions/listen')).toHaveLength(2);
		fake.notify(done('heard', { taskId: 'c' }));
		await fake.clock.advance(0);
		expect(tasks.watching).toBe(0);
	});

	it('names at most 1,000 tasks, polls the rest, and does not ask again and again', async () => {
		const fake = listening();
		fake.get = (_n, taskId) => task({ taskId, pollIntervalMs: 20_000 });
		const tasks = await fake.taskClient();
		for (let index = 0; index < 1_200; index++) await tasks.startTool({ name: `t${index}` });
		await fake.clock.advance(MINUTE_MS);
		const listens = fake.of('subscriptions/listen');
		expect(listens.length).toBeLessThanOrEqual(2);
		const last = listens.at(-1)?.params['notifications'] as { taskIds: string[] } | undefined;
		expect(last?.taskIds).toHaveLength(1_000);
		const polled = new Set(
			fake
				.of('tasks/get')
				.filter(({ atMs }) => atMs > fake.clock.nowMs() - 25_000)
				.map(({ params }) => params['taskId']),
		);
		expect(polled.size).toBe(200);
		tasks.close();
	});

	it('asks questions that are pushed, once (T34, T52)', async () => {
		const fake = listening();
		const request = { method: 'roots/list' };
		let asked = 0;
		const tasks = await fake.taskClient({
			onInput: async () => {
				asked += 1;
				return { roots: [] };
			},
		});
		const result = tasks.callTool({ name: 'a' });
		await fake.clock.advance(5_000);
		for (let index = 0; index < 5; index++)
			fake.notify(task({ taskId: 'a', status: 'input_required', inputRequests: { k: request } }));
		fake.get = () => task({ taskId: 'a', status: 'input_required', inputRequests: { k: request } });
		await fake.clock.advance(5_000);
		expect(asked).toBe(1);
		expect(fake.of('tasks/update')).toHaveLength(1);
		fake.notify(done('done', { taskId: 'a' }));
		await result;
	});
});

describe('listening to a holdfast server', () => {
	const register: Parameters<typeof serveHttp>[0] = (mcp, tasks) =>
		mcp.registerTool(
			'slow',
			{ inputSchema: z.object({ ms: z.number() }) },
			tasks.handler(
				{ syncWindowMs: 0, minPollIntervalMs: 20_000, maxPollIntervalMs: 20_000 },
				async ({ ms }, task) => {
					await task.sleep('work', ms);
					return text('pushed');
				},
			),
		);

	it('gets the end at once over HTTP, though the interval is 20 s', async () => {
		const server = await serveHttp(register);
		ends.push(() => server.close(0));
		const { client, requests } = await connectHttp(server.url);
		ends.push(() => client.close());
		const tasks = new TaskClient(client);
		ends.push(() => tasks.close());
		const startedAtMs = Date.now();
		await tasks.callTool({ name: 'slow', arguments: { ms: 3_000 } });
		expect(Date.now() - startedAtMs).toBeLessThan(5_000);
		expect(requests.counts).toMatchObject({ 'tools/call': 1, 'tasks/get': 1, 'subscriptions/listen': 1 });
	});

	it('gets the end at once in memory, as over stdio', async () => {
		const { client, requests, serving } = await connectInMemory(register);
		ends.push(() => serving.close(0));
		const tasks = new TaskClient(client);
		ends.push(() => tasks.close());
		const startedAtMs = Date.now();
		await tasks.callTool({ name: 'slow', arguments: { ms: 3_000 } });
		expect(Date.now() - startedAtMs).toBeLessThan(5_000);
		expect(requests.counts).toMatchObject({ 'tools/call': 1, 'tasks/get': 1, 'subscriptions/listen': 1 });
	});
});
