import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import type { TaskServerFactory } from '../server/runtime.ts';
import { McpServer } from '../server/sdk.ts';
import { DEMO_JOURNAL_ENV, DEMO_STEPS, DEMO_TOOL, STEP_MS } from './demo-steps.ts';

/** What `holdfast demo` serves: one slow tool of five steps and a question. */
export const server: TaskServerFactory = (tasks) => {
	const mcp = new McpServer({ name: 'holdfast-demo', version: '1.0.0' });
	mcp.registerTool(
		DEMO_TOOL,
		{
			description: 'Builds the report of a month, step by step, and publishes it if that is wanted.',
			inputSchema: z.object({ month: z.string() }),
		},
		tasks.handler<{ month: string }>(
			{
				support: 'required',
				syncWindowMs: 0,
				estimateMs: DEMO_STEPS.length * STEP_MS,
				minPollIntervalMs: 500,
			},
			async ({ month }, task) => {
				let rows = 0;
				for (const [index, name] of DEMO_STEPS.entries()) {
					rows += await task.step(name, () => {
						// In here, so that a step that is only looked up after a crash says nothing.
						task.progress({ progress: index, total: DEMO_STEPS.length, message: name });
						return work(name, task.signal);
					});
				}
				task.progress({
					progress: DEMO_STEPS.length,
					total: DEMO_STEPS.length,
					message: 'the report is ready',
				});
				const answer = await task.requireInput('publish', {
					mode: 'form',
					message: 'Publish the report?',
					requestedSchema: {
						type: 'object',
						properties: { publish: { type: 'boolean', title: 'Publish' } },
						required: ['publish'],
					},
				});
				const published = answer.action === 'accept' && answer.content?.['publish'] === true;
				const text = `The report for ${month} has ${rows} rows and is ${published ? 'published' : 'kept as a draft'}.`;
				return { content: [{ type: 'text', text }] };
			},
		),
	);
	return mcp;
};

/** Stands for slow work with an effect outside: it leaves a line when it begins and one when it ends. */
async function work(name: string, signal: AbortSignal): Promise<number> {
	note('began', name);
	await wait(STEP_MS, undefined, { signal });
	note('ended', name);
	return 100 + name.length;
}

function note(what: 'began' | 'ended', step: string): void {
	const file = process.env[DEMO_JOURNAL_ENV];
	if (file !== undefined)
		appendFileSync(file, `${JSON.stringify({ what, step, pid: process.pid, atMs: Date.now() })}\n`);
}
