import { inputRequired } from '@modelcontextprotocol/server';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { TaskClient } from '../../src/client/task-client.ts';
import { TaskFailure } from '../../src/server/index.ts';
import { done, FakeServer, Refusal, SILENCE, task } from './fake-server.ts';
import { connectHttp, newClient, type Register, serveHttp, text } from './server.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

const register: Register = (mcp, tasks) => {
	mcp.registerTool('greet', { inputSchema: z.object({ name: z.string() }) }, ({ name }) =>
		text(`Hello, ${name}`),
	);
	mcp.registerTool(
		'slow',
		{
			inputSchema: z.object({ ms: z.number(), wrong: z.boolean().optional() }),
			outputSchema: z.object({ tookMs: z.number() }),
		},
		tasks.handler({ syncWindowMs: 0 }, async ({ ms, wrong }, task) => {
			await task.sleep('work', ms);
			if (wrong) throw new TaskFailure(-32055, 'The disk is full', { freeBytes: 0 });
			return { ...text(`done after ${ms}`), structuredContent: { tookMs: ms } };
		}),
	);
	mcp.registerTool(
		'asks_first',
		{ inputSchema: z.object({}) },
		tasks.handler(
			{
				syncWindowMs: 0,
				prepare: (_args, ctx) => {
					const answer = z
						.object({ who: z.object({ content: z.object({ name: z.string() }) }) })
						.safeParse(ctx.mcpReq.inputResponses);
					if (answer.success) return answer.data.who.content.name;
					const who = inputRequired.elicit({
						message: 'Who?',
						requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
					});
					return inputRequired({ inputRequests: { who } });
				},
			},
			(_args, task) => text(`for ${JSON.stringify(task.prepared)}`),
		),
	);
	mcp.registerTool('noisy', { inputSchema: z.object({}) }, async (_args, ctx) => {
		const token = ctx.mcpReq._meta?.['progressToken'];
		for (const progressToken of [token, 'made-up', 'other'])
			await ctx.mcpReq.notify({
				method: 'notifications/progress',
				params: { progressToken: progressToken as string, progress: 1, message: 'halfway' },
			});
		return text(`token ${String(token)}`);
	});
};

/** A task client and an SDK client over HTTP. */
async function connect(options: Parameters<typeof connectHttp>[1] = {}) {
	const server = await serveHttp(register);
	ends.push(() => server.close(0));
	const { client, requests } = await connectHttp(server.url, options);
	ends.push(() => client.close());
	const tasks = new TaskClient(client);
	ends.push(() => tasks.close());
	return { client, requests, tasks, server };
}

describe('callTool', () => {
	it('drives a task to its result, with few requests (C2, C3)', async () => {
		const { tasks, requests } = await connect();
		const result = await tasks.callTool({ name: 'slow', arguments: { ms: 2_000 } });
		expect(result).toMatchObject({
			content: [{ type: 'text', text: 'done after 2000' }],
			structuredContent: { tookMs: 2_000 },
		});
		expect(requests.counts['tools/call']).toBe(1);
		expect(requests.counts['tasks/get']).toBeLessThanOrEqual(3);
	});

	it('changes nothing for a tool that answers at once, but that it declares Tasks (C1, T01)', async () => {
		const { client, tasks, requests } = await connect();
		const plain = await client.callTool({ name: 'greet', arguments: { name: 'Ada' }, _meta: { mine: 1 } });
		const ours = await tasks.callTool({ name: 'greet', arguments: { name: 'Ada' }, _meta: { mine: 1 } });
		expect(ours).toEqual(plain);
		const [first, second] = requests.bodies.filter(({ method }) => method === 'tools/call');
		const declared = JSON.stringify(second?.['params']).replace(
			'{"extensions":{"io.modelcontextprotocol/tasks":{}}}',
			'{}',
		);
		expect(JSON.parse(declared)).toEqual(first?.['params']);
		expect(requests.counts).toMatchObject({ 'tools/call': 2 });
	});

	it('leaves calls that the host makes past it undeclared, so that they are answered without a task (T02)', async () => {
		const { client, tasks } = await connect();
		await tasks.callTool({ name: 'greet', arguments: { name: 'Ada' } });
		const held = await client.callTool({ name: 'slow', arguments: { ms: 100 } });
		expect(held.structuredContent).toEqual({ tookMs: 100 });
	});

	it('throws what the SDK throws for a failed task and for a result that breaks the output schema (T21)', async () => {
		const { client, tasks } = await connect();
		const failing = tasks.callTool({ name: 'slow', arguments: { ms: 0, wrong: true } });
		await expect(failing).rejects.toMatchObject({
			...{ name: 'ProtocolError', code: -32055, message: 'The disk is full', data: { freeBytes: 0 } },
		});
		await client.listTools();
		expect(await tasks.callTool({ name: 'slow', arguments: { ms: 0 } })).toMatchObject({
			structuredContent: { tookMs: 0 },
		});

		const toolDefinition = {
			name: 'slow',
			inputSchema: { type: 'object' as const },
			outputSchema: { type: 'object' as const, properties: { tookMs: { type: 'string' } } },
		};
		const broken = tasks.callTool({ name: 'slow', arguments: { ms: 0 } }, { toolDefinition });
		await expect(broken).rejects.toThrow(/output schema/);
	});

	it('has questions from before the task answered by the same handlers (T13)', async () => {
		const { client, tasks, requests } = await connect({ capabilities: { elicitation: {} } });
		const handler = vi.fn(async () => ({ action: 'accept' as const, content: { name: 'Grace' } }));
		client.setRequestHandler('elicitation/create', handler);
		const result = await tasks.callTool({ name: 'asks_first', arguments: {} });
		expect(result.content).toEqual([{ type: 'text', text: 'for "Grace"' }]);
		expect(handler).toHaveBeenCalledTimes(1);
		expect(requests.counts['tools/call']).toBe(2);
	});

	it('passes progress of a plain call on by its token, 0 included, and drops what has another (F06, G1)', async () => {
		const server = await serveHttp(register);
		ends.push(() => server.close(0));
		const client = newClient();
		ends.push(() => client.close());
		const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
		await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
		const tasks = new TaskClient(client);
		const notes: unknown[] = [];
		const result = await tasks.callTool(
			{ name: 'noisy', arguments: {} },
			{ onprogress: (note) => notes.push(note) },
		);
		expect(result.content).toEqual([{ type: 'text', text: 'token 0' }]);
		expect(notes).toEqual([{ progress: 1, message: 'halfway' }]);
		const silent = await tasks.callTool({ name: 'noisy', arguments: {} });
		expect(silent.content).toEqual([{ type: 'text', text: 'token undefined' }]);
	});

	it('does not declare the extension on an older protocol version, whose own Tasks it uses instead (T06)', async () => {
		const server = await serveHttp(register);
		ends.push(() => server.close(0));
		const { client, requests } = await connectHttp(server.url, { versionNegotiation: { mode: 'legacy' } });
		ends.push(() => client.close());
		const tasks = new TaskClient(client);
		const result = await tasks.callTool({ name: 'slow', arguments: { ms: 50 } });
		expect(result.structuredContent).toEqual({ tookMs: 50 });
		expect(JSON.stringify(requests.bodies)).not.toContain('io.modelcontextprotocol/tasks');
		expect(requests.counts['tasks/result']).toBe(1);
		const execution = await tasks.startTool({ name: 'slow', arguments: { ms: 50 } });
		expect(execution.reference).toMatch(/^holdfast-task:/);
		expect(await execution.result()).toMatchObject({ structuredContent: { tookMs: 50 } });
	});

	it('applies its timeout to each request, never to the task (C6)', async () => {
		const { tasks } = await connect();
		const result = await tasks.callTool({ name: 'slow', arguments: { ms: 1_500 } }, { timeout: 500 });
		expect(result.structuredContent).toEqual({ tookMs: 1_500 });
	});

	it('gives up the wait and cancels the task when its signal fires (C5)', async () => {
		const fake = new FakeServer();
		fake.get = () => task();
		const tasks = await fake.taskClient();
		const controller = new AbortController();
		const result = tasks
			.callTool({ name: 'slow' }, { signal: controller.signal })
			.catch((error: unknown) => error);
		await fake.clock.advance(5_000);
		fake.get = () => task({ status: 'cancelled' });
		controller.abort('the user pressed stop');
		await fake.clock.advance(5_000);
		expect(await result).toMatchObject({ code: 'REQUEST_TIMEOUT', message: 'the user pressed stop' });
		expect(fake.of('tasks/cancel')).toHaveLength(1);
		expect(tasks.watching).toBe(0);
		expect(await tasks.openTasks()).toMatchObject([{ outcome: { kind: 'cancelled' } }]);
	});

	it('reports a call that broke before its answer as the SDK does, and sends it once (F16)', async () => {
		const fake = new FakeServer();
		fake.call = () => SILENCE;
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'slow' }).catch((error: unknown) => error);
		await fake.clock.advance(1_000);
		await tasks.client.close();
		expect(await result).toMatchObject({ code: 'CONNECTION_CLOSED' });
		expect(fake.of('tools/call')).toHaveLength(1);
	});
});

describe('an execution', () => {
	it('that is cancelled tells how the task ended, which may be well (T40)', async () => {
		const fake = new FakeServer();
		fake.get = () => task();
		const tasks = await fake.taskClient();
		const stopped = await tasks.startTool({ name: 'slow' });
		await fake.clock.advance(1_000);
		await stopped.cancel();
		fake.get = () => task({ status: 'cancelled' });
		const error = stopped.result().catch((thrown: unknown) => thrown);
		await fake.clock.advance(2_000);
		expect(await error).toMatchObject({ code: 'TASK_CANCELLED' });
		await stopped.cancel();
		expect(fake.of('tasks/cancel')).toHaveLength(1);

		fake.call = () => ({ resultType: 'task', ...task({ taskId: 't2' }) });
		fake.get = () => task({ taskId: 't2' });
		const finished = await tasks.startTool({ name: 'slow' });
		await Promise.all([finished.cancel(), finished.cancel()]);
		fake.get = () => done('was faster', { taskId: 't2' });
		await fake.clock.advance(2_000);
		expect(await finished.result()).toMatchObject({ content: [{ text: 'was faster' }] });
		expect(fake.of('tasks/cancel')).toHaveLength(2);
	});

	it('whose server never says that it stopped ends 10 s after the cancel was acknowledged', async () => {
		const fake = new FakeServer();
		fake.get = () => task();
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		await execution.cancel();
		await fake.clock.advance(11_000);
		expect(execution.outcome).toMatchObject({ kind: 'cancelled', confirmed: false });
		expect(fake.of('tasks/get').length).toBeLessThanOrEqual(11);
		expect(fake.clock.pending).toBe(0);
	});

	it('tells the server to cancel through an outage', async () => {
		const fake = new FakeServer();
		let failures = 4;
		fake.get = () => task();
		fake.cancel = () => (failures-- > 0 ? new Refusal(-32603) : {});
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		const cancelled = execution.cancel();
		await fake.clock.advance(60_000);
		await cancelled;
		expect(fake.of('tasks/cancel')).toHaveLength(5);
		execution.detach();
	});

	it('that is detached stops at once, and its reference comes back to the task (C5)', async () => {
		const fake = new FakeServer();
		fake.get = () => task();
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		const result = execution.result().catch((error: unknown) => error);
		const states = (async () => {
			let count = 0;
			for await (const state of execution.updates()) count += state.status === 'working' ? 1 : 0;
			return count;
		})();
		await fake.clock.advance(3_000);
		const reference = execution.detach();
		expect(await result).toMatchObject({ code: 'DETACHED' });
		expect(await states).toBe(1);
		expect(fake.clock.pending).toBe(0);
		const polls = fake.of('tasks/get').length;
		await fake.clock.advance(60_000);
		expect(fake.of('tasks/get')).toHaveLength(polls);
		expect(fake.of('tasks/cancel')).toHaveLength(0);

		fake.get = () => done('later');
		const again = await tasks.resume(reference ?? '');
		await fake.clock.advance(1_000);
		expect(await again.result()).toMatchObject({ content: [{ text: 'later' }] });
	});

	it('that is detached leaves others that watch the same task alone', async () => {
		const fake = new FakeServer();
		fake.get = (n) => (n < 4 ? task() : done('ok'));
		const tasks = await fake.taskClient();
		const first = await tasks.startTool({ name: 'slow' });
		const second = await tasks.resume(first.reference ?? '');
		first.detach();
		first.detach();
		await fake.clock.advance(10_000);
		expect(await second.result()).toMatchObject({ content: [{ text: 'ok' }] });
	});

	it('is there at once with a status to show, while the task runs (F13)', async () => {
		const fake = new FakeServer();
		fake.call = () => ({ resultType: 'task', ...task({ statusMessage: 'Running slow' }) });
		fake.get = () => task();
		const tasks = await fake.taskClient();
		const execution = await tasks.startTool({ name: 'slow' });
		expect(execution.state).toMatchObject({ status: 'working', statusMessage: 'Running slow' });
		expect(execution.reference).toMatch(/^holdfast-task:[\w-]+$/);
		execution.detach();
	});

	it('cannot be resumed by a text that is no reference, or one of another server', async () => {
		const fake = new FakeServer();
		const tasks = await fake.taskClient();
		const other = await fake.taskClient({ server: 'other' });
		const { reference } = await other.startTool({ name: 'slow' });
		for (const text of ['', 'x', 'holdfast-task:', 'holdfast-task:e30', reference ?? ''])
			await expect(tasks.resume(text)).rejects.toMatchObject({ code: 'INVALID_REFERENCE' });
		other.close();
	});
});
