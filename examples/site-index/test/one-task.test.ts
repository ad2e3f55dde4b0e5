/** One task reads a site, whoever asks for it and in whichever process; crawls of one host share what it may be asked. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { claimMs } from '../src/claims.ts';
import { completeOptions, usualOptions } from '../src/options.ts';
import { SiteStore } from '../src/site-store.ts';
import { IndexServer } from './index-server.ts';
import { owner, Scratch } from './scratch.ts';
import { LoopbackServer } from './static-server.ts';
import { TreeSite } from './tree-site.ts';

const LONG = { timeout: 90_000 };

describe('the task of a site', () => {
	let folder: string;
	let site: TreeSite;
	const servers: IndexServer[] = [];

	beforeEach(async () => {
		folder = mkdtempSync(join(tmpdir(), 'site-index-'));
		site = await TreeSite.start();
	});

	afterEach(async () => {
		await Promise.all(servers.splice(0).map((server) => server.end('SIGTERM')));
		await site.close();
		rmSync(folder, { recursive: true, force: true });
	});

	const serve = async (): Promise<IndexServer> => {
		const server = await IndexServer.start(join(folder, 'tasks.db'), '--allow-private');
		servers.push(server);
		return server;
	};

	it('is the only one that reads it, in all processes that share the files', LONG, async () => {
		const [one, other] = [await serve(), await serve()];
		const first = await one.task('submit_site', { url: site.url });
		const { structuredContent } = await one.result(first);
		site.forgetAsked();
		site.delayMs = 300;
		const taskId = await one.task('submit_site', { url: site.url });
		await one.until(taskId, 'progress', (task) => task.statusMessage.startsWith('Crawling'));
		const again = await other.result(await other.task('submit_site', { url: site.url }));
		const siteId = structuredContent?.['siteId'];
		const refreshed = await other.call('refresh_site', { siteId });
		for (const { isError, content } of [again, refreshed]) {
			expect(isError).toBe(true);
			expect(content[0]?.text).toContain(`is being read already, by task ${taskId}`);
		}
		const forgotten = await other.call('forget_site', { siteId });
		expect(forgotten.content[0]?.text).toContain(`is being read by task ${taskId}; cancel that first`);
		expect((await one.result(taskId)).structuredContent).toMatchObject({ pages: TreeSite.pages });
		expect(site.repeats).toBe(0);
	});

	it('is cancelled when the site is forgotten while it waits at its question', LONG, async () => {
		const server = await serve();
		const taskId = await server.task('submit_site', { url: site.url, askAbove: 20 });
		await server.until(taskId, 'the question', ({ status }) => status === 'input_required');
		const { structuredContent } = await server.call('list_sites', {});
		const { sites } = z.object({ sites: z.array(z.object({ siteId: z.int() })) }).parse(structuredContent);
		const siteId = sites[0]?.siteId;
		const forgotten = await server.call('forget_site', { siteId });
		expect(forgotten.content[0]?.text).toBe(
			`${site.url} is forgotten. Task ${taskId}, which had not finished it, is cancelled.`,
		);
		expect(forgotten.structuredContent).toMatchObject({ cancelledTasks: [taskId] });
		await server.until(taskId, 'the cancel', ({ status }) => status === 'cancelled');
		expect((await server.call('list_sites', {})).structuredContent).toEqual({ sites: [] });
	});
});

describe('a claim on a site', () => {
	const options = completeOptions({ startAddress: 'https://docs.example.org/' });
	let scratch: Scratch;
	let store: SiteStore;

	beforeEach(() => {
		scratch = new Scratch();
		store = new SiteStore(join(scratch.folder, 'claims.db'));
	});

	afterEach(async () => {
		store.close();
		await scratch.close();
	});

	it('keeps out every task but its own until it is released', () => {
		const { siteId } = store.begin('one', owner, options, 0);
		expect(() => store.begin('other', owner, options, 1)).toThrow(
			'https://docs.example.org/ is being read already, by task one.',
		);
		expect(store.begin('one', owner, options, 2)).toMatchObject({ siteId });
		store.release(siteId, 'one');
		expect(store.begin('other', owner, options, 3)).toMatchObject({ siteId });
	});

	it('lapses when its process is gone, and is lost to a process that comes back too late', () => {
		const { siteId } = store.begin('one', owner, options, 0);
		expect(store.renew(siteId, 'one', claimMs - 1)).toBe(true);
		expect(() => store.begin('other', owner, options, claimMs + 1)).toThrow('by task one');
		store.begin('other', owner, options, 2 * claimMs);
		expect(store.renew(siteId, 'one', 2 * claimMs)).toBe(false);
	});
});

it('crawls of one host share what it may be asked at once, and each comes to its end', async () => {
	const scratch = new Scratch();
	let atOnce = 0;
	let mostAtOnce = 0;
	const server = await LoopbackServer.start(async (_request, response, { pathname }) => {
		atOnce += 1;
		mostAtOnce = Math.max(mostAtOnce, atOnce);
		await new Promise((resolve) => setTimeout(resolve, 5));
		atOnce -= 1;
		if (!/^\/[abc]\/(\d+)?$/u.test(pathname)) return response.writeHead(404).end();
		const links = Array.from({ length: 40 }, (_, at) => `<a href="${pathname}${at}">page ${at}</a>`);
		const below = pathname.length > 3 ? '' : links.join(' ');
		response.writeHead(200, { 'content-type': 'text/html' });
		return response.end(
			`<title>${pathname}</title><main>Words of page ${pathname}, enough of them. ${below}</main>`,
		);
	});
	try {
		await Promise.all(
			['/a/', '/b/', '/c/'].map((path) =>
				scratch.crawl({ startAddress: server.address(path), include: [`${path}**`] }),
			),
		);
		expect(mostAtOnce).toBeGreaterThan(1);
		expect(mostAtOnce).toBeLessThanOrEqual(usualOptions.perHost);
		expect(scratch.report((catalogue) => catalogue.sites(owner))).toMatchObject(
			Array.from({ length: 3 }, () => ({ pages: 41, state: 'complete' })),
		);
	} finally {
		await server.close();
		await scratch.close();
	}
});
