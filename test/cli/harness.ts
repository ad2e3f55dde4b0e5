import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach } from 'vitest';
import { DatabaseSync } from 'node:sqlite';

/** The command. */
export const ENTRY = join(import.meta.dirname, '../../src/cli/holdfast.ts');

/** A module that asks for things. */
export const QUESTIONS = join(import.meta.dirname, 'fixtures/questions.ts');

/** The module that most tests serve. */
export const REPORTS = join(import.meta.dirname, 'fixtures/reports.ts');

const DEADLINE_MS = 20_000;

const cleanups: (() => void)[] = [];
afterEach(() => {
	for (const cleanUp of cleanups.splice(0).reverse()) cleanUp();
});

/** An empty folder for one test. */
export function scratch(): string {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-test-'));
	cleanups.push(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
	return folder;
}

/** How to start the command. */
export interface RunOptions {
	readonly cwd?: string;
	readonly env?: Readonly<Record<string, string>>;
	/** Written to stdin, which stays open without it. */
	readonly input?: string;
}

/** The command, as it runs. */
export class Cli {
	readonly child: ChildProcess;
	stdout = '';
	stderr = '';
	readonly #closed: Promise<unknown>;

	constructor(
		args: readonly string[],
		{ cwd, env, input, entry = ENTRY }: RunOptions & { entry?: string } = {},
	) {
		// The test runner's own FORCE_COLOR contradicts it.
		const colourless = { ...process.env, FORCE_COLOR: undefined, NO_COLOR: '1', CI: '1', ...env };
		this.child = spawn(process.execPath, [entry, ...args], { cwd, env: colourless });
		this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
		this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
		this.#closed = once(this.child, 'close');
		// A child that ends early must not fail the test by its closed stdin.
		this.child.stdin?.on('error', () => {});
		if (input !== undefined) this.child.stdin?.end(input);
		cleanups.push(() => this.child.kill('SIGKILL'));
	}

	get pid(): number {
		return this.child.pid ?? 0;
	}

	signal(name: NodeJS.Signals): void {
		this.child.kill(name);
	}

	/** Waits for the end of the process; answers its exit code, or the signal that ended it. */
	async ended(): Promise<number | NodeJS.Signals | null> {
		await this.#closed;
		return this.child.exitCode ?? this.child.signalCode;
	}

	/** Waits until something was written to stderr. */
	said(pattern: RegExp): Promise<RegExpExecArray> {
		return until(`${pattern} on stderr`, () => {
			const found = pattern.exec(this.stderr);
			if (!found && this.child.exitCode !== null) throw new Error(`it ended: ${this.stderr}`);
			return found ?? undefined;
		});
	}
}

/** Runs the command to its end. */
export async function run(
	args: readonly string[],
	options: RunOptions = {},
): Promise<{ code: number | NodeJS.Signals | null; stdout: string; stderr: string }> {
	const cli = new Cli(args, { input: '', ...options });
	const code = await cli.ended();
	return { code, stdout: cli.stdout, stderr: cli.stderr };
}

/** Serves a module over HTTP on a free port. */
export async function serve(
	db: string,
	{
		module = REPORTS,
		args = [],
		...options
	}: RunOptions & { module?: string; args?: readonly string[] } = {},
): Promise<{ cli: Cli; url: string }> {
	const cli = new Cli(['serve', module, '--db', db, '--port', '0', ...args], options);
	const [, url = ''] = await cli.said(/(http:\/\/[^\s"]+)/);
	return { cli, url };
}

type Json = Record<string, unknown>;

/** The `_meta` of a client that declares Tasks and can be asked. */
export const META = {
	'io.modelcontextprotocol/protocolVersion': '2026-07-28',
	'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
	'io.modelcontextprotocol/clientCapabilities': {
		elicitation: { form: {} },
		extensions: { 'io.modelcontextprotocol/tasks': {} },
	},
};

/** One JSON-RPC request as a client of 2026-07-28 sends it; answers its result. */
export async function rpc(url: string, method: string, params: Json = {}): Promise<Json> {
	const name = params['name'] ?? params['taskId'];
	const response = await fetch(url, {
		method: 'POST',
		headers: {
			'content-type': 'application/json',
			accept: 'application/json, text/event-stream',
			'mcp-protocol-version': '2026-07-28',
			'mcp-method': method,
			...(typeof name === 'string' && { 'mcp-name': name }),
		},
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
	});
	const text = await response.text();
	const json = text.startsWith('{')
		? text
		: text
				.split('\n')
				.findLast((line) => line.startsWith('data:'))
				?.slice(5);
	const { result } = JSON.parse(json ?? '{}') as Json;
	if (typeof result !== 'object' || result === null) throw new Error(`${method}: ${response.status} ${text}`);
	return result as Json;
}

/** Calls a tool that becomes a task; answers its id. */
export async function startTask(url: string, name: string, args: Json): Promise<string> {
	const { taskId } = await rpc(url, 'tools/call', { name, arguments: args });
	if (typeof taskId !== 'string') throw new Error('the call gave no task');
	return taskId;
}

/** Waits until a task has this status, asking the server. */
export function untilStatus(url: string, taskId: string, status: string): Promise<Json> {
	return until(status, async () => {
		const task = await rpc(url, 'tasks/get', { taskId });
		return task['status'] === status ? task : undefined;
	});
}

/** Looks again and again until there is something. */
export async function until<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T> {
	const deadlineMs = Date.now() + DEADLINE_MS;
	for (;;) {
		const found = await look();
		if (found !== undefined) return found;
		if (Date.now() > deadlineMs) throw new Error(`${what} did not come within ${DEADLINE_MS} ms`);
		await wait(20);
	}
}

/** What `tasks … --json` prints. */
export async function tasksJson(db: string, ...args: readonly string[]): Promise<Json> {
	const { code, stdout, stderr } = await run(['tasks', ...args, '--db', db, '--json']);
	if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
	return JSON.parse(stdout) as Json;
}

/** Changes an SQLite file behind everybody's back. */
export function withSqlite(file: string, work: (db: DatabaseSync) => void): void {
	const db = new DatabaseSync(file);
	try {
		work(db);
	} finally {
		db.close();
	}
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}
