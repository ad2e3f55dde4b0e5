/**
 * Reads a page in one pass over its tags, without building a tree: a documentation page says by its landmarks
 * where its words are, and a crawl that builds a tree for each page spends most of its time on that.
 */
import { type Element, termLevel } from './element.ts';
import type { Page, Section } from './page.ts';
import { type Attributes, TagReader } from './tag-reader.ts';

const unreadRoles = new Set([
	'navigation',
	'banner',
	'contentinfo',
	'search',
	'complementary',
	'menu',
	'dialog',
]);
const chromeClass =
	/(?:^|[\s_-])(nav|navbar|navheader|navfooter|navigation|sidebar|sphinxsidebar|menu|breadcrumbs?|footer|related|cookie|toc|headerlink|id_link|skip-link|edit-this-page|prev-next)(?:$|\s)/iu;
const leastMainText = 60;
const longestTitle = 500;

interface OpenSection {
	level: number;
	heading: string;
	anchor: string | undefined;
	inMain: boolean;
	text: string;
	linkLength: number;
}

export class HtmlReader {
	readonly #tags: TagReader;
	readonly #classes = new Map<string, boolean>();

	#depth = 0;
	#unreadFrom = 0;
	#mainFrom = 0;
	#preFrom = 0;
	#linkFrom = 0;
	#headFrom = 0;
	#headingFrom = 0;
	#inTitle = false;
	#title = '';
	#canonical: string | undefined;
	#base: string | undefined;
	#noIndex = false;
	#noFollow = false;
	#links = new Set<string>();
	#sections: OpenSection[] = [];
	#current: OpenSection = newSection(0, undefined, false);
	#pendingAnchor: string | undefined;

	constructor() {
		this.#tags = new TagReader({
			open: (element, attributes) => this.#open(element, attributes),
			text: (html, start, end) => this.#text(html, start, end),
			close: (element) => this.#close(element),
		});
	}

	read(html: string): Page {
		this.#reset();
		this.#tags.read(html);
		this.#sections.push(this.#current);
		return {
			title: oneLine(this.#title).slice(0, longestTitle),
			canonical: this.#canonical,
			base: this.#base,
			noIndex: this.#noIndex,
			links: this.#noFollow ? [] : [...this.#links],
			...finish(this.#sections),
		};
	}

	#reset(): void {
		this.#depth = 0;
		this.#unreadFrom = 0;
		this.#mainFrom = 0;
		this.#preFrom = 0;
		this.#linkFrom = 0;
		this.#headFrom = 0;
		this.#headingFrom = 0;
		this.#inTitle = false;
		this.#title = '';
		this.#canonical = undefined;
		this.#base = undefined;
		this.#noIndex = false;
		this.#noFollow = false;
		this.#links = new Set();
		this.#sections = [];
		this.#current = newSection(0, undefined, false);
		this.#pendingAnchor = undefined;
	}

	#open(element: Element, attributes: Attributes): void {
		const { name, level } = element;
		this.#depth += 1;
		if (name === 'a' || name === 'area') this.#openLink(attributes);
		if (this.#unreadFrom !== 0) return;
		if (name === 'head') this.#headFrom = this.#depth;
		else if (name === 'title') this.#inTitle = this.#title === '';
		else if (name === 'link' || name === 'meta' || name === 'base') this.#openMeta(name, attributes);
		if (this.#isUnread(element, attributes)) {
			this.#unreadFrom = this.#depth;
			return;
		}
		const anchor = attributes.id ?? (name === 'a' ? attributes.name : undefined);
		if (anchor) {
			if (this.#headingFrom !== 0) this.#current.anchor ??= anchor;
			else this.#pendingAnchor = anchor;
		}
		if (this.#mainFrom === 0 && isMain(name, attributes)) this.#mainFrom = this.#depth;
		if (name === 'pre' && this.#preFrom === 0) this.#preFrom = this.#depth;
		if (name === 'a' && this.#linkFrom === 0 && attributes.href !== undefined) this.#linkFrom = this.#depth;
		if (level !== 0 && this.#headingFrom === 0) this.#openHeading(level, anchor);
		else if (element.isBlock) this.#append('\n');
		else if (name === 'td' || name === 'th') this.#append(' ');
	}

	#openLink(attributes: Attributes): void {
		const href = attributes.href;
		if (href === undefined || href === '' || href.charCodeAt(0) === 35) return;
		if (attributes.rel?.toLowerCase().includes('nofollow') === true) return;
		const hash = href.indexOf('#');
		this.#links.add(hash === -1 ? href : href.slice(0, hash));
	}

	#openMeta(name: string, attributes: Attributes): void {
		if (name === 'base') this.#base ??= attributes.href;
		else if (name === 'link') {
			if (attributes.rel?.toLowerCase() === 'canonical') this.#canonical ??= attributes.href;
		} else if (/^(robots|holdfast)$/iu.test(attributes.name ?? '')) {
			const content = attributes.content?.toLowerCase() ?? '';
			if (content.includes('noindex') || content.includes('none')) this.#noIndex = true;
			if (content.includes('nofollow') || content.includes('none')) this.#noFollow = true;
		}
	}

	#openHeading(level: number, anchor: string | undefined): void {
		this.#sections.push(this.#current);
		this.#current = newSection(level, anchor ?? this.#pendingAnchor, this.#mainFrom !== 0);
		this.#pendingAnchor = undefined;
		this.#headingFrom = this.#depth;
	}

	#text(html: string, start: number, end: number): void {
		if (this.#inTitle) {
			this.#title += html.slice(start, end);
			return;
		}
		if (this.#unreadFrom !== 0 || this.#headFrom !== 0) return;
		const text = html.slice(start, end);
		this.#append(this.#preFrom === 0 && text.includes('\n') ? text.replaceAll('\n', ' ') : text);
	}

	#append(text: string): void {
		const section = this.#current;
		if (this.#headingFrom !== 0) {
			section.heading += text;
			if (this.#linkFrom !== 0) section.linkLength += text.length;
			return;
		}
		// Text before or behind the main part must not be counted to a section inside it.
		if (section.inMain !== (this.#mainFrom !== 0)) {
			this.#sections.push(section);
			this.#current = newSection(section.inMain ? 0 : section.level, undefined, !section.inMain);
		}
		this.#current.text += text;
		if (this.#linkFrom !== 0) this.#current.linkLength += text.length;
		if (this.#pendingAnchor !== undefined && text.length > 1 && /\S/u.test(text))
			this.#pendingAnchor = undefined;
	}

	#close({ name, isBlock }: Element): void {
		const depth = this.#depth;
		this.#depth = depth - 1;
		if (name === 'title') this.#inTitle = false;
		if (depth === this.#unreadFrom) this.#unreadFrom = 0;
		if (this.#unreadFrom !== 0) return;
		if (depth === this.#headFrom) this.#headFrom = 0;
		if (depth === this.#headingFrom) {
			this.#headingFrom = 0;
			// A term that came out empty, or ran on for pages because it was never closed, is no heading.
			this.#current.heading = oneLine(this.#current.heading);
			if (this.#current.heading.length > 300) {
				this.#current.text = this.#current.heading;
				this.#current.heading = `${this.#current.heading.slice(0, 120)}…`;
			}
		} else if (isBlock) this.#append('\n');
		if (depth === this.#mainFrom) this.#mainFrom = 0;
		if (depth === this.#preFrom) this.#preFrom = 0;
		if (depth === this.#linkFrom) this.#linkFrom = 0;
	}

	#isUnread({ name, isUnread }: Element, attributes: Attributes): boolean {
		// Inside the main part an aside is a note on it; outside it is another column of the page.
		if (isUnread) return name !== 'aside' || this.#mainFrom === 0;
		const role = attributes.role;
		if (role !== undefined && unreadRoles.has(role.toLowerCase())) return true;
		if (attributes.hidden !== undefined || attributes['aria-hidden'] === 'true') return true;
		const className = attributes.class;
		if (className === undefined || name === 'body' || name === 'html' || name === 'main') return false;
		let chrome = this.#classes.get(className);
		if (chrome === undefined) {
			chrome = chromeClass.test(className);
			if (this.#classes.size < 10_000) this.#classes.set(className, chrome);
		}
		return chrome;
	}
}

const newSection = (level: number, anchor: string | undefined, inMain: boolean): OpenSection => ({
	level,
	heading: '',
	anchor,
	inMain,
	text: '',
	linkLength: 0,
});

const isMain = (name: string, attributes: Attributes): boolean =>
	name === 'main' ||
	name === 'article' ||
	attributes.role === 'main' ||
	(name === 'div' &&
		/^(content|main|main-content|maincontent|bodyContent|mw-content-text|docContent)$/u.test(
			attributes.id ?? '',
		));

const oneLine = (text: string): string => text.replace(/[\s¶]+/gu, ' ').trim();

const tidy = (text: string): string =>
	// Written so that the usual single blank is no match: replacing it by itself is most of the cost.
	text
		.replace(/[^\S\n]{2,}|[^\S\n ]/gu, ' ')
		.replace(/ \n\s*|\n\s+/gu, '\n')
		.trim();

/** A boxed note interrupts the section it stands in: what follows the box belongs to that section again. */
const boxHeading = /^(note|notes?:|tip|warning|caution|important|danger|info|see also|example)$/iu;

const standsAlone = ({ heading, level, anchor }: OpenSection): boolean =>
	heading !== '' && !(level === termLevel && anchor === undefined) && !boxHeading.test(heading);

/** Gives each section its headings above, drops what lies outside the main part, folds terms without an anchor. */
const finish = (found: readonly OpenSection[]): Pick<Page, 'sections' | 'hasMain'> => {
	let mainLength = 0;
	for (const section of found) if (section.inMain) mainLength += section.text.length + section.heading.length;
	const onlyMain = mainLength >= leastMainText;
	const sections: Section[] = [];
	const above: { level: number; heading: string }[] = [];
	let folded = '';
	let foldedLinks = 0;
	const kept = found.filter((section) => section.inMain || !onlyMain);
	for (let at = kept.length - 1; at >= 0; at -= 1) {
		const section = kept[at];
		if (section === undefined) continue;
		// Read backwards, so that what is folded ends up in the section before it.
		if (!standsAlone(section)) {
			if (at > 0) {
				folded = `${section.heading}\n${section.text}\n${folded}`;
				foldedLinks += section.linkLength;
				section.text = '';
				section.heading = '';
				continue;
			}
		}
		if (folded !== '') {
			section.text += `\n${folded}`;
			section.linkLength += foldedLinks;
			folded = '';
			foldedLinks = 0;
		}
	}
	for (const section of kept) {
		const text = tidy(section.text);
		if (text === '' && section.heading === '') continue;
		while ((above.at(-1)?.level ?? 0) >= section.level && above.length > 0) above.pop();
		sections.push({
			level: section.level,
			heading: section.heading,
			above: above.map(({ heading }) => heading),
			anchor: section.anchor,
			text,
			linkShare: Math.min(1, section.linkLength / (text.length + section.heading.length)),
		});
		if (section.level > 0 && section.heading !== '')
			above.push({ level: section.level, heading: section.heading });
	}
	return { sections, hasMain: onlyMain };
};
