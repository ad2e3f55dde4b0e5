/** Sitemaps: which pages a site says it has, and when each last changed. */
import { Parser } from 'htmlparser2';

export interface SitemapEntry {
	readonly address: string;
	/** Milliseconds since 1970; nothing when the sitemap does not say, or says something that is no date. */
	readonly changedAt: number | undefined;
}

export interface Sitemap {
	readonly pages: readonly SitemapEntry[];
	/** Further sitemaps, when this one is an index. */
	readonly sitemaps: readonly string[];
}

const mostEntries = 50_000;

export const readSitemap = (text: string): Sitemap => {
	const pages: SitemapEntry[] = [];
	const sitemaps: string[] = [];
	if (!/<\s*(?:\w+:)?(urlset|sitemapindex)\b/iu.test(text)) return { pages: fromLines(text), sitemaps };
	let field = '';
	let address = '';
	let changed = '';
	const parser = new Parser(
		{
			onopentagname(name) {
				const local = localName(name);
				if (local === 'url' || local === 'sitemap') {
					address = '';
					changed = '';
				}
				field = local;
			},
			ontext(piece) {
				// Only the entry's own address: image and video extensions carry a `loc` of their own.
				if (field === 'loc') address += piece;
				else if (field === 'lastmod') changed += piece;
			},
			onclosetag(name) {
				const local = localName(name);
				if (local === 'sitemap' && sitemaps.length < mostEntries && address.trim() !== '')
					sitemaps.push(address.trim());
				if (local === 'url' && pages.length < mostEntries && address.trim() !== '')
					pages.push({ address: address.trim(), changedAt: toTime(changed.trim()) });
				field = '';
			},
		},
		{ xmlMode: true },
	);
	parser.write(text);
	parser.end();
	return { pages, sitemaps };
};

const localName = (name: string): string => {
	const colon = name.indexOf(':');
	if (colon === -1) return name.toLowerCase();
	return name.startsWith('sm:') || name.startsWith('sitemap:') ? name.slice(colon + 1).toLowerCase() : name;
};

const toTime = (text: string): number | undefined => {
	const time = Date.parse(text);
	return Number.isNaN(time) ? undefined : time;
};

/** The plain form of a sitemap: one address a line. */
const fromLines = (text: string): SitemapEntry[] =>
	text
		.split(/\s+/u)
		.filter((line) => /^https?:\/\//u.test(line))
		.slice(0, mostEntries)
		.map((address) => ({ address, changedAt: undefined }));
