import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import { httpWire } from '../support/wire.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const stops: (() => void)[] = [];
afterEach(() => {
	for (const stop of stops.splice(0)) stop();
});

test('the program in the README runs as it stands there, with the command below it', async () => {
	const readme = readFileSync(join(root, 'README.md'), 'utf8');
	const program = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
	// Below the package, so that `holdfast/server` is this package's build.
	const folder = mkdtempSync(join(root, 'test/docs/.readme-'));
	stops.push(() => rmSync(folder, { recursive: true, force: true }));
	writeFileSync(join(folder, 'server.ts'), program);
	const server = spawn(
		process.execPath,
		[join(root, 'dist/cli/holdfast.js'), 'serve', 'server.ts', '--db', 'tasks.db', '--port', '0'],
		{ cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
	);
	stops.push(() => void server.kill('SIGKILL'));
	const wire = httpWire(await urlOf(server));
	const { result } = await wire.request('tools/call', {
		name: 'publish_report',
		arguments: { month: 'July' },
	});
	expect(result).toMatchObject({ resultType: 'task', status: 'input_required' });
	const taskId = result?.['taskId'] as string;
	await wire.request('tasks/update', {
		taskId,
		inputResponses: { publish: { action: 'accept', content: {} } },
	});
	const text = await poll(async () => {
		const task: unknown = (await wire.request('tasks/get', { taskId })).result;
		const ended = isJsonObject(task) ? task['result'] : undefined;
		return isJsonObject(ended) ? textOf(ended) : undefined;
	});
	expect(text).toBe('Published');
});

function textOf(result: JsonObject): unknown {
	const content = result['content'];
	const first: unknown = Array.isArray(content) ? content[0] : undefined;
	return isJsonObject(first) ? first['text'] : undefined;
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

async function poll<T>(look: () => Promise<T | undefined>): Promise<T> {
	for (const deadlineMs = performance.now() + 20_000; performance.now() < deadlineMs; ) {
		const found = await look();
		if (found !== undefined) return found;
	}
	throw new Error('it did not happen within 20 s');
}
