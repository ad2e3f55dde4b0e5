/** A served site index in a process of its own, and a client for it that is nothing but fetch. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { vi } from 'vitest';
import * as z from 'zod';

const MAIN = join(import.meta.dirname, '../main.ts');
const VERSION = '2026-07-28';
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
const DEADLINE_MS = 40_000;

const rpcAnswer = z.object({
	result: z.looseObject({}).optional(),
	error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

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

type Json = Readonly<Record<string, unknown>>;
export type TaskView = z.infer<typeof taskView>;
export type ToolResult = z.infer<typeof toolResult>;

/** The example's main.ts, serving over HTTP. */
export class IndexServer {
	readonly #child: ChildProcess;
	readonly #url: string;
	#lastId = 0;

	private constructor(child: ChildProcess, url: string) {
		this.#child = child;
		this.#url = url;
	}

	static async start(database: string, ...flags: readonly string[]): Promise<IndexServer> {
		const child = spawn(process.execPath, [MAIN, '--db', database, '--port', '0', ...flags], {
			stdio: ['ignore', 'pipe', 'pipe'],
		});
		let complaints = '';
		child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
		for await (const line of createInterface(child.stdout)) {
			const url = /http:\S+/.exec(line)?.[0];
			if (url !== undefined) return new IndexServer(child, url);
		}
		throw new Error(`The server did not start: ${complaints}`);
	}

	/** Ends the process and waits for its end. */
	async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
		if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
		const ended = once(this.#child, 'exit');
		this.#child.kill(signal);
		await ended;
	}

	/** Calls a tool that must answer with a task. */
	async task(name: string, args: Json, elicitation: Json = { elicitation: { form: {} } }): Promise<string> {
		const { result, error } = await this.rpc('tools/call', { name, arguments: args }, elicitation);
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

	async answer(taskId: string, key: string, response: Json): Promise<void> {
		await this.rpc('tasks/update', { taskId, inputResponses: { [key]: response } });
	}

	async cancel(taskId: string): Promise<void> {
		await this.rpc('tasks/cancel', { taskId });
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

	async rpc(
		method: string,
		params: Json,
		capabilities: Json = { elicitation: { form: {} } },
	): Promise<z.infer<typeof rpcAnswer>> {
		this.#lastId += 1;
		const meta = {
			'io.modelcontextprotocol/protocolVersion': VERSION,
			'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
			'io.modelcontextprotocol/clientCapabilities': { ...TASKS, ...capabilities },
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
		const lines = text.trim().split('\n');
		const last = text.startsWith('{') ? text : lines.findLast((line) => line.startsWith('data:'));
		return rpcAnswer.parse(JSON.parse((last ?? '').replace(/^data:/, '')));
	}
}
