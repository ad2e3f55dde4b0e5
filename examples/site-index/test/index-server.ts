/** The served site index. */
import { join } from 'node:path';
import { vi } from 'vitest';
import * as z from 'zod';
import { type Json, ServedExample, startExample, TASKS } from '../../support/served-example.ts';

const MAIN = join(import.meta.dirname, '../main.ts');
const DEADLINE_MS = 40_000;

const toolResult = z.object({
	content: z.array(z.object({ text: z.string() })),
	structuredContent: z.looseObject({}).optional(),
	isError: z.boolean().optional(),
});

const taskView = z.object({
	taskId: z.string(),
	status: z.string(),
	statusMessage: z.string().default(''),
	inputRequests: z
		.record(z.string(), z.object({ params: z.looseObject({ message: z.string() }) }))
		.optional(),
	result: toolResult.optional(),
});

export type TaskView = z.infer<typeof taskView>;
export type ToolResult = z.infer<typeof toolResult>;

/** The example's main.ts, serving over HTTP. */
export class IndexServer extends ServedExample {
	static async start(database: string, ...flags: readonly string[]): Promise<IndexServer> {
		return new IndexServer(await startExample(MAIN, database, flags, process.env));
	}

	/** Calls a tool that must answer with a task. */
	async task(name: string, args: Json, elicitation: Json = { elicitation: { form: {} } }): Promise<string> {
		const { result, error } = await this.rpc(
			'tools/call',
			{ name, arguments: args },
			{ ...TASKS, ...elicitation },
		);
		if (result?.['resultType'] !== 'task') throw new Error(`No task: ${JSON.stringify(result ?? error)}`);
		return taskView.parse(result).taskId;
	}

	/** Calls a tool that must answer at once, though tasks are declared. */
	async call(name: string, args: Json): Promise<ToolResult> {
		const { result, error } = await this.rpc('tools/call', { name, arguments: args });
		if (!result) throw new Error(JSON.stringify(error));
		return toolResult.parse(result);
	}

	async get(taskId: string): Promise<TaskView> {
		return taskView.parse((await this.rpc('tasks/get', { taskId })).result);
	}

	/** Waits until a task is as wanted. */
	async until(taskId: string, what: string, isSo: (task: TaskView) => boolean): Promise<TaskView> {
		return vi.waitFor(
			async () => {
				const task = await this.get(taskId);
				if (!isSo(task)) throw new Error(`Waited in vain for ${what}; last seen: ${JSON.stringify(task)}`);
				return task;
			},
			{ timeout: DEADLINE_MS, interval: 30 },
		);
	}

	/** The end of a task that is to complete. */
	async result(taskId: string): Promise<ToolResult> {
		const { result } = await this.until(taskId, 'the end', ({ status }) => status === 'completed');
		if (!result) throw new Error('A completed task has no result');
		return result;
	}
}
