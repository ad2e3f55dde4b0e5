/** Reading a site again: only what changed is fetched, and only what is gone is taken away. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock, owner, Scratch } from './scratch.ts';
import { LoopbackServer } from './static-server.ts';

interface Entry {
	body: string;
	etag?: string;
	lastModified?: string;
	lastmod?: string;
	down?: boolean;
}

let server: LoopbackServer;
let scratch: Scratch;
let site: Map<string, Entry>;
let bodies: string[];
const clock = new FakeClock();

const body = (title: string, ...links: string[]): string =>
	`<title>${title}</title><h1>${title}</h1><p>About ${title}.${links.map((link) => `<a href="${link}">${link}</a>`).join(' ')}`;

beforeEach(async () => {
	scratch = new Scratch();
	bodies = [];
	site = new Map<string, Entry>([
		['/', { body: body('start', '/etag', '/date', '/plain', '/mapped', '/leaving') }],
		['/etag', { body: body('marmot'), etag: '"1"' }],
		['/date', { body: body('lemur'), lastModified: 'Thu, 01 Jan 2026 00:00:00 GMT' }],
		['/plain', { body: body('ocelot') }],
		['/mapped', { body: body('tapir'), lastmod: '2025-12-01' }],
		['/leaving', { body: body('dodo') }],
	]);
	server = await LoopbackServer.start((request, response, url) => {
		if (url.pathname === '/sitemap.xml') {
			const urls = [...site].flatMap(([path, { lastmod }]) =>
				lastmod === undefined
					? []
					: `<url><loc>${server.address(path)}</loc><lastmod>${lastmod}</lastmod></url>`,
			);
			return response.writeHead(200, { 'content-type': 'text/xml' }).end(`<urlset>${urls.join('')}</urlset>`);
		}
		const entry = site.get(url.pathname);
		if (entry === undefined) return response.writeHead(404).end();
		if (entry.down === true) return response.writeHead(500).end();
		const { etag, lastModified } = entry;
		const fresh =
			(etag !== undefined && request.headers['if-none-match'] === etag) ||
			(lastModified !== undefined && request.headers['if-modified-since'] === lastModified);
		if (fresh) return response.writeHead(304).end();
		bodies.push(url.pathname);
		response.setHeader('content-type', 'text/html');
		if (etag !== undefined) response.setHeader('etag', etag);
		if (lastModified !== undefined) response.setHeader('last-modified', lastModified);
		return response.end(entry.body);
	});
});

afterEach(async () => {
	await server.close();
	await scratch.close();
});

const crawl = () =>
	scratch.crawl({ startAddress: server.address('/') }, { now: clock.now, sleep: clock.sleep });
const finds = (word: string): boolean =>
	scratch.ask((asker) => asker.ask({ question: word, owner })).passages.some(({ title }) => title === word);

it('fetches again only what may have changed', async () => {
	expect(await crawl()).toMatchObject({ refresh: false });
	await clock.sleep(86_400_000);
	bodies = [];
	server.requests.length = 0;
	expect(await crawl()).toMatchObject({ refresh: true, stoppedAtLimit: false });
	expect(bodies.sort()).toEqual(['/', '/leaving', '/plain']);
	expect(server.requests).not.toContain('/mapped');
	for (const word of ['marmot', 'lemur', 'ocelot', 'tapir', 'dodo']) expect(finds(word)).toBe(true);
});

it('takes over what changed, what is new, and what is gone', async () => {
	await crawl();
	await clock.sleep(86_400_000);
	site.set('/etag', { body: body('vole', '/new'), etag: '"2"' });
	site.set('/mapped', { body: body('okapi'), lastmod: '2026-06-01' });
	site.set('/new', { body: body('gecko') });
	site.delete('/leaving');
	await crawl();
	for (const word of ['vole', 'okapi', 'gecko', 'lemur', 'ocelot']) expect(finds(word)).toBe(true);
	for (const word of ['marmot', 'tapir', 'dodo']) expect(finds(word)).toBe(false);
	const report = scratch.report((catalogue) => catalogue.report(owner, 1));
	expect(report?.words).toContain('1 page could not be read: the server answered 404');
});

it('keeps what it has of a page that cannot be had for now', async () => {
	await crawl();
	site.set('/plain', { body: '', down: true });
	await crawl();
	expect(finds('ocelot')).toBe(true);
	const report = scratch.report((catalogue) => catalogue.report(owner, 1));
	expect(report?.pages).toBe(6);
	expect(report?.words).toContain('1 page could not be read: the server answered 500');
});
