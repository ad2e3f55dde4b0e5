/** The servers that are compared over HTTP, each in a process of its own. Forked by http.ts. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { sqlite } from '../src/backend/sqlite/index.ts';
import { createTaskServer, listen } from '../src/server/index.ts';
import { backendOn, callOf, Ends, FixedDatabase, inParallel, LOG, RESULT } from './fixture.ts';

/** What a server is, and what it says when it listens. */
export type ServerName = 'holdfast' | 'stored' | 'echo' | 'sdk';
export interface ServerReady {
	readonly port: number;
	/** Of holdfast only. */
	readonly taskIds: readonly string[];
}

const TASKS = 1_000;
const [name, argument = ''] = process.argv.slice(2);

const start: Readonly<Record<ServerName, () => Promise<ServerReady>>> = { holdfast, stored, echo, sdk };
const ready = await start[name as ServerName]();
process.send?.(ready);
process.on('message', () => process.send?.(process.cpuUsage()));
process.on('disconnect', () => process.exit());

/** holdfast with completed tasks on SQLite, as `listen()` serves it. */
async function holdfast(): Promise<ServerReady> {
	const backend = backendOn(new FixedDatabase(argument, 'normal'));
	const server = createTaskServer({
		backend,
		log: LOG,
		server: (tasks) => {
			const mcp = new McpServer({ name: 'bench', version: '1.0.0' });
			const handler = tasks.handler({}, () => ({ content: [{ type: 'text', text: textOf(RESULT) }] }));
			mcp.registerTool('deploy', { inputSchema: z.looseObject({}) }, handler);
			return mcp;
		},
	});
	const { port } = await listen(server, { port: 0 });
	const ends = new Ends(backend, 2);
	const taskIds: string[] = [];
	await inParallel(TASKS, 16, async (number) => {
		const { taskId } = await server.engine.call(callOf('deploy', number));
		taskIds.push(taskId);
		await ends.of(taskId);
	});
	ends.stop();
	return { port, taskIds };
}

/** holdfast on a file that has tasks already. */
async function stored(): Promise<ServerReady> {
	const server = createTaskServer({
		backend: sqlite(argument),
		log: LOG,
		server: () => new McpServer({ name: 'bench', version: '1.0.0' }),
	});
	const { port } = await listen(server, { port: 0 });
	return { port, taskIds: [] };
}

/** The least that a JSON-RPC server does: parse the request, write an answer with its id and a ready result. */
async function echo(): Promise<ServerReady> {
	const result: unknown = JSON.parse(argument);
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on('data', (chunk: Buffer) => chunks.push(chunk));
		request.on('end', () => {
			const { id } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { id: unknown };
			const json = JSON.stringify({ jsonrpc: '2.0', id, result });
			response.writeHead(200, {
				'content-type': 'application/json',
				'content-length': Buffer.byteLength(json),
			});
			response.end(json);
		});
	});
	return { port: await portOf(server), taskIds: [] };
}

/** A plain tool on the SDK, as its documentation serves it. */
async function sdk(): Promise<ServerReady> {
	const handler = createMcpHandler(() => {
		const mcp = new McpServer({ name: 'bench', version: '1.0.0' });
		mcp.registerTool('status', { inputSchema: z.object({ taskId: z.string() }) }, () => ({
			content: [{ type: 'text', text: textOf(RESULT) }],
		}));
		return mcp;
	});
	const listener = toNodeHandler(handler);
	const server = createServer((request, response) => {
		// Both are the same object; Node's type says of some members that they may be undefined.
		void listener(request as IncomingMessage & Parameters<typeof listener>[0], response);
	});
	return { port: await portOf(server), taskIds: [] };
}

async function portOf(server: Server): Promise<number> {
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	return (server.address() as AddressInfo).port;
}

function textOf(result: typeof RESULT): string {
	return JSON.stringify(result['content']);
}
