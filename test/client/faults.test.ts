/**
 * Real HTTP through a proxy that breaks it: no task is lost, none is run twice, and the server is not flooded.
 * HOLDFAST_FAULT_TASKS sets how many tasks.
 */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Execution } from '../../src/client/execution.ts';
import { TaskClient } from '../../src/client/task-client.ts';
import type { TaskClientOptions } from '../../src/client/task-client-options.ts';
import { taskFetch } from '../../src/client/task-fetch.ts';
import { type Fault, FaultProxy } from './fault-proxy.ts';
import { newClient, Requests, serveHttp, text } from './server.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

const TASKS = Number(process.env['HOLDFAST_FAULT_TASKS'] ?? 100);

/** A server behind a proxy, with a tool that runs until it is released, and how often it ran for each index. */
async function setUp(options: TaskClientOptions = {}) {
	const runs = new Map<number, number>();
	const release = Promise.withResolvers<void>();
	const server = await serveHttp((mcp, tasks) =>
		mcp.registerTool(
			'work',
			{ inputSchema: z.object({ index: z.number() }) },
			tasks.handler({ syncWindowMs: 0, maxPollIntervalMs: 1_000 }, async ({ index }) => {
				runs.set(index, (runs.get(index) ?? 0) + 1);
				await release.promise;
				return text(`result ${index}`);
			}),
		),
	);
	ends.push(() => server.close(0));
	const proxy = await FaultProxy.open(server.port);
	ends.push(() => proxy.close());
	const requests = new Requests();
	const client = newClient();
	client.onerror = () => {};
	await client.connect(
		new StreamableHTTPClientTransport(new URL(proxy.url), { fetch: taskFetch(requests.fetch) }),
	);
	ends.push(() => client.close());
	const tasks = new TaskClient(client, { rpcTimeoutMs: 2_500, listenBackstopMs: 3_000, ...options });
	ends.push(() => tasks.close());
	return { tasks, proxy, requests, release, runs };
}

/** Starts many tasks, 50 at a time: a thousand sockets at once are the operating system's problem. */
async function startMany({ tasks }: { readonly tasks: TaskClient }) {
	const started: Execution[] = [];
	while (started.length < TASKS) {
		const size = Math.min(50, TASKS - started.length);
		const batch = Array.from({ length: size }, (_, offset) =>
			tasks.startTool({ name: 'work', arguments: { index: started.length + offset } }),
		);
		started.push(...(await Promise.all(batch)));
	}
	return started;
}

const expected = Array.from({ length: TASKS }, (_, index) => ({ content: [{ text: `result ${index}` }] }));

describe.each([true, false])(`${TASKS} tasks over a broken network, listening: %s`, (listen) => {
	const FAULTS: readonly Fault[] = ['reset', 'half_open', 'unavailable', 'slow', 'trickle'];

	it('all end with their own result, each having run once (F07, F08, F19, T71)', {
		timeout: 60_000 + TASKS * 100,
	}, async () => {
		const all = await setUp({ listen });
		const { proxy, requests, release, runs } = all;
		const executions = await startMany(all);
		await pause(2_000);
		const during: Record<string, number> = {};
		const sent = (): number => Object.values(requests.counts).reduce((sum, count) => sum + count, 0);
		for (const fault of FAULTS) {
			proxy.set(fault);
			const before = sent();
			await pause(2_000);
			during[fault] = sent() - before;
			proxy.set('pass');
			await pause(500);
		}
		proxy.set('half_open');
		release.resolve();
		await pause(1_000);
		proxy.set('pass');
		proxy.cut();
		const results = await Promise.all(executions.map((execution) => execution.result()));
		expect(results).toMatchObject(expected);
		expect([...runs.values()]).toEqual(Array.from({ length: TASKS }, () => 1));
		expect(requests.counts['tools/call']).toBe(TASKS);
		// 16 in flight together, then one per back-off: 0.25 s at least, doubling, and the streams beside it.
		for (const fault of ['reset', 'half_open', 'unavailable'])
			expect(during[fault]).toBeLessThan(16 + 16 + 20);
		console.log(`listen ${listen}: requests per 2 s of fault`, during, requests.counts);
	});
});

describe('a server that asks to be left alone', () => {
	it('is left alone for as long as Retry-After says (T71)', async () => {
		const answers = [429, 503];
		const times: number[] = [];
		const { tasks, requests, release } = await setUp({ listen: false });
		const execution = await tasks.startTool({ name: 'work', arguments: { index: 0 } });
		const { fetch } = globalThis;
		globalThis.fetch = async (url, init) => {
			times.push(Date.now());
			const status = answers.shift();
			if (status === undefined) return fetch(url, init);
			return new Response('slow down', { status, headers: { 'retry-after': '1' } });
		};
		ends.push(() => {
			globalThis.fetch = fetch;
		});
		release.resolve();
		expect(await execution.result()).toMatchObject({ content: [{ text: 'result 0' }] });
		expect(answers).toEqual([]);
		const [first = 0, second = 0, third = 0] = times;
		expect(second - first).toBeGreaterThanOrEqual(990);
		expect(third - second).toBeGreaterThanOrEqual(990);
		expect(requests.counts['tasks/get']).toBe(3);
	});
});
