/** The tools as a client sees them: over HTTP, as raw JSON-RPC. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { IndexServer } from './index-server.ts';
import { TreeSite } from './tree-site.ts';

const folder = mkdtempSync(join(tmpdir(), 'site-index-'));
let server: IndexServer;
let site: TreeSite;

beforeAll(async () => {
	server = await IndexServer.start(join(folder, 'tasks.db'), '--allow-private');
});

afterAll(async () => {
	await server.end('SIGTERM');
	rmSync(folder, { recursive: true, force: true });
});

beforeEach(async () => {
	site = await TreeSite.start();
});

afterEach(() => site.close());

/** Indexes the site and tells its number. */
const submit = async (args: Readonly<Record<string, unknown>> = {}): Promise<number> => {
	const { structuredContent } = await server.result(
		await server.task('submit_site', { url: site.url, ...args }),
	);
	return Number(structuredContent?.['siteId']);
};

const firstHit = async (question: string, siteId: number): Promise<unknown> => {
	const { structuredContent } = await server.call('ask_site', { question, siteId });
	const passages = structuredContent?.['passages'];
	return Array.isArray(passages) ? passages[0] : undefined;
};

describe('submit_site', () => {
	it('is a task that reads the whole site, tells how far it is, and can be asked about afterwards', async () => {
		site.delayMs = 120;
		const taskId = await server.task('submit_site', { url: site.url });
		const { statusMessage } = await server.until(taskId, 'progress', (task) =>
			/^Crawling page \d+ of (\d+)/u.test(task.statusMessage),
		);
		const { statusMessage: later } = await server.until(taskId, 'more of it', (task) =>
			/^Crawling page \d+ of 111 \(\d+%/u.test(task.statusMessage),
		);
		expect(totalIn(statusMessage)).toBeLessThanOrEqual(totalIn(later));
		const { content, structuredContent, isError } = await server.result(taskId);
		expect(isError).toBeUndefined();
		expect(content[0]?.text).toBe(`111 pages of ${site.url} can be searched.`);
		expect(structuredContent).toMatchObject({
			startAddress: site.url,
			pages: 111,
			state: 'complete',
			unread: 0,
		});
		expect(site.repeats).toBe(0);
		const siteId = Number(structuredContent?.['siteId']);
		expect(await firstHit('leaf42', siteId)).toMatchObject({ address: expect.stringContaining('/4/2/') });
	});

	it('says that it stopped at the caller’s own limit', async () => {
		const { content, structuredContent } = await server.result(
			await server.task('submit_site', { url: site.url, maxPages: 12 }),
		);
		expect(structuredContent).toMatchObject({ pages: 12, state: 'stopped at a limit' });
		expect(content[0]?.text).toContain('The crawl stopped at your limit of 12 pages');
	});

	it.each([
		['all of it', { goOn: true }, 111],
		['a part of it', { goOn: true, maxPages: 40 }, 40],
		['no more than the size', { goOn: false }, 20],
	])('asks before it goes on past a size: %s', async (_what, content, pages) => {
		const taskId = await server.task('submit_site', { url: site.url, askAbove: 20 });
		const task = await server.until(taskId, 'the question', ({ status }) => status === 'input_required');
		const [[key, { params }] = ['', { params: { message: '' } }]] = Object.entries(task.inputRequests ?? {});
		expect(params.message).toMatch(/has at least \d+ pages. Read them all\?$/u);
		await server.answer(taskId, key, { action: 'accept', content });
		expect((await server.result(taskId)).structuredContent).toMatchObject({ pages });
		expect(site.asked).toHaveLength(pages);
		expect(site.repeats).toBe(0);
	});

	it('reads up to the size when the client cannot be asked', async () => {
		const taskId = await server.task('submit_site', { url: site.url, askAbove: 20 }, {});
		expect((await server.result(taskId)).structuredContent).toMatchObject({
			pages: 20,
			state: 'stopped at a limit',
		});
	});

	it('refuses what is no address, and a site that another task reads', async () => {
		expect(await server.call('submit_site', { url: 'ftp://nowhere' })).toMatchObject({ isError: true });
		site.delayMs = 300;
		const taskId = await server.task('submit_site', { url: site.url });
		await server.until(taskId, 'progress', (task) => task.statusMessage.startsWith('Crawling'));
		const { content, isError } = await server.result(await server.task('submit_site', { url: site.url }));
		expect(isError).toBe(true);
		expect(content[0]?.text).toContain(`is being read already, by task ${taskId}`);
		await server.cancel(taskId);
	});

	it('stops when it is cancelled, and goes on when it is submitted again', async () => {
		site.delayMs = 150;
		const taskId = await server.task('submit_site', { url: site.url });
		await server.until(taskId, 'some pages', () => site.asked.length > 30);
		await server.cancel(taskId);
		await server.until(taskId, 'the cancel', ({ status }) => status === 'cancelled');
		const asked = site.asked.length;
		await new Promise((resolve) => setTimeout(resolve, 300));
		expect(site.asked).toHaveLength(asked);
		expect(asked).toBeLessThan(TreeSite.pages);
		expect(await listed()).toContainEqual(expect.objectContaining({ state: 'unfinished' }));
		await submit();
		expect(await listed()).toContainEqual(expect.objectContaining({ pages: 111, state: 'complete' }));
	});
});

describe('the index', () => {
	it('is brought up to date at once when that is quick, by asking only for what changed', async () => {
		const siteId = await submit();
		site.forgetAsked();
		site.news = 'wolverine';
		const { structuredContent, isError } = await server.call('refresh_site', { siteId });
		expect(isError).toBeUndefined();
		expect(structuredContent).toMatchObject({ siteId, pages: 111, state: 'complete' });
		expect(site.repeats).toBe(0);
		expect(await firstHit('wolverine', siteId)).toMatchObject({ address: site.url });
		const refreshed = await server.call('refresh_site', { siteId: 4_000 });
		expect(refreshed).toMatchObject({
			isError: true,
			content: [{ text: expect.stringContaining('no site 4000') }],
		});
	});

	it('asks whether another word was meant', async () => {
		site.news = 'wolverine';
		const siteId = await submit();
		const { structuredContent } = await server.call('ask_site', { question: 'wolverines', siteId });
		expect(structuredContent).toMatchObject({ didYouMean: null });
		const misspelled = await server.call('ask_site', { question: 'wolvrine', siteId });
		expect(misspelled.structuredContent).toMatchObject({ didYouMean: 'wolverine' });
		expect(misspelled.content[0]?.text).toMatch(/^Did you mean: wolverine/u);
	});

	it('forgets a site', async () => {
		const siteId = await submit();
		expect((await server.call('forget_site', { siteId })).structuredContent).toEqual({
			cancelledTasks: [],
			siteId,
			startAddress: site.url,
		});
		expect(await listed()).not.toContainEqual(expect.objectContaining({ siteId }));
		expect(await server.call('ask_site', { question: 'page', siteId })).toMatchObject({ isError: true });
	});
});

const totalIn = (message: string): number => Number(/of (\d+)/u.exec(message)?.[1]);

/** The sites at this test's server. */
const listed = async (): Promise<unknown[]> => {
	const sites = (await server.call('list_sites', {})).structuredContent?.['sites'];
	return (Array.isArray(sites) ? sites : []).filter(
		(entry: unknown) => Reflect.get(Object(entry), 'startAddress') === site.url,
	);
};
