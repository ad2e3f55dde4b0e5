/** The tools of the processes that are killed. Each step leaves a line in a file, on the disk before the step ends. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { TaskContext, Tasks } from '../../src/server/index.ts';

/** Work that can be seen from outside, and takes `durationMs`: task, step, process and when it was begun. */
async function leaveTrace(
	effectsFile: string,
	task: TaskContext,
	step: string,
	durationMs: number,
): Promise<string> {
	const begunAtMs = Date.now();
	await pause(durationMs);
	const descriptor = openSync(effectsFile, 'a');
	writeSync(descriptor, `${task.taskId} ${step} ${process.pid} ${begunAtMs}\n`);
	fsyncSync(descriptor);
	closeSync(descriptor);
	await pause(durationMs);
	return `${step} by ${process.pid}`;
}

function text(value: string): { content: [{ type: 'text'; text: string }] } {
	return { content: [{ type: 'text', text: value }] };
}

export function registerTools(server: McpServer, tasks: Tasks, effectsFile: string): void {
	const effect = (task: TaskContext, step: string, durationMs: number): Promise<string> =>
		leaveTrace(effectsFile, task, step, durationMs);
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
