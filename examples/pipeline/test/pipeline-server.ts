/** The served pipeline example. */
import { delimiter, dirname, join } from 'node:path';
import * as z from 'zod';
import { type Json, ServedExample, startExample } from '../../support/served-example.ts';
import { pipelineResult } from '../pipeline-run.ts';
import { DEADLINE_MS, until } from './until.ts';
import type { Checkout } from './scratch.ts';

const MAIN = join(import.meta.dirname, '../main.ts');
const toolResult = z.object({
	content: z.array(z.object({ text: z.string() })),
	// Only run_pipeline's is looked at.
	structuredContent: pipelineResult.optional().catch(undefined),
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
export class PipelineServer extends ServedExample {
	static async start(database: string, roots: string): Promise<PipelineServer> {
		return new PipelineServer(
			await startExample(MAIN, database, [], { ...plainEnvironment(), PIPELINE_ROOTS: roots }),
		);
	}

	/** Starts a pipeline as a task. */
	async run(checkout: Checkout, args: Json = {}): Promise<string> {
		const { result, error } = await this.rpc('tools/call', {
			name: 'run_pipeline',
			arguments: { checkout: checkout.folder, ...args },
		});
		if (result?.['resultType'] !== 'task') throw new Error(`No task: ${JSON.stringify(result ?? error)}`);
		return taskView.parse(result).taskId;
	}

	/** Calls a tool as a client that knows nothing of tasks. */
	async call(name: string, args: Json): Promise<ToolResult> {
		const { result, error } = await this.rpc('tools/call', { name, arguments: args }, {});
		if (!result) throw new Error(JSON.stringify(error));
		return toolResult.parse(result);
	}

	async get(taskId: string): Promise<TaskView> {
		return taskView.parse((await this.rpc('tasks/get', { taskId })).result);
	}

	/** Waits until a task is in this status. */
	until(taskId: string, status: string, deadlineMs = DEADLINE_MS): Promise<TaskView> {
		return this.untilTask(taskId, `status ${status}`, (task) => task.status === status, deadlineMs);
	}

	untilTask(
		taskId: string,
		what: string,
		isSo: (task: TaskView) => boolean,
		deadlineMs = DEADLINE_MS,
	): Promise<TaskView> {
		let last: TaskView | undefined;
		return until(
			() => `${what}; last seen: ${JSON.stringify(last)}`,
			async () => {
				last = await this.get(taskId);
				return isSo(last) ? last : undefined;
			},
			deadlineMs,
		);
	}

	/** The end of a task that is to complete. */
	async result(taskId: string, deadlineMs = DEADLINE_MS): Promise<ToolResult> {
		const { result } = await this.until(taskId, 'completed', deadlineMs);
		if (!result) throw new Error('A completed task has no result');
		return result;
	}
}

/** The environment without what the test runner put there, which stages would inherit. */
function plainEnvironment(): NodeJS.ProcessEnv {
	const kept = Object.entries(process.env).filter(
		([name]) => !/^(VITEST|NODE_|TEST$|DEV$|PROD$|MODE$|SSR$)/.test(name),
	);
	const path = [dirname(process.execPath), process.env['PATH']].join(delimiter);
	return { ...Object.fromEntries(kept), PATH: path };
}
