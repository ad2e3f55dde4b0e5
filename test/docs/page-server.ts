/** A server made of what a page of the documentation shows, started as the page says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import { httpWire, type Wire } from '../support/wire.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A folder below the package, so that `holdfast/server` is this package's build. */
export class PageServer {
	readonly folder = mkdtempSync(join(root, 'test/docs/.page-'));
	/** Where it listens, once it does. */
	url = '';
	#child: ChildProcess | undefined;

	write(file: string, program: string): void {
		writeFileSync(join(this.folder, file), program);
	}

	/** `holdfast serve server.ts --db tasks.db`, on a free port. */
	async serve(): Promise<Wire> {
		const child = spawn(
			process.execPath,
			[join(root, 'dist/cli/holdfast.js'), 'serve', 'server.ts', '--db', 'tasks.db', '--port', '0'],
			{ cwd: this.folder, stdio: ['ignore', 'ignore', 'pipe'] },
		);
		this.#child = child;
		this.url = await urlOf(child);
		return httpWire(this.url);
	}

	async kill(): Promise<void> {
		const child = this.#child;
		if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
		const ended = new Promise((resolve) => child.once('exit', resolve));
		child.kill('SIGKILL');
		await ended;
	}

	async close(): Promise<void> {
		await this.kill();
		rmSync(this.folder, { recursive: true, force: true });
	}
}

/** The text of a tool's result. */
export function textOf(result: JsonObject | undefined): unknown {
	const content = result?.['content'];
	const first: unknown = Array.isArray(content) ? content[0] : undefined;
	return isJsonObject(first) ? first['text'] : undefined;
}

/** The text of a task's result, once it has one. */
export function resultText(wire: Wire, taskId: string): Promise<unknown> {
	return poll(async () => {
		const task: unknown = (await wire.request('tasks/get', { taskId })).result;
		const ended = isJsonObject(task) ? task['result'] : undefined;
		return isJsonObject(ended) ? textOf(ended) : undefined;
	});
}

export async function poll<T>(look: () => Promise<T | undefined>): Promise<T> {
	for (const deadlineMs = performance.now() + 20_000; performance.now() < deadlineMs; ) {
		const found = await look();
		if (found !== undefined) return found;
	}
	throw new Error('it did not happen within 20 s');
}

function urlOf(server: ChildProcess): Promise<string> {
	return new Promise((resolve, reject) => {
		let log = '';
		server.stderr?.on('data', (chunk: Buffer) => {
			log += chunk.toString();
			const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(log)?.[0];
			if (url !== undefined) resolve(url);
		});
		server.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${log}`)));
	});
}
