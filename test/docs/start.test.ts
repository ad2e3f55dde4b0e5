/** Each step of docs/start.md does what the page says of it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PageServer, poll, resultText, root, textOf } from './page-server.ts';
import type { Wire } from '../support/wire.ts';

const [reading = '', ...steps] = [
	...readFileSync(join(root, 'docs/start.md'), 'utf8').matchAll(/```ts\n([\s\S]*?)```/g),
].map(([, program = '']) => program);

const PAGES = 12;

let page: PageServer;
let site: Server;
let url: string;
/** Which pages were asked for. */
let asked: string[];
let delayMs: number;

beforeEach(async () => {
	asked = [];
	delayMs = 0;
	site = createServer((request, response) => {
		asked.push(request.url ?? '');
		const next = Number(request.url?.slice(1)) + 1;
		const link = next < PAGES ? `<a class="next" href="/${next}">on</a>` : '';
		setTimeout(() => response.end(`<title>Page ${next - 1}</title><p>word${next - 1} ${link}`), delayMs);
	});
	await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
	url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/0`;
	page = new PageServer();
	page.write('page.ts', reading);
});

afterEach(async () => {
	await page.close();
	site.closeAllConnections();
	site.close();
});

const serve = (step: number): Promise<Wire> => {
	page.write('server.ts', steps[step - 1] ?? '');
	return page.serve();
};

const submit = async (wire: Wire): Promise<string> => {
	const { result } = await wire.request('tools/call', { name: 'submit_site', arguments: { url } });
	expect(result).toMatchObject({ resultType: 'task' });
	return result?.['taskId'] as string;
};

const killInTheMiddle = async (): Promise<void> => {
	await vi.waitFor(() => expect(asked.length).toBeGreaterThanOrEqual(PAGES - 3), { timeout: 20_000 });
	await page.kill();
	expect(asked.length).toBeLessThan(PAGES);
};

test('the programs of docs/start.md compile as strictly as the project does', () => {
	page.write('tsconfig.json', JSON.stringify({ extends: join(root, 'tsconfig.json'), include: ['*.ts'] }));
	for (const [at, program] of steps.entries()) page.write(`server-${at + 1}.ts`, program);
	expect(steps).toHaveLength(4);
	execFileSync(join(root, 'node_modules/.bin/tsc'), ['--noEmit', '-p', page.folder], { encoding: 'utf8' });
});

test('step 1: a short call is answered at once, a long one is a task that tells how far it is', async () => {
	const wire = await serve(1);
	const { result } = await wire.request('tools/call', { name: 'submit_site', arguments: { url } });
	expect(textOf(result)).toBe(`${PAGES} pages read`);
	delayMs = 200;
	const taskId = await submit(wire);
	const { result: task } = await wire.request('tasks/get', { taskId });
	expect(task?.['statusMessage']).toMatch(/^Crawling page \d+ of \d+/);
	expect(await resultText(wire, taskId)).toBe(`${PAGES} pages read`);
});

test('step 1: a kill in the middle ends the task with an outcome that is unknown', async () => {
	delayMs = 200;
	const taskId = await submit(await serve(1));
	await killInTheMiddle();
	const wire = await serve(1);
	const task = await poll(async () => {
		const { result } = await wire.request('tasks/get', { taskId });
		return result?.['status'] === 'failed' ? result : undefined;
	});
	expect(JSON.stringify(task)).toContain('unknown');
});

test('step 2: after a kill only the page that was being read is fetched again', async () => {
	delayMs = 200;
	const taskId = await submit(await serve(2));
	await killInTheMiddle();
	expect(await resultText(await serve(2), taskId)).toBe(`${PAGES} pages read`);
	expect(asked.length).toBeLessThanOrEqual(PAGES + 1);
});

test.each([
	['accept', PAGES],
	['decline', 5],
])('step 3: the task asks, and %s decides how far it reads', async (action, pages) => {
	const wire = await serve(3);
	const taskId = await submit(wire);
	await wire.request('tasks/update', { taskId, inputResponses: { 'go on': { action, content: {} } } });
	expect(await resultText(wire, taskId)).toBe(`${pages} pages read`);
});

test('step 4: the pages outlive a kill and the task, and can be asked for', async () => {
	delayMs = 200;
	const taskId = await submit(await serve(4));
	await killInTheMiddle();
	const wire = await serve(4);
	expect(await resultText(wire, taskId)).toBe(`${PAGES} pages can be searched`);
	expect(asked.length).toBeLessThanOrEqual(PAGES + 1);
	const { result } = await wire.request('tools/call', { name: 'ask_site', arguments: { word: 'word7' } });
	expect(textOf(result)).toBe(url.replace('/0', '/7'));
});
