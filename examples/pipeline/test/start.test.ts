/** The other ways to start the example than main.ts over HTTP. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Scratch } from './scratch.ts';

const EXAMPLE = join(import.meta.dirname, '..');
const COMMAND = join(EXAMPLE, '../../dist/cli/holdfast.js');

const REQUEST = {
	jsonrpc: '2.0',
	id: 1,
	method: 'tools/call',
	params: {
		name: 'run_pipeline',
		_meta: {
			'io.modelcontextprotocol/protocolVersion': '2026-07-28',
			'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
			'io.modelcontextprotocol/clientCapabilities': {},
		},
	},
};

let scratch: Scratch;
let child: ChildProcess | undefined;

beforeEach(() => {
	scratch = new Scratch();
});

afterEach(() => {
	child?.kill('SIGKILL');
	scratch.remove();
});

it.each([
	['main.ts --stdio', [join(EXAMPLE, 'main.ts'), '--stdio']],
	['holdfast serve --stdio', [COMMAND, 'serve', join(EXAMPLE, 'server.ts'), '--stdio']],
])('%s runs a pipeline and ends when its client leaves', async (_name, args) => {
	const checkout = scratch.checkout('stages: [{ name: only, run: touch ran; echo hello }]');
	const started = spawn(process.execPath, [...args, '--db', scratch.database], {
		cwd: scratch.folder,
		stdio: ['pipe', 'pipe', 'ignore'],
	});
	child = started;
	const lines = createInterface(started.stdout)[Symbol.asyncIterator]();
	const call = { ...REQUEST, params: { ...REQUEST.params, arguments: { checkout: checkout.folder } } };
	started.stdin.write(`${JSON.stringify(call)}\n`);
	const { value } = await lines.next();
	expect(JSON.parse(String(value))).toMatchObject({
		id: 1,
		result: { structuredContent: { status: 'passed' } },
	});
	const exited = once(started, 'exit');
	started.stdin.end();
	expect(await exited).toEqual([0, null]);
});

it('main.ts says what it needs', async () => {
	const started = spawn(process.execPath, [join(EXAMPLE, 'main.ts')], {
		stdio: ['ignore', 'ignore', 'pipe'],
	});
	child = started;
	const [chunk] = (await once(started.stderr, 'data')) as [Buffer];
	expect(chunk.toString()).toMatch(/^Usage: node examples\/pipeline\/main\.ts --db FILE/);
	expect(await once(started, 'exit')).toEqual([2, null]);
});
