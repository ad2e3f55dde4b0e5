/** A site that does everything wrong: the crawl ends, says what it left out, and keeps what is worth keeping. */
import { gzipSync } from 'node:zlib';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeClock, owner, Scratch } from './scratch.ts';
import { LoopbackServer } from './static-server.ts';

const html = (response: ServerResponse, body: string | Buffer, type = 'text/html; charset=utf-8'): void => {
	response.writeHead(200, { 'content-type': type }).end(body);
};

const page = (title: string, body: string): string =>
	`<!doctype html><html><head><title>${title}</title></head><body><main><h1>${title}</h1>${body}</main></body></html>`;

const links = (...addresses: string[]): string =>
	addresses.map((address) => `<p><a href="${address}">${address}</a></p>`).join('');

/** HTML as it must not be, one page each. */
// Made beforehand: while this process is busy making one, it serves nothing, and pages beside it would be too slow.
const bomb = gzipSync(Buffer.alloc(50_000_000, 'a '));
const gigantic = Buffer.from(
	`${page('Gigantic', '<p>aardvark')}${'<p>filler words without end</p>'.repeat(200_000)}`,
);
/** Long enough for every page that does end, also on a busy machine. */
const timeoutMs = 2_000;

const malformed: readonly string[] = [
	'<html><body><h1>Unclosed<p>zebrafish0 <b>bold <i>both</b> only</i><div><span>',
	`<h1>Deep</h1><p>zebrafish1${'<div>'.repeat(20_000)}bottom`,
	'<h1>Attributes</h1><a href="/fine" href=\'/twice\' href=/thrice><p title="unclosed>zebrafish2</p><p>after</p>"></p>zebrafish2',
	'zebrafish3 without any tag at all',
	'<!-- never closed comment? --!> <h1>Comment</h1> zebrafish4 <!-- <p>gone',
	'<h1>Script</h1><p>zebrafish5</p><script>document.write("</scr"+"ipt>")</script><p>after</p><script>while(1){',
	'<table><tr><td><h1>Table</h1><form><td>zebrafish6<tr><table><td>inner</table></form>',
	'<h1>Entities</h1>&amp &notanentity; &#0; &#xD800; &#99999999; zebrafish7 &lt;b&gt;',
	'<h1>Nulls</h1>\0\0zebrafish8\0<p\0 class=x>text</p>',
	'</p></div></body></html><h1>Closed first</h1>zebrafish9',
	'<title>Only a title, never closed <p>zebrafish10',
	'<h1><h2><h3>Headings in headings zebrafish11</h1></h2>',
	'<base href="http://[broken"><h1>Base</h1>zebrafish12 <a href="http://[also broken">x</a><a href="//">y</a><a href="javascript:void(0)">z</a><a href="mailto:a@b">m</a>',
	'<svg><title>not this</title><p>zebrafish13</svg><h1>Svg</h1><math><mi>x</mi></math><p>zebrafish13',
	'<body><frameset><frame src="/fine"></frameset><noframes>x</noframes><h1>Frames</h1>zebrafish14',
	'<h1>Template</h1><template><p>no</p></template><plaintext>zebrafish15 <b>not bold',
];

describe('a nasty site', () => {
	let server: LoopbackServer;
	let scratch: Scratch;
	const clock = new FakeClock();
	let busy = 3;
	let failing = 2;
	const robots = `User-agent: *\nDisallow: /private/\nSitemap: /ignored-relative\n`;

	beforeAll(async () => {
		scratch = new Scratch();
		server = await LoopbackServer.start((_request, response, url) => {
			const { pathname: path, searchParams, origin } = new URL(url.pathname + url.search, server.origin);
			if (path === '/robots.txt')
				return html(response, `${robots}Sitemap: ${origin}/maps.xml\n`, 'text/plain');
			if (path === '/sitemap.xml') return response.writeHead(500).end();
			if (path === '/maps.xml')
				return html(
					response,
					`<sitemapindex><sitemap><loc>${origin}/map.xml.gz</loc></sitemap><sitemap><loc>${origin}/maps.xml</loc></sitemap></sitemapindex>`,
					'application/xml',
				);
			if (path === '/map.xml.gz')
				return html(
					response,
					gzipSync(
						`<?xml version="1.0"?><urlset><url><loc>${origin}/only-in-the-sitemap?a=1&amp;b=2</loc><lastmod>nonsense</lastmod></url></urlset>`,
					),
					'application/gzip',
				);
			if (path === '/')
				return html(
					response,
					page(
						'Start',
						links(
							'/calendar/2026/01',
							'/shop?sort=1',
							'/loop/',
							'/a/',
							'/session?PHPSESSID=1',
							'/busy',
							'/failing',
							'/slow',
							'/latin1',
							'/mislabelled',
							'/sjis',
							'/broken-utf8',
							'/utf16',
							'/gigantic',
							'/bomb',
							'/image',
							'/private/secret',
							'/redirect/0',
							'/round/a',
							'/away',
							'/canonical?x=1',
							'/noindex',
							'/nowhere',
							'/text.txt',
							'/drip',
							...malformed.map((_, at) => `/malformed/${at}`),
						),
					),
				);
			if (path.startsWith('/calendar/')) {
				const [, , year, month] = path.split('/').map(Number) as [number, number, number, number];
				const next = month === 12 ? `${year + 1}/01` : `${year}/${String(month + 1).padStart(2, '0')}`;
				const before = month === 1 ? `${year - 1}/12` : `${year}/${String(month - 1).padStart(2, '0')}`;
				return html(
					response,
					page(
						`Calendar ${year} ${month}`,
						links(
							`/calendar/${next}`,
							`/calendar/${before}`,
							`/calendar/${year + 1}/01`,
							`/calendar/${year - 1}/12`,
						),
					),
				);
			}
			if (path === '/shop') {
				const at = Number(searchParams.get('sort'));
				return html(
					response,
					page(`Shop ${at}`, links(`/shop?sort=${at * 2}`, `/shop?sort=${at * 2 + 1}&page=${at}`)),
				);
			}
			if (path.startsWith('/loop/')) return html(response, page('Loop', links('again/', 'again/once/')));
			if (path.startsWith('/a/'))
				return html(response, page(`Grows ${path}`, links(`${path}${path.length}/`)));
			if (path === '/session')
				return html(
					response,
					page(
						'Session',
						links(`/session?PHPSESSID=${Math.random()}`, `/session;jsessionid=${Math.random()}`),
					),
				);
			if (path === '/busy') {
				busy -= 1;
				if (busy >= 0) return response.writeHead(429, { 'retry-after': '120' }).end();
				return html(response, page('Busy', '<p>wildebeest once it was calm'));
			}
			if (path === '/failing') {
				failing -= 1;
				if (failing >= 0) return response.writeHead(502).end('bad gateway');
				return html(response, page('Failing', '<p>capybara once it was up'));
			}
			if (path === '/slow') return;
			if (path === '/drip') {
				response.writeHead(200, { 'content-type': 'text/html' });
				const timer = setInterval(() => response.write('<p>drip'), 20);
				response.on('close', () => clearInterval(timer));
				return;
			}
			if (path === '/latin1')
				return html(response, Buffer.from(page('Größe', '<p>Übergrößenträger'), 'latin1'), 'text/html');
			if (path === '/mislabelled')
				return html(response, page('Falsch', '<p>Straßenbahnhaltestelle'), 'text/html; charset=iso-8859-1');
			if (path === '/sjis')
				return html(
					response,
					Buffer.concat([
						Buffer.from('<meta charset=shift_jis><h1>'),
						Buffer.from('93fa967b8cea', 'hex'),
						Buffer.from('</h1>okapi'),
					]),
					'text/html',
				);
			if (path === '/broken-utf8')
				return html(
					response,
					Buffer.concat([
						Buffer.from(page('Broken', '<p>naïve façade quokka ')),
						Buffer.from([0xc3, 0x28, 0xff, 0xfe]),
					]),
				);
			if (path === '/utf16')
				return html(
					response,
					Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(page('Wide', '<p>pangolin'), 'utf16le')]),
					'text/html',
				);
			if (path === '/gigantic') return html(response, gigantic);
			if (path === '/bomb')
				return response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' }).end(bomb);
			if (path === '/image') return html(response, Buffer.alloc(1_000), 'image/png');
			if (path.startsWith('/redirect/'))
				return response.writeHead(302, { location: `/redirect/${Number(path.slice(10)) + 1}` }).end();
			if (path.startsWith('/round/'))
				return response.writeHead(301, { location: path === '/round/a' ? '/round/b' : '/round/a' }).end();
			if (path === '/away')
				return response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data/' }).end();
			if (path === '/canonical')
				return html(
					response,
					`<link rel=canonical href="/canonical">${page('Canonical', `<p>numbat ${searchParams.get('x') ?? 'itself'}`)}`,
				);
			if (path === '/noindex')
				return html(response, `<meta name=robots content=noindex>${page('Hidden', '<p>axolotl')}`);
			if (path === '/text.txt')
				return html(response, 'Plain\n=====\n\nplain text about a tardigrade\n', 'text/plain');
			if (path === '/only-in-the-sitemap') return html(response, page('Sitemap', '<p>narwhal'));
			if (path.startsWith('/malformed/')) return html(response, malformed[Number(path.slice(11))] ?? '');
			response.writeHead(404).end();
		});
		await scratch.crawl(
			{ startAddress: server.address('/'), maxBytesPerPage: 1_000_000, requestTimeoutMs: timeoutMs },
			{ now: clock.now, sleep: clock.sleep },
		);
	}, 100_000);

	afterAll(async () => {
		await Promise.all([server?.close(), scratch?.close()]);
	});

	const stateOf = (path: string): string | undefined =>
		scratch.pages().find(({ address }) => address === server.address(path))?.state;
	const reasonOf = (path: string): string | null | undefined =>
		scratch.pages().find(({ address }) => address === server.address(path))?.reason;
	const find = (word: string): string | undefined =>
		scratch
			.ask((asker) => asker.ask({ question: word, owner }))
			.passages[0]?.address.replace(server.origin, '');

	it('comes out of every trap', () => {
		const refused = new Map(
			scratch
				.report((catalogue) => catalogue.report(owner, 1))
				?.refused.map(({ reason, count }) => [reason, count]),
		);
		expect([...refused.keys()].sort()).toEqual([
			'a calendar without end',
			'a path that repeats itself',
			'query strings without end',
		]);
		const paths = server.requests;
		expect(paths.filter((path) => path.startsWith('/calendar/')).length).toBeLessThanOrEqual(120);
		expect(paths.filter((path) => path.startsWith('/shop')).length).toBeLessThanOrEqual(500);
		expect(paths.filter((path) => path.startsWith('/loop/')).length).toBeLessThanOrEqual(4);
		expect(paths.filter((path) => path.startsWith('/a/')).length).toBeLessThanOrEqual(25);
		expect(paths.filter((path) => path.startsWith('/session')).length).toBe(1);
	});

	it('waits as long as it is told to, and longer each time it is not told', () => {
		expect(find('wildebeest')).toBe('/busy');
		expect(find('capybara')).toMatch(/^\/failing/u);
		expect(clock.slept.filter((ms) => ms > 100_000)).toHaveLength(3);
		expect(server.counts().get('/busy')).toBe(4);
	});

	it('gives up on pages that never end, in words', () => {
		for (const path of ['/slow', '/drip']) {
			expect(stateOf(path)).toBe('failed');
			expect(reasonOf(path)).toBe(`no whole answer in ${timeoutMs} ms`);
		}
		expect(scratch.report((catalogue) => catalogue.report(owner, 1))?.words).toContain(
			`no whole answer in ${timeoutMs} ms (2, such as`,
		);
	});

	it.each([
		['Übergrößenträger', '/latin1'],
		['Straßenbahnhaltestelle', '/mislabelled'],
		['okapi', '/sjis'],
		['日本語', '/sjis'],
		['quokka façade', '/broken-utf8'],
		['pangolin', '/utf16'],
		['tardigrade', '/text.txt'],
		['narwhal', '/only-in-the-sitemap?a=1&b=2'],
		['aardvark', '/gigantic'],
	])('finds %s', (word, path) => {
		expect(find(word)?.split('#')[0]).toBe(path);
	});

	it.each(malformed.map((body, at) => [at, body.slice(0, 40)] as const))(
		'reads malformed page %i: %s',
		(at) => {
			expect(find(`zebrafish${at}`)?.split('#')[0]).toBe(`/malformed/${at}`);
		},
	);

	it('cuts what is too large, packed or not', () => {
		expect(reasonOf('/gigantic')).toBe('only the first 1000000 bytes were read');
		expect(reasonOf('/bomb')).toBe('only the first 1000000 bytes were read');
	});

	it('respects robots.txt and the pages’ own wishes', () => {
		expect(server.requests.filter((path) => path.startsWith('/private'))).toEqual([]);
		expect(reasonOf('/private/secret')).toBe('robots.txt asks not to read it');
		expect(reasonOf('/noindex')).toBe('the page asks not to be indexed');
		expect(find('axolotl')).toBeUndefined();
		expect(reasonOf('/image')).toBe('no page but image/png');
	});

	it('follows redirects only so far, and never off the site', () => {
		expect(server.requests.filter((path) => path.startsWith('/redirect/'))).toHaveLength(11);
		expect(server.requests.filter((path) => path.startsWith('/round/'))).toHaveLength(2);
		expect(stateOf('/away')).toBe('redirected');
		expect(scratch.pages().every(({ address }) => address.startsWith(server.origin))).toBe(true);
	});

	it('keeps one page under its own address', () => {
		expect(stateOf('/canonical')).toBe('indexed');
		expect(stateOf('/canonical?x=1')).toBe('duplicate');
		expect(find('numbat')?.split('#')[0]).toBe('/canonical');
	});

	it('ends, with nothing left to read', () => {
		expect(scratch.report((catalogue) => catalogue.sites(owner))[0]?.state).toBe('complete');
	});
});
