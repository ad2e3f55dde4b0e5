/**
 * The process that is killed: a task server over HTTP on SQLite. `node victim.ts DB-FILE EFFECTS-FILE [TIMING-JSON]`.
 * Loads, then waits for a line on stdin before it touches the database, and prints its URL when it listens. Each
 * step of a tool leaves a line in the effects file, on the disk before the step ends.
 */
import { once } from 'node:events';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import {
	createTaskServer,
	type EngineTiming,
	listen,
	type TaskContext,
	type Tasks,
} from '../../src/server/index.ts';

const [dbFile = '', effectsFile = '', timing = '{}'] = process.argv.slice(2);

/** Work that can be seen from outside, and takes `durationMs`. */
async function effect(task: TaskContext, step: string, durationMs: number): Promise<string> {
	await pause(durationMs);
	const descriptor = openSync(effectsFile, 'a');
	writeSync(descriptor, `${task.taskId} ${step} ${process.pid}\n`);
	fsyncSync(descriptor);
	closeSync(descriptor);
	await pause(durationMs);
	return `${step} by ${process.pid}`;
}

function text(value: string): { content: [{ type: 'text'; text: string }] } {
	return { content: [{ type: 'text', text: value }] };
}

function register(server: McpServer, tasks: Tasks): void {
	server.registerTool(
		'build',
		{ description: 'Several steps', inputSchema: z.object({ steps: z.number().int(), stepMs: z.number() }) },
		tasks.handler(
			{ syncWindowMs: 0, onCrash: 'resume', maxCrashes: 1_000 },
			async ({ steps, stepMs }, task) => {
				const done: string[] = [];
				for (let index = 1; index <= steps; index++) {
					task.progress({ progress: index, total: steps, message: `step ${index}` });
					done.push(await task.step(`s${index}`, () => effect(task, `s${index}`, stepMs / 2)));
					if (index === 2) await task.sleep('rest', stepMs);
				}
				return text(done.join(', '));
			},
		),
	);
	server.registerTool(
		'release',
		{ description: 'Asks in the middle', inputSchema: z.object({ stepMs: z.number() }) },
		tasks.handler(
			{ syncWindowMs: 0, onCrash: 'resume', maxCrashes: 1_000, parkAfterMs: 100 },
			async ({ stepMs }, task) => {
				await task.step('before', () => effect(task, 'before', stepMs / 2));
				const answer = await task.requireInput('version', {
					mode: 'form',
					message: 'Which version?',
					requestedSchema: { type: 'object', properties: { version: { type: 'string' } } },
				});
				await task.step('after', () => effect(task, 'after', stepMs / 2));
				const version = answer.content?.['version'];
				return text(typeof version === 'string' ? version : 'none');
			},
		),
	);
	server.registerTool(
		'lookup',
		{ description: 'Short, and often answered at once', inputSchema: z.object({ takesMs: z.number() }) },
		tasks.handler({ syncWindowMs: 30 }, async ({ takesMs }) => {
			await pause(takesMs);
			return text('found');
		}),
	);
	server.registerTool(
		'order',
		{
			description: 'A write that is called with a key',
			inputSchema: z.object({ item: z.string(), stepMs: z.number() }),
		},
		tasks.handler({ syncWindowMs: 0, maxCrashes: 1_000 }, async ({ item, stepMs }, task) => {
			await task.step('charge', () => effect(task, 'charge', stepMs / 2));
			await task.step('ship', () => effect(task, 'ship', stepMs / 2));
			return text(`ordered ${item}`);
		}),
	);
}

const server = createTaskServer({
	backend: sqlite({ file: dbFile }),
	server: (tasks) => {
		const mcp = new McpServer({ name: 'victim', version: '1' });
		register(mcp, tasks);
		return mcp;
	},
	timing: JSON.parse(timing) as Partial<EngineTiming>,
	log: {
		info: () => {},
		warn: (facts, message) => process.stderr.write(`warn: ${message} ${JSON.stringify(facts)}\n`),
		error: (facts, message) => process.stderr.write(`error: ${message} ${JSON.stringify(facts)}\n`),
	},
});

// An orderly exit is only for filling the compile cache.
process.once('SIGTERM', () => process.exit(0));
process.stdout.write('loaded\n');
await once(process.stdin, 'data');
const { url } = await listen(server, { port: 0 });
process.stdout.write(`${url}\n`);
