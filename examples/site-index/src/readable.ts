/** The slow way to a page's words: a tree, and Readability's judgement of which part of it is the article. */
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import type { HtmlReader } from './html-reader.ts';
import type { Page } from './page.ts';

// A tree of a larger page takes seconds and gigabytes; such a page keeps what the quick reading found.
const largestHtml = 500_000;
const mostElements = 20_000;

/** The page with only its article's sections, or as it was when no article can be made out. */
export const readArticle = (html: string, page: Page, reader: HtmlReader): Page => {
	if (html.length > largestHtml) return page;
	try {
		const { document } = parseHTML(html);
		const article = new Readability(document as ConstructorParameters<typeof Readability>[0], {
			maxElemsToParse: mostElements,
		}).parse();
		if (!article?.content) return page;
		const inner = reader.read(`<main>${article.content}</main>`);
		const length = inner.sections.reduce((sum, { text }) => sum + text.length, 0);
		return length < 200
			? page
			: { ...page, title: page.title || (article.title ?? ''), sections: inner.sections };
	} catch {
		// Readability gives up on very large trees, and a hostile page can exhaust the stack.
		return page;
	}
};
