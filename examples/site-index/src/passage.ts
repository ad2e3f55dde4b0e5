/** Cuts a page's sections into passages of a size worth reading as an answer. */
import type { Page, Section } from './page.ts';

export interface Passage {
	readonly heading: string;
	readonly above: string;
	readonly anchor: string | undefined;
	readonly text: string;
}

const longestPassage = 1_600;
const mostPassages = 5_000;
// A section made of links only says what other pages are about; searched, it would stand in their way.
const listingShare = 0.6;
const listingLength = 300;
const listingPageShare = 0.45;

export const passagesOf = (page: Page): Passage[] => {
	const passages: Passage[] = [];
	if (isListing(page))
		return [{ heading: page.sections[0]?.heading ?? '', above: '', anchor: undefined, text: '' }];
	for (const section of page.sections) {
		for (const text of cut(readable(section))) {
			if (passages.length >= mostPassages) return passages;
			passages.push({
				heading: section.heading,
				above: section.above.join(' › '),
				anchor: section.anchor,
				text,
			});
		}
	}
	// A page may have nothing but its title; that is still how it is found.
	return passages.length > 0 ? passages : [{ heading: '', above: '', anchor: undefined, text: '' }];
};

/** Whether a page is a table of contents or an index as a whole: half of what it says are links to other pages. */
const isListing = ({ sections }: Page): boolean => {
	let length = 0;
	let links = 0;
	for (const { text, heading, linkShare } of sections) {
		length += text.length + heading.length;
		links += (text.length + heading.length) * linkShare;
	}
	return length > listingLength && links / length > listingPageShare;
};

const readable = ({ text, linkShare }: Section): string =>
	linkShare > listingShare && text.length > listingLength ? '' : text;

const cut = (text: string): string[] => {
	if (text.length <= longestPassage) return [text];
	const pieces: string[] = [];
	let start = 0;
	while (text.length - start > longestPassage) {
		const end = breakBefore(text, start, start + longestPassage);
		pieces.push(text.slice(start, end).trim());
		start = end;
	}
	const rest = text.slice(start).trim();
	if (rest !== '') pieces.push(rest);
	return pieces;
};

/** The best place to break: between paragraphs, else between sentences, else between words. */
const breakBefore = (text: string, start: number, limit: number): number => {
	const least = start + longestPassage / 2;
	for (const mark of ['\n', '. ', ' ']) {
		const at = text.lastIndexOf(mark, limit - mark.length);
		if (at > least) return at + mark.length;
	}
	return limit;
};

/** The words of an address's path: documentation names its pages after what they are about. */
export const pathWords = (address: string): string => {
	const { pathname } = new URL(address);
	let path = pathname;
	try {
		path = decodeURIComponent(pathname);
	} catch {
		// A path with stray percent signs is read as it is written.
	}
	return path.replace(/\.(x?html?|php|aspx?|txt|md)$/iu, '').replace(/\/index$/iu, '');
};
