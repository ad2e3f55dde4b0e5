/** The pieces of code in docs/client.md are one program: it compiles, and does what the page says. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PageServer, root } from './page-server.ts';

/** The TypeScript of a page, one piece after the other. */
function programIn(page: string): string {
	const text = readFileSync(join(root, page), 'utf8');
	return Array.from(text.matchAll(/```ts\n([\s\S]*?)```/g), ([, piece = '']) => piece).join('\n');
}

test('the program in docs/client.md compiles, and runs against the server of the README', async ({
	onTestFinished,
}) => {
	const page = new PageServer();
	onTestFinished(() => page.close());
	page.write('server.ts', programIn('README.md'));
	page.write('host.ts', programIn('docs/client.md'));
	page.write('tsconfig.json', JSON.stringify({ extends: '../../../tsconfig.json', include: ['host.ts'] }));
	const compiler = join(root, 'node_modules/typescript/bin/tsc');
	const { stdout: faults } = spawnSync(process.execPath, [compiler, '-p', page.folder], { encoding: 'utf8' });
	expect(faults).toBe('');

	await page.serve();
	const host = spawn(process.execPath, ['host.ts', page.url], {
		cwd: page.folder,
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	onTestFinished(() => void host.kill('SIGKILL'));
	let said = '';
	host.stdout.on('data', (chunk: Buffer) => {
		said += chunk.toString();
	});
	const [code] = (await once(host, 'exit')) as [number | null];
	expect(code).toBe(0);
	expect(said).toMatch(/^question: Publish the report for July\?$/m);
	expect(said).toMatch(/^progress: .*Publish the report for July\?/m);
	expect(said).toMatch(/^July: \[ \{ type: 'text', text: 'Published' \} \]$/m);
	expect(said).toMatch(/^August: holdfast-task:/m);
	expect(said).toMatch(/^August: completed/m);
	expect(said).toMatch(
		/^later: Publish the report for September\?[\s\S]*^question: Publish the report for September\?/m,
	);
	expect(said).toMatch(/^September: .*'Published'/m);
	expect(said).toMatch(/^end: publish_report completed .* has ended\.$/m);
	expect(said).toMatch(/^October: ended$/m);
}, 60_000);
