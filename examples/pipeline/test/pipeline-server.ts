/** A served pipeline example in a process of its own, and a client for it that is nothing but fetch. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import * as z from 'zod';
import { pipelineResult } from '../pipeline-run.ts';
import { DEADLINE_MS, until } from './until.ts';
import type { Checkout } from './scratch.ts';

const MAIN = join(import.meta.dirname, '../main.ts');
const VERSION = '2026-07-28';
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

const rpcAnswer = z.object({
	result: z.looseObject({}).optional(),
	error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

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
export class PipelineServer {
	readonly #child: ChildProcess;
	readonly #url: string;
	#lastId = 0;

	private constructor(child: ChildProcess, url: string) {
		this.#child = child;
		this.#url = url;
	}

	static async start(database: string, roots: string): Promise<PipelineServer> {
		const child = spawn(process.execPath, [MAIN, '--db', database, '--port', '0'], {
			env: { ...plainEnvironment(), PIPELINE_ROOTS: roots },
			stdio: ['ignore', 'pipe', 'pipe'],
		});
		let complaints = '';
		child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
		for await (const line of createInterface(child.stdout)) {
			const url = /http:\S+/.exec(line)?.[0];
			if (url !== undefined) return new PipelineServer(child, url);
		}
		throw new Error(`The server did not start: ${complaints}`);
	}

	get pid(): number {
		if (this.#child.pid === undefined) throw new Error('The server has no process');
		return this.#child.pid;
	}

	/** Ends the process and waits for its end. */
	async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
		if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
		const ended = once(this.#child, 'exit');
		this.#child.kill(signal);
		await ended;
	}

	/** Starts a pipeline as a task. */
	async run(checkout: Checkout, args: Readonly<Record<string, unknown>> = {}): Promise<string> {
		const { result, error } = await this.rpc('tools/call', {
			name: 'run_pipeline',
			arguments: { checkout: checkout.folder, ...args },
		});
		if (result?.['resultType'] !== 'task') throw new Error(`No task: ${JSON.stringify(result ?? error)}`);
		return taskView.parse(result).taskId;
	}

	/** Calls a tool as a client that knows nothing of tasks. */
	async call(name: string, args: Readonly<Record<string, unknown>>): Promise<ToolResult> {
		const { result, error } = await this.rpc('tools/call', { name, arguments: args }, {});
		if (!result) throw new Error(JSON.stringify(error));
		return toolResult.parse(result);
	}

	async get(taskId: string): Promise<TaskView> {
		return taskView.parse((await this.rpc('tasks/get', { taskId })).result);
	}

	async answer(taskId: string, key: string, response: Readonly<Record<string, unknown>>): Promise<void> {
		await this.rpc('tasks/update', { taskId, inputResponses: { [key]: response } });
	}

	async cancel(taskId: string): Promise<void> {
		await this.rpc('tasks/cancel', { taskId });
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

	async rpc(
		method: string,
		params: Readonly<Record<string, unknown>>,
		capabilities: Readonly<Record<string, unknown>> = { ...TASKS, elicitation: { form: {} } },
	): Promise<z.infer<typeof rpcAnswer>> {
		this.#lastId += 1;
		const meta = {
			'io.modelcontextprotocol/protocolVersion': VERSION,
			'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
			'io.modelcontextprotocol/clientCapabilities': capabilities,
		};
		const response = await fetch(this.#url, {
			method: 'POST',
			headers: {
				'content-type': 'application/json',
				accept: 'application/json, text/event-stream',
				'mcp-protocol-version': VERSION,
				'mcp-method': method,
				'mcp-name': String(params['name'] ?? params['taskId']),
			},
			body: JSON.stringify({ jsonrpc: '2.0', id: this.#lastId, method, params: { ...params, _meta: meta } }),
		});
		const text = await response.text();
		// An event stream ends with the answer; what comes before it are notifications.
		const last = text.startsWith('{')
			? text
			: text
					.trim()
					.split('\n')
					.findLast((line) => line.startsWith('data:'));
		return rpcAnswer.parse(JSON.parse((last ?? '').replace(/^data:/, '')));
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
