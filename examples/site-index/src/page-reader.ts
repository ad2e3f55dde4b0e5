/** From the bytes of an answer to a page, whatever they are. */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { decodePage } from './charset.ts';
import { HtmlReader } from './html-reader.ts';
import type { Page } from './page.ts';
import { passagesOf } from './passage.ts';
import type { SiteStore } from './site-store.ts';
import type { Fetched, PageState } from './stored.ts';
import { readSitemap, type Sitemap } from './sitemap.ts';
import { readText } from './text-reader.ts';
import type { Calls } from './worker-calls.ts';

/** An answer as it came in, with all that is stored of it but its words. */
export interface Raw extends Omit<Fetched, 'hash' | 'page' | 'passages'> {
	readonly body: Uint8Array;
	readonly contentType: string;
}

// A page in many sections has told well enough where its words are.
const mostSections = 12;
const largestSitemap = 60_000_000;

export class PageReader {
	readonly #html = new HtmlReader();
	readonly #store: Calls<SiteStore>;

	constructor(store: Calls<SiteStore>) {
		this.#store = store;
	}

	/** Answers as soon as the thread runs. */
	ready(): boolean {
		return true;
	}

	/** Reads a page and has it stored. */
	async keep({ body, contentType, ...fetched }: Raw): Promise<{ state: PageState; added: number }> {
		const { address } = fetched;
		const text = decodePage(body, contentType);
		const plain =
			/^text\/(plain|markdown|x-rst)/iu.test(contentType) || (contentType === '' && !/^\s*</u.test(text));
		const read = plain ? readText(text, address) : await this.#readHtml(text);
		const { sections, ...page } = read;
		const words = sections.map((section) => `${section.heading}\n${section.text}`);
		const hash = createHash('sha1')
			.update([page.title, ...words, ...page.links].join('\n'))
			.digest('base64url');
		return this.#store.call('absorb', { ...fetched, page, passages: passagesOf(read), hash });
	}

	sitemap(bytes: Uint8Array, contentType: string): Sitemap {
		const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
		try {
			const plain = packed ? gunzipSync(bytes, { maxOutputLength: largestSitemap }) : bytes;
			return readSitemap(decodePage(plain, contentType));
		} catch {
			// A sitemap that is no gzip after all, or unpacks to a bomb, only means that the links have to do.
			return { pages: [], sitemaps: [] };
		}
	}

	async #readHtml(text: string): Promise<Page> {
		const page = this.#html.read(text);
		if (!isDoubtful(page)) return page;
		// Loaded when first needed: most sites never need it, and it is the larger part of this thread's start.
		const { readArticle } = await import('./readable.ts');
		return readArticle(text, page, this.#html);
	}
}

/** Whether the quick reading found no main part worth the name: hardly any text, or text that is mostly links. */
const isDoubtful = (page: Page): boolean => {
	if (page.hasMain || page.sections.length > mostSections) return false;
	let length = 0;
	let links = 0;
	for (const { text, linkShare } of page.sections) {
		length += text.length;
		links += text.length * linkShare;
	}
	return length > 400 && links / length > 0.5;
};
