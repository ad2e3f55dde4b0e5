/** What a caller may set: limits told in words, paths wanted and not, politeness, and no way into private networks. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeClock, owner, Scratch } from './scratch.ts';
import { LoopbackServer } from './static-server.ts';

let server: LoopbackServer;
let scratch: Scratch;
let robots = '';
let mostAtOnce = 0;

/** A tree of pages: each page leads to ten more, three levels deep. */
beforeEach(async () => {
	robots = '';
	mostAtOnce = 0;
	let atOnce = 0;
	scratch = new Scratch();
	server = await LoopbackServer.start(async (_request, response, url) => {
		if (url.pathname === '/robots.txt')
			return response.writeHead(200, { 'content-type': 'text/plain' }).end(robots);
		if (!/^\/(\d\/){0,3}$/u.test(url.pathname)) return response.writeHead(404).end();
		atOnce += 1;
		mostAtOnce = Math.max(mostAtOnce, atOnce);
		await new Promise(setImmediate);
		atOnce -= 1;
		const links = Array.from({ length: 10 }, (_, at) => `<a href="${url.pathname}${at}/">page ${at}</a>`);
		response.writeHead(200, { 'content-type': 'text/html' });
		return response.end(
			`<h1>Page ${url.pathname}</h1><main><p>Words of page ${url.pathname} ${url.pathname.length > 4 ? '' : links.join(' ')}</main>`,
		);
	});
});

afterEach(async () => {
	await server.close();
	await scratch.close();
});

const report = () => scratch.report((catalogue) => catalogue.report(owner, 1));
const pagesAsked = (): number => server.requests.filter((path) => path.endsWith('/')).length;

it('stops at the caller’s own limit, and says so', async () => {
	expect(await scratch.crawl({ startAddress: server.address('/'), maxPages: 25 })).toMatchObject({
		stoppedAtLimit: true,
	});
	expect(pagesAsked()).toBe(25);
	expect(report()).toMatchObject({ pages: 25, state: 'stopped at a limit' });
	expect(report()?.words).toMatch(
		/stopped at your limit of 25 pages: at least \d+ more pages were found and not read/u,
	);
});

it('asks once before it goes on past a size, and reads as much as it is told to', async () => {
	const asked: number[] = [];
	const confirm = async (known: number): Promise<number> => asked.push(known) && 40;
	await scratch.crawl({ startAddress: server.address('/'), askAbove: 30 }, { confirm });
	expect(asked).toHaveLength(1);
	expect(asked[0]).toBeGreaterThan(30);
	expect(pagesAsked()).toBe(40);
});

it('reads it all when told to go on', async () => {
	await scratch.crawl({ startAddress: server.address('/'), askAbove: 30 }, { confirm: async () => true });
	expect(pagesAsked()).toBe(111);
	expect(report()).toMatchObject({ pages: 111, state: 'complete' });
});

it('goes only as many links deep as it may', async () => {
	await scratch.crawl({ startAddress: server.address('/'), maxDepth: 1 });
	expect(pagesAsked()).toBe(11);
	expect(report()?.refused).toMatchObject([{ reason: 'too many links deep', count: 100 }]);
});

it('reads only the paths that are wanted', async () => {
	await scratch.crawl({ startAddress: server.address('/'), include: ['/1/*', '/2/'], exclude: ['/*/3/'] });
	expect(
		server.requests
			.filter((path) => path.endsWith('/'))
			.every((path) => /^\/([12]\/([0-24-9]\/)?)?$/u.test(path)),
	).toBe(true);
	expect(pagesAsked()).toBe(1 + 2 + 18);
});

it('keeps as far apart as robots.txt asks, one at a time', async () => {
	robots = 'User-agent: *\nCrawl-delay: 2\nDisallow: /1/';
	const clock = new FakeClock();
	const began = clock.now();
	await scratch.crawl(
		{ startAddress: server.address('/'), maxDepth: 1 },
		{ now: clock.now, sleep: clock.sleep },
	);
	expect(pagesAsked()).toBe(10);
	expect(mostAtOnce).toBe(1);
	expect(clock.now() - began).toBeGreaterThanOrEqual(9 * 2_000);
});

it('sends no more requests at once than it may', async () => {
	await scratch.crawl({ startAddress: server.address('/'), perHost: 3 });
	expect(mostAtOnce).toBeLessThanOrEqual(3);
});

it('ends where it is when its caller goes away, and goes on from there', async () => {
	const caller = new AbortController();
	const onProgress = ({ visited }: { visited: number }): void => {
		if (visited === 20) caller.abort(new Error('going away'));
	};
	const startAddress = server.address('/');
	await expect(
		scratch.crawl({ startAddress }, { taskId: 't', signal: caller.signal, onProgress }),
	).rejects.toThrow('going away');
	await scratch.crawl({ startAddress }, { taskId: 't' });
	expect(report()).toMatchObject({ pages: 111, state: 'complete' });
	expect(pagesAsked()).toBeLessThanOrEqual(111 + 16);
});

describe('private addresses', () => {
	it.each(['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', 'localhost', 'some.localhost'])(
		'sends nothing to %s unless it is allowed',
		async (host) => {
			const startAddress = server.address('/').replace('127.0.0.1', host);
			await scratch.crawl({ startAddress }, { allowPrivate: false });
			expect(server.requests).toEqual([]);
			expect(report()).toMatchObject({ pages: 0 });
			expect(report()?.words).toMatch(/is not a public address|robots\.txt/u);
		},
	);
});
