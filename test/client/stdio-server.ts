/**
 * A task server for its parent, which may kill it: `stdio-server.ts FOLDER`. Its tasks are in the folder, and so is a
 * log of what its steps did, one line each.
 */
import { McpServer } from '@modelcontextprotocol/server';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { createTaskServer, serveTasksOverStdio } from '../../src/server/index.ts';

const folder = process.argv[2] ?? '';
const log = (line: string): void => appendFileSync(join(folder, 'log'), `${line}\n`);
const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] });

const server = createTaskServer({
	backend: sqlite(join(folder, 'tasks.db')),
	server: (tasks) => {
		const mcp = new McpServer({ name: 'stdio', version: '1' });
		mcp.registerTool(
			'work',
			{ inputSchema: z.object({ name: z.string(), sleepMs: z.number() }) },
			tasks.handler({ syncWindowMs: 0 }, async ({ name, sleepMs }, task) => {
				const started = await task.step('start', () => {
					log(`started ${name}`);
					return process.pid;
				});
				task.progress({ progress: 1, total: 2, message: 'half way' });
				await task.sleep('middle', sleepMs);
				return text(`${name} began in ${started === process.pid ? 'this' : 'another'} process`);
			}),
		);
		mcp.registerTool(
			'ask',
			{ inputSchema: z.object({}) },
			tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
				const requestedSchema = { type: 'object', properties: { ok: { type: 'boolean' } } };
				const answer = await task.requireInput('sure', { mode: 'form', message: 'Sure?', requestedSchema });
				await task.step('answered', () => log(`answered ${answer.action}`));
				return text(answer.action);
			}),
		);
		mcp.registerTool(
			'endless',
			{ inputSchema: z.object({}) },
			tasks.handler({ syncWindowMs: 0 }, async (_args, task): Promise<never> => {
				await new Promise((resolve) => task.signal.addEventListener('abort', resolve));
				log('stopped');
				throw task.signal.reason;
			}),
		);
		return mcp;
	},
});

await serveTasksOverStdio(server).closed;
