/** What a task of 40 minutes costs: turns of the model that called it, and requests of the client. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { memory } from '../src/backend/memory/index.ts';
import { AgentTools, OpenAiTools, TaskClient, type OpenAiToolMessage } from '../src/client/index.ts';
import { createFetch, createTaskServer } from '../src/server/index.ts';
import { FakeClock } from '../src/testing/index.ts';
import type { Figure } from './figures.ts';
import { LOG } from './fixture.ts';

const MINUTE_MS = 60_000;
const LENGTH_MS = 40 * MINUTE_MS;

/** What one long call cost, in simulated time. */
interface Cost {
	readonly turns: number;
	readonly requests: number;
}

export async function measure(): Promise<readonly Figure[]> {
	const polled = await run({ listen: false });
	const estimated = await run({ listen: false, estimateMs: LENGTH_MS });
	const listened = await run({ listen: true });
	const turns = Math.max(polled.turns, estimated.turns, listened.turns);
	return [
		{ what: 'turns of the model for a task of 40 minutes', value: turns, unit: 'turns', goal: { atMost: 1 } },
		// The call, the stream, and a poll a minute in case the stream is dead.
		{ what: 'with listening', value: listened.requests, unit: 'requests', goal: { atMost: 50 } },
		{ what: "with polling, at the server's intervals", value: polled.requests, unit: 'requests' },
		{ what: 'with polling, of a tool with an estimate', value: estimated.requests, unit: 'requests' },
	];
}

/** Lets a scripted model call a tool that takes 40 minutes; server and client share a clock that runs ahead. */
async function run(options: { readonly listen: boolean; readonly estimateMs?: number }): Promise<Cost> {
	const clock = new FakeClock();
	const { estimateMs } = options;
	const server = createTaskServer({
		...{ backend: memory({ time: clock }), clock, log: LOG },
		server: (tasks) => {
			const mcp = new McpServer({ name: 'bench', version: '1.0.0' });
			const work = tasks.handler({ ...(estimateMs !== undefined && { estimateMs }) }, async (_args, task) => {
				await task.sleep('work', LENGTH_MS);
				return { content: [{ type: 'text', text: 'released' }] };
			});
			mcp.registerTool('release', { inputSchema: z.object({}) }, work);
			return mcp;
		},
	});
	await server.start();
	const endpoint = createFetch(server);
	let requests = 0;
	const client = new Client(
		{ name: 'bench', version: '1.0.0' },
		{ versionNegotiation: { mode: { pin: '2026-07-28' } } },
	);
	await client.connect(
		new StreamableHTTPClientTransport(new URL('http://bench.invalid/mcp'), {
			fetch: (url, init) => {
				requests += 1;
				return endpoint.fetch(new Request(url, init));
			},
		}),
	);
	const tasks = new TaskClient(client, { clock, listen: options.listen });
	const tools = new OpenAiTools(await AgentTools.list({ clients: [tasks] }));
	requests = 0;
	const { turns, ended } = converse(tools);
	await clock.advance(LENGTH_MS + MINUTE_MS);
	await ended;
	tasks.close();
	await client.close();
	await endpoint.close();
	await server.stop(0);
	return { turns: turns(), requests };
}

/** An agent loop: the model calls the tool, and its next turn has the result. */
function converse(tools: OpenAiTools): { turns: () => number; ended: Promise<void> } {
	let turns = 0;
	const results: OpenAiToolMessage[] = [];
	const model = () => {
		turns += 1;
		return { id: `call-${turns}`, type: 'function', function: { name: 'release', arguments: '{}' } };
	};
	const loop = async (): Promise<void> => {
		while (!results.some(({ content }) => content === 'released')) results.push(await tools.run(model()));
	};
	return { turns: () => turns, ended: loop() };
}
