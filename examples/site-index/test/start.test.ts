/** The other ways to start the example than main.ts over HTTP with private addresses allowed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { IndexServer } from './index-server.ts';
import { TreeSite } from './tree-site.ts';

const EXAMPLE = join(import.meta.dirname, '..');
const COMMAND = join(EXAMPLE, '../../dist/cli/holdfast.js');

let folder: string;
let site: TreeSite;
let child: ChildProcess | undefined;

beforeEach(async () => {
	folder = mkdtempSync(join(tmpdir(), 'site-index-'));
	site = await TreeSite.start();
});

afterEach(async () => {
	child?.kill('SIGKILL');
	await site.close();
	rmSync(folder, { recursive: true, force: true });
});

it.each([
	['main.ts --stdio', [join(EXAMPLE, 'main.ts'), '--stdio', '--allow-private']],
	['holdfast serve --stdio', [COMMAND, 'serve', join(EXAMPLE, 'server.ts'), '--stdio']],
])('%s reads a site for a client without tasks, and ends when that one leaves', async (_name, args) => {
	const started = spawn(process.execPath, [...args, '--db', join(folder, 'tasks.db')], {
		cwd: folder,
		env: { ...process.env, SITE_INDEX_DB: join(folder, 'sites.db'), SITE_INDEX_ALLOW_PRIVATE: '1' },
		stdio: ['pipe', 'pipe', 'ignore'],
	});
	child = started;
	const lines = createInterface(started.stdout)[Symbol.asyncIterator]();
	const call = {
		jsonrpc: '2.0',
		id: 1,
		method: 'tools/call',
		params: {
			name: 'submit_site',
			arguments: { url: site.url },
			_meta: {
				'io.modelcontextprotocol/protocolVersion': '2026-07-28',
				'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
				'io.modelcontextprotocol/clientCapabilities': {},
			},
		},
	};
	started.stdin.write(`${JSON.stringify(call)}\n`);
	const { value } = await lines.next();
	expect(JSON.parse(String(value))).toMatchObject({
		id: 1,
		result: { structuredContent: { pages: TreeSite.pages, state: 'complete' } },
	});
	const exited = once(started, 'exit');
	started.stdin.end();
	expect(await exited).toEqual([0, null]);
});

it('sends nothing to private addresses unless they are allowed', async () => {
	const server = await IndexServer.start(join(folder, 'tasks.db'));
	try {
		const { content, isError } = await server.result(await server.task('submit_site', { url: site.url }));
		expect(isError).toBe(true);
		expect(content[0]?.text).toMatch(/is not a public address|robots\.txt/u);
		expect(site.asked).toEqual([]);
	} finally {
		await server.end('SIGTERM');
	}
});

it('main.ts says what it needs', async () => {
	const started = spawn(process.execPath, [join(EXAMPLE, 'main.ts')], {
		stdio: ['ignore', 'ignore', 'pipe'],
	});
	child = started;
	const [chunk] = (await once(started.stderr, 'data')) as [Buffer];
	expect(chunk.toString()).toMatch(/^Usage: node examples\/site-index\/main\.ts --db FILE/);
	expect(await once(started, 'exit')).toEqual([2, null]);
});
