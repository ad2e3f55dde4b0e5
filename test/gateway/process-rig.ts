/** `holdfast proxy` as a host starts it: a process of its own, spoken to on its stdin and stdout. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import { eventually } from '../field/harness.ts';
import { DECLARES_TASKS, envelope } from '../field/wire.ts';

const HOLDFAST = join(import.meta.dirname, '../../src/cli/holdfast.ts');
const HOST = join(import.meta.dirname, 'fixtures/host.ts');

/** A process that answers messages, one a line. */
export class ProxyProcess {
	readonly child: ChildProcess;
	readonly messages: JsonObject[] = [];
	stderr = '';
	#lastId = 0;

	/**
	 * @param server - what stands behind `holdfast proxy`: a URL, or `--` and a command.
	 * @param state - folder for what the proxy keeps.
	 */
	constructor(
		server: readonly string[],
		{ state, inHost = false }: { readonly state: string; readonly inHost?: boolean },
	) {
		const proxy = [HOLDFAST, 'proxy', '--budget-ms', '60000', ...server];
		const args = inHost ? [HOST, process.execPath, ...proxy] : proxy;
		this.child = spawn(process.execPath, args, { env: { ...process.env, XDG_STATE_HOME: state } });
		const { stdout, stderr, stdin } = this.child;
		if (!stdout || !stderr || !stdin) throw new Error('the process has no pipes');
		stdin.on('error', () => {});
		stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
		createInterface({ input: stdout }).on('line', (line) =>
			this.messages.push(JSON.parse(line) as JsonObject),
		);
		onTestFinished(() => this.kill());
	}

	async request(method: string, params: JsonObject = {}): Promise<JsonObject> {
		const id = ++this.#lastId;
		const body = { jsonrpc: '2.0', id, method, params: { _meta: envelope(DECLARES_TASKS), ...params } };
		this.child.stdin?.write(`${JSON.stringify(body)}\n`);
		const answer = await eventually(
			() => this.messages.find((message) => message['id'] === id),
			`the answer to ${method} (${this.stderr})`,
			20_000,
		);
		if (isJsonObject(answer['result'])) return answer['result'];
		throw new Error(JSON.stringify(answer['error']));
	}

	call(name: string, args: JsonObject = {}): Promise<JsonObject> {
		return this.request('tools/call', { name, arguments: args });
	}

	get(taskId: string): Promise<JsonObject> {
		return this.request('tasks/get', { taskId });
	}

	/** Kills the process without a word. */
	async kill(): Promise<void> {
		if (this.child.exitCode !== null || this.child.signalCode !== null) return;
		const gone = once(this.child, 'exit');
		this.child.kill('SIGKILL');
		await gone;
	}
}
