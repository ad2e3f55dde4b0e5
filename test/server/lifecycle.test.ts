/** What opens and closes beside the server function, and what a tool can do to another task of its caller. */
import { expect, it } from 'vitest';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { memory } from '../../src/backend/memory/index.ts';
import type { JsonOf } from '../../src/protocol/json.ts';
import { createTaskServer, listen, type Tasks, type TaskServerOptions } from '../../src/server/index.ts';
import { gate } from '../support/engine-rig.ts';
import { eventually, httpWire } from '../support/wire.ts';

const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] });

/** A served server with these tools, and the order in which things happened. */
async function serve(
	register: (server: McpServer, tasks: Tasks) => void,
	options: Partial<TaskServerOptions>,
) {
	const app = createTaskServer({
		backend: memory(),
		server: (tasks) => {
			const server = new McpServer({ name: 'test', version: '1.0.0' });
			register(server, tasks);
			return server;
		},
		...options,
	});
	const listening = await listen(app, { port: 0 });
	return { app, listening, wire: httpWire(listening.url) };
}

it('opens before the first task runs, and closes when the last one has ended', async () => {
	const log: string[] = [];
	const work = gate<string>();
	const { listening, wire } = await serve(
		(server, tasks) =>
			server.registerTool(
				'work',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0 }, async () => {
					log.push('begins');
					const words = await work.opened;
					log.push('ends');
					return text(words);
				}),
			),
		{ open: () => void log.push('open'), close: async () => void log.push('close') },
	);
	await wire.request('tools/call', { name: 'work', arguments: {} });
	await eventually(() => expect(log).toEqual(['open', 'begins']));
	const closed = listening.close(5_000);
	work.open('done');
	await closed;
	expect(log).toEqual(['open', 'begins', 'ends', 'close']);
});

it('does not start when it cannot open, and then has nothing to close', async () => {
	const log: string[] = [];
	const app = createTaskServer({
		backend: memory(),
		server: () => new McpServer({ name: 'test', version: '1.0.0' }),
		open: () => {
			throw new Error('no such disk');
		},
		close: () => void log.push('close'),
	});
	await expect(app.start()).rejects.toThrow('no such disk');
	await app.stop();
	expect(log).toEqual([]);
});

it('lets a tool cancel another task of its caller, and tells whether it was open', async () => {
	const { listening, wire } = await serve((server, tasks) => {
		server.registerTool(
			'wait',
			{ inputSchema: z.object({}) },
			tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
				await task.sleep('a day', 86_400_000);
				return text('slept');
			}),
		);
		server.registerTool(
			'stop',
			{ inputSchema: z.object({ taskId: z.string() }) },
			tasks.handler({ support: 'forbidden' }, async ({ taskId }, task) =>
				text(String(await tasks.cancel(taskId, task.principal))),
			),
		);
	}, {});
	const { result } = await wire.request('tools/call', { name: 'wait', arguments: {} });
	const taskId = result?.['taskId'] as string;
	const stop = async (id: string): Promise<unknown> =>
		(await wire.request('tools/call', { name: 'stop', arguments: { taskId: id } })).result;
	expect(await stop(taskId)).toMatchObject({ content: [{ text: 'true' }] });
	await eventually(async () =>
		expect((await wire.request('tasks/get', { taskId })).result).toMatchObject({ status: 'cancelled' }),
	);
	expect(await stop(taskId)).toMatchObject({ content: [{ text: 'false' }] });
	expect(await stop('unknown')).toMatchObject({ isError: true, content: [{ text: 'Task not found' }] });
	await listening.close();
});

it('takes an interface with optional keys for JSON, and nothing that JSON would lose', async () => {
	interface Plan {
		readonly url: string;
		readonly limit?: number;
		readonly parts?: readonly { readonly name?: string }[];
	}
	type IsJson<T> = T extends JsonOf<T> ? true : false;
	// What is checked here is checked by the compiler.
	const taken: [IsJson<Plan>, IsJson<Plan[]>, IsJson<string>] = [true, true, true];
	const refused: [IsJson<Date>, IsJson<{ at: Date }>, IsJson<{ run: () => void }>, IsJson<unknown>] = [
		...([false, false, false, false] as const),
	];
	expect([...taken, ...refused]).toHaveLength(7);
	const { listening, wire } = await serve(
		(server, tasks) =>
			server.registerTool(
				'plan',
				{ inputSchema: z.object({ url: z.string() }) },
				tasks.handler({ prepare: ({ url }): Plan => ({ url, limit: 3 }) }, async (_args, task) => {
					const { limit = 0 }: Plan = await task.step('again', (): Plan => task.prepared);
					return text(`${task.prepared.url} ${limit}`);
				}),
			),
		{},
	);
	const { result } = await wire.request('tools/call', { name: 'plan', arguments: { url: 'here' } });
	expect(result).toMatchObject({ content: [{ text: 'here 3' }] });
	await listening.close();
});
