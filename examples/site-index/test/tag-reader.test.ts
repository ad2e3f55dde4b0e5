/** The tags of a page are those that htmlparser2 sees; whatever a page is made of, each beginning has its end. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { Parser } from 'htmlparser2';
import { describe, expect, it } from 'vitest';
import { decodePage } from '../src/charset.ts';
import { TagReader } from '../src/tag-reader.ts';
import { postgresDocs, pythonDocs, withoutDocs } from './real-docs.ts';

/** One after the other: `<a href id>`, words, `</a>`; words next to each other are one. */
const write = (into: string[], piece: string, isText: boolean): void => {
	if (isText && into.at(-1)?.startsWith(' ') === true) into[into.length - 1] += piece;
	else into.push(isText ? ` ${piece}` : piece);
};

const ours = (html: string): string[] => {
	const seen: string[] = [];
	new TagReader({
		open: ({ name }, { href, id, class: kind }) => write(seen, `<${name} ${href} ${id} ${kind}>`, false),
		text: (text, start, end) => write(seen, text.slice(start, end), true),
		close: ({ name }) => write(seen, `</${name}>`, false),
	}).read(html);
	return seen;
};

const theirs = (html: string): string[] => {
	const seen: string[] = [];
	const parser = new Parser({
		onopentag: (name, { href, id, class: kind }) => write(seen, `<${name} ${href} ${id} ${kind}>`, false),
		ontext: (text) => write(seen, text, true),
		onclosetag: (name) => write(seen, `</${name}>`, false),
	});
	parser.end(html);
	return seen;
};

const reason = withoutDocs();

describe('the tags of a page', () => {
	it.skipIf(reason !== undefined)(
		'are what htmlparser2 sees on every page of two documentations',
		{ timeout: 120_000 },
		() => {
			for (const root of [postgresDocs, pythonDocs])
				for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
					if (!name.endsWith('.html')) continue;
					const html = decodePage(readFileSync(join(root, name)), 'text/html');
					expect(ours(html).join('') === theirs(html).join(''), name).toBe(true);
				}
		},
	);

	it.each([
		'<P>one<p>two<LI>a<li>b</ul></i>c',
		'<a href="x&amp;y" id=plain class=\'a b\' id=second>t &lt; u &nbsp; &unknown; &#65;</a>',
		'a < b <- c <3 </ > <!doctype html><!-- <p> --><!--> x <!---> y <?php <b> ?> z',
		'<script>if (a < b) "</p>"; </scripty></SCRIPT ><title>A &amp; <b>B</title><textarea><i></textarea>',
		'<svg><title>x</title><path d="M0"/><![CDATA[<p>]]></svg><br></br></p><img/><div/>in</div>',
		'<table><tr><td>1<td>2<tr><th>3</table><dl><dt>t<dd>d<dt>u</dl><h1>x<h2>y',
		'<b <i id=a>x</b><a href = "q" / class>y</a ><p =x id=z>w',
		'<style>p { }',
		'<!-- never closed <p>',
	])('are what htmlparser2 sees in %j', (html) => expect(ours(html)).toEqual(theirs(html)));

	it('do not count the one that the page breaks off in, as HTML has it', () =>
		expect(ours('unfinished <a href="x')).toEqual([' unfinished ']));

	it('each have an end, whatever the page is made of', () => {
		const piece = fc.constantFrom(
			...[
				'<',
				'>',
				'</',
				'/>',
				'<!--',
				'-->',
				'<!',
				'<?',
				'"',
				"'",
				'=',
				' ',
				'&',
				'&amp;',
				'&#x',
				';',
				']]>',
			],
			...[
				'p',
				'div',
				'script',
				'svg',
				'title',
				'a',
				'href',
				'id',
				'li',
				'é',
				'\u0000',
				'\ud800',
				'<![CDATA[',
			],
		);
		fc.assert(
			fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
				const open: string[] = [];
				new TagReader({
					open: ({ name }) => void open.push(name),
					text: (text, start, end) => expect(start <= end && end <= text.length).toBe(true),
					close: ({ name }) => expect(open.pop()).toBe(name),
				}).read(pieces.join(''));
				expect(open).toEqual([]);
			}),
			{ numRuns: 2_000 },
		);
	});

	it.each([
		['begins', '<i>'],
		['ends without a beginning', '<b></i>'],
		['comments', '<!--'],
		['quotes', '<a id="'],
		['ampersands', '& <p>'],
		['scripts', '<script></'],
	])('are read in time from a page of nothing but %s', (_name, piece) => {
		const began = performance.now();
		ours(piece.repeat(300_000));
		expect(performance.now() - began).toBeLessThan(5_000);
	});
});
