/**
 * Real HTTP through a proxy that breaks it: no task is lost, none is run twice, and the server is not flooded.
 * HOLDFAST_FAULT_TASKS sets how many tasks, HOLDFAST_FAULT_MS how long each fault lasts.
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
const FAULT_MS = Number(process.env['HOLDFAST_FAULT_MS'] ?? 2_000);

/** At most 200 polls a second for all tasks together: the machine is to be busy with faults, not with polls. */
const POLL_MS = Math.max(1_000, TASKS * 5);

/** Nothing gets through: an outage. */
const OUTAGES: readonly Fault[] = ['drop', 'reset', 'torn', 'half_open', 'unavailable'];
/** Everything gets through, late. */
const DELAYS: readonly Fault[] = ['slow', 'trickle'];

/**
 * The bound of an outage, however many tasks there are: what was in flight (16), one request per back-off, and one
 * attempt at a stream per back-off. A back-off is at least half of 0.5 s, doubling up to 10 s, for streams to 30 s.
 */
function requestsInOutage(lengthMs: number): number {
	const attempts = (maxMs: number): number => {
		let count = 1;
		for (let spentMs = 0; spentMs < lengthMs; count++) spentMs += Math.min(maxMs, 500 * 2 ** (count - 1)) / 2;
		return count;
	};
	return 16 + attempts(10_000) + attempts(30_000);
}

/** A server behind a proxy, with a tool that runs until it is released, and how often it ran for each index. */
async function setUp(options: TaskClientOptions = {}) {
	const runs = new Map<number, number>();
	const release = Promise.withResolvers<void>();
	const server = await serveHttp((mcp, tasks) =>
		mcp.registerTool(
			'work',
			{ inputSchema: z.object({ index: z.number() }) },
			tasks.handler({ syncWindowMs: 0, maxPollIntervalMs: POLL_MS }, async ({ index }) => {
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

/** Resolves when what is known of a task is not older than the outage. */
async function isReachable(execution: Execution): Promise<void> {
	for await (const { reachable } of execution.updates()) if (reachable) return;
}

const expected = Array.from({ length: TASKS }, (_, index) => ({ content: [{ text: `result ${index}` }] }));

describe.each([true, false])(`${TASKS} tasks over a broken network, listening: %s`, (listen) => {
	it('all end with their own result, each having run once (F07, F08, F19, T71)', {
		timeout: 60_000 + TASKS * 100 + 2 * FAULT_MS * (OUTAGES.length + DELAYS.length),
	}, async () => {
		const all = await setUp({ listen });
		const { proxy, requests, release, runs } = all;
		const executions = await startMany(all);
		await pause(2_000);
		const during: Record<string, number> = {};
		const sent = (): number => Object.values(requests.counts).reduce((sum, count) => sum + count, 0);
		for (const fault of [...OUTAGES, ...DELAYS]) {
			proxy.set(fault);
			const before = sent();
			await pause(FAULT_MS);
			during[fault] = sent() - before;
			proxy.set('pass');
			await Promise.all(executions.map(isReachable));
		}
		proxy.set('half_open');
		release.resolve();
		await pause(1_000);
		proxy.set('pass');
		proxy.cut();
		const results = await Promise.all(executions.map((execution) => execution.result()));
		const bound = requestsInOutage(FAULT_MS);
		console.log(
			`${TASKS} tasks, listen ${listen}: ${results.length} results, ${runs.size} runs; requests in ${FAULT_MS} ms ` +
				`of each fault ${JSON.stringify(during)} (in an outage at most ${bound}), in all ${JSON.stringify(requests.counts)}`,
		);
		expect(results).toMatchObject(expected);
		expect([...runs.values()]).toEqual(Array.from({ length: TASKS }, () => 1));
		expect(requests.counts['tools/call']).toBe(TASKS);
		for (const fault of OUTAGES)
			expect([fault, during[fault]]).toSatisfy(([, count]) => Number(count) <= bound);
		// Late answers are asked for no more often than prompt ones: once per task and interval.
		for (const fault of DELAYS) expect(during[fault]).toBeLessThanOrEqual(TASKS * (FAULT_MS / 1_000 + 1));
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
