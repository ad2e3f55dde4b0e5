/**
 * What the end of the serving process leaves of a crawl, and what the next process makes of it. A page that was
 * being fetched or stored when the process was killed may be fetched once more; no other may.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { usualOptions } from '../src/options.ts';
import { IndexServer } from './index-server.ts';
import { TreeSite } from './tree-site.ts';

const LONG = { timeout: 90_000 };

interface Place {
	readonly site: TreeSite;
	readonly serve: () => Promise<IndexServer>;
}

async function place(delayMs: number, { onTestFinished }: TestContext): Promise<Place> {
	const folder = mkdtempSync(join(tmpdir(), 'site-index-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const site = await TreeSite.start();
	onTestFinished(() => site.close());
	site.delayMs = delayMs;
	return {
		site,
		serve: async () => {
			const server = await IndexServer.start(join(folder, 'state', 'tasks.db'), '--allow-private');
			onTestFinished(() => server.end('SIGKILL'));
			return server;
		},
	};
}

const isReading = ({ statusMessage }: { statusMessage: string }): boolean =>
	statusMessage.startsWith('Crawling page');

describe.concurrent('a crawl', () => {
	it('goes on where it was after each SIGKILL', LONG, async (test) => {
		const { site, serve } = await place(150, test);
		let server = await serve();
		const taskId = await server.task('submit_site', { url: site.url });
		const kills = 2;
		for (let kill = 1; kill <= kills; kill += 1) {
			const enough = site.asked.length + 15 + Math.floor(Math.random() * 20);
			await server.until(taskId, 'some more pages', (task) => isReading(task) && site.asked.length >= enough);
			await server.end('SIGKILL');
			expect(site.asked.length).toBeLessThan(TreeSite.pages);
			server = await serve();
		}
		const { structuredContent } = await server.result(taskId);
		expect(structuredContent).toMatchObject({ pages: TreeSite.pages, state: 'complete' });
		console.log(`killed ${kills} times: ${site.repeats} of ${TreeSite.pages} pages fetched again`);
		expect(site.repeats).toBeLessThanOrEqual(kills * usualOptions.inFlight);
		const { structuredContent: found } = await server.call('ask_site', { question: 'leaf99' });
		expect(found).toMatchObject({ passages: [{ address: `${site.url}9/9/` }] });
	});

	it('is handed over by an orderly end, with no page fetched twice', LONG, async (test) => {
		const { site, serve } = await place(400, test);
		const before = await serve();
		const taskId = await before.task('submit_site', { url: site.url });
		await before.until(taskId, 'progress', isReading);
		await before.end('SIGTERM');
		expect(site.asked.length).toBeLessThan(TreeSite.pages);
		site.delayMs = 0;
		const server = await serve();
		expect((await server.result(taskId)).structuredContent).toMatchObject({ pages: TreeSite.pages });
		expect(site.repeats).toBe(0);
	});

	it('keeps its question open across a SIGKILL, with no page fetched twice', LONG, async (test) => {
		const { site, serve } = await place(0, test);
		const before = await serve();
		const taskId = await before.task('submit_site', { url: site.url, askAbove: 50 });
		await before.until(taskId, 'the question', ({ status }) => status === 'input_required');
		const asked = site.asked.length;
		await before.end('SIGKILL');
		const server = await serve();
		const task = await server.until(taskId, 'the question', ({ status }) => status === 'input_required');
		const [key = ''] = Object.keys(task.inputRequests ?? {});
		expect(site.asked).toHaveLength(asked);
		await server.answer(taskId, key, { action: 'accept', content: { goOn: true } });
		expect((await server.result(taskId)).structuredContent).toMatchObject({ pages: TreeSite.pages });
		expect(site.repeats).toBe(0);
	});
});
