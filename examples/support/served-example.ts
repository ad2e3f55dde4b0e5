/** An example's program, serving over HTTP in a process of its own, and a client for it that is nothing but fetch. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import * as z from 'zod';

export type Json = Readonly<Record<string, unknown>>;

const VERSION = '2026-07-28';

/** What a client declares that knows Tasks. */
export const TASKS: Json = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

const rpcAnswer = z.object({
	result: z.looseObject({}).optional(),
	error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

/** A program that printed where it listens. */
export interface Started {
	readonly child: ChildProcess;
	readonly url: string;
}

/** Starts a program that takes `--db FILE --port N`, on a free port. */
export async function startExample(
	main: string,
	database: string,
	flags: readonly string[],
	env: NodeJS.ProcessEnv,
): Promise<Started> {
	const child = spawn(process.execPath, [main, '--db', database, '--port', '0', ...flags], {
		env,
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	let complaints = '';
	child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
	for await (const line of createInterface(child.stdout)) {
		const url = /http:\S+/.exec(line)?.[0];
		if (url !== undefined) return { child, url };
	}
	throw new Error(`The server did not start: ${complaints}`);
}

/** The process, and the requests of the protocol. */
export class ServedExample {
	readonly #child: ChildProcess;
	readonly url: string;
	#lastId = 0;

	constructor({ child, url }: Started) {
		this.#child = child;
		this.url = url;
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

	async answer(taskId: string, key: string, response: Json): Promise<void> {
		await this.rpc('tasks/update', { taskId, inputResponses: { [key]: response } });
	}

	async cancel(taskId: string): Promise<void> {
		await this.rpc('tasks/cancel', { taskId });
	}

	async rpc(
		method: string,
		params: Json,
		capabilities: Json = { ...TASKS, elicitation: { form: {} } },
	): Promise<z.infer<typeof rpcAnswer>> {
		this.#lastId += 1;
		const meta = {
			'io.modelcontextprotocol/protocolVersion': VERSION,
			'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
			'io.modelcontextprotocol/clientCapabilities': capabilities,
		};
		const response = await fetch(this.url, {
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
