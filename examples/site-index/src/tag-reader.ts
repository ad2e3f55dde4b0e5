/**
 * The tags of a page in order, each end matched to its beginning, with the few attributes that matter. A crawl spends
 * most of its time here, and a parser that serves every purpose takes three times as long: it goes through a page
 * letter by letter and makes an object of all attributes of each tag. This one looks for the next `<` and leaves out
 * what nobody asks for. Its tests hold it against htmlparser2, tag for tag.
 */
import { decodeHTML, decodeHTMLAttribute } from 'entities';
import { type Element, elementOf } from './element.ts';

/** One tag's attributes. The same object is used for every tag. */
export interface Attributes {
	readonly id: string | undefined;
	readonly name: string | undefined;
	readonly href: string | undefined;
	readonly rel: string | undefined;
	readonly role: string | undefined;
	readonly class: string | undefined;
	readonly hidden: string | undefined;
	readonly content: string | undefined;
	readonly 'aria-hidden': string | undefined;
}

export interface TagVisitor {
	open(element: Element, attributes: Attributes): void;
	/** Called with where the text is, so that nothing is cut out of the page that is not wanted. */
	text(html: string, start: number, end: number): void;
	/** An end, written or not; each open() has one, the innermost first. */
	close(element: Element): void;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

// Browsers stop nesting at the same depth. Without an end, a page of nothing but begin tags takes for ever.
const deepest = 512;

export class TagReader {
	readonly #visitor: TagVisitor;
	readonly #stack: Element[] = [];
	readonly #attributes = noAttributes();
	#html = '';
	/** Where the next `&` is that has not been passed: text in front of it is the page's as it stands. */
	#ampersand = 0;
	/** How deep the innermost open svg or math is. In there other rules hold, such as tags that end themselves. */
	#foreignFrom = 0;

	constructor(visitor: TagVisitor) {
		this.#visitor = visitor;
	}

	read(html: string): void {
		this.#html = html;
		this.#ampersand = -1;
		this.#foreignFrom = 0;
		this.#stack.length = 0;
		this.#clear();
		const { length } = html;
		let textFrom = 0;
		let at = html.indexOf('<');
		while (at !== -1) {
			const next = html.charCodeAt(at + 1);
			const isEnd = next === SLASH;
			if (isLetter(isEnd ? html.charCodeAt(at + 2) : next)) {
				if (at > textFrom) this.#text(textFrom, at);
				textFrom = isEnd ? this.#endTag(at + 2) : this.#beginTag(at + 1);
			} else if (isEnd || next === BANG || next === QUESTION) {
				if (at > textFrom) this.#text(textFrom, at);
				textFrom = this.#markup(at, next);
			} else {
				at = html.indexOf('<', at + 1);
				continue;
			}
			at = html.indexOf('<', textFrom);
		}
		if (textFrom < length) this.#text(textFrom, length);
		this.#closeTo(0);
		this.#html = '';
	}

	#text(start: number, end: number): void {
		if (this.#ampersand < start) {
			const found = this.#html.indexOf('&', start);
			this.#ampersand = found === -1 ? Infinity : found;
		}
		if (this.#ampersand >= end) this.#visitor.text(this.#html, start, end);
		else {
			const text = decodeHTML(this.#html.slice(start, end));
			this.#visitor.text(text, 0, text.length);
		}
	}

	/** A comment, a document type, and whatever else begins like a tag and is none. Tells where it is over. */
	#markup(at: number, next: number): number {
		const html = this.#html;
		if (next === BANG && html.startsWith('--', at + 2)) {
			if (html.startsWith('>', at + 4)) return at + 5;
			if (html.startsWith('->', at + 4)) return at + 6;
			commentEnd.lastIndex = at + 4;
			return commentEnd.test(html) ? commentEnd.lastIndex : html.length;
		}
		if (next === BANG && this.#foreignFrom !== 0 && html.startsWith('[CDATA[', at + 2)) {
			const end = html.indexOf(']]>', at + 9);
			this.#visitor.text(html, at + 9, end === -1 ? html.length : end);
			return end === -1 ? html.length : end + 3;
		}
		return behind(html.indexOf('>', at + 2), html);
	}

	#endTag(start: number): number {
		const html = this.#html;
		const top = this.#stack.at(-1);
		if (top !== undefined && html.startsWith(top.name, start)) {
			const at = start + top.name.length;
			if (html.charCodeAt(at) === GREATER) {
				// What ends is nearly always what is innermost.
				this.#closeTo(this.#stack.length - 1);
				return at + 1;
			}
		}
		const end = nameEnd(html, start);
		this.#close(elementOf(html.slice(start, end)));
		return html.charCodeAt(end) === GREATER ? end + 1 : behind(html.indexOf('>', end), html);
	}

	#beginTag(start: number): number {
		const html = this.#html;
		let at = nameEnd(html, start);
		const element = elementOf(html.slice(start, at));
		let isEmpty = false;
		for (;;) {
			const code = html.charCodeAt(at);
			if (code === GREATER) break;
			// A tag that the page ends in is no tag.
			if (at >= html.length) return html.length;
			isEmpty = code === SLASH;
			if (isEmpty || isBlank(code)) at += 1;
			else at = this.#attribute(at);
		}
		at += 1;
		this.#open(element, isEmpty);
		if (element.content === 'elements' || this.#foreignFrom !== 0) return at;
		return this.#raw(at, element);
	}

	/** Reads one attribute and tells where it is over. */
	#attribute(start: number): number {
		const html = this.#html;
		// Even an equals sign is a name when it comes first.
		let at = start + 1;
		let code = html.charCodeAt(at);
		while (code !== EQUALS && code !== GREATER && code !== SLASH && !isBlank(code) && at < html.length)
			code = html.charCodeAt((at += 1));
		const name = attributeAt(html, start, at);
		while (isBlank(code)) code = html.charCodeAt((at += 1));
		if (code !== EQUALS) {
			this.#set(name, at, at);
			return at;
		}
		do code = html.charCodeAt((at += 1));
		while (isBlank(code));
		if (code === DOUBLE || code === SINGLE) {
			const end = html.indexOf(code === DOUBLE ? '"' : "'", at + 1);
			if (end === -1) return html.length;
			this.#set(name, at + 1, end);
			return end + 1;
		}
		const from = at;
		while (code !== GREATER && !isBlank(code) && at < html.length) code = html.charCodeAt((at += 1));
		this.#set(name, from, at);
		return at;
	}

	#set(name: keyof Attributes | undefined, start: number, end: number): void {
		// Of an attribute written twice the first counts.
		if (name === undefined || this.#attributes[name] !== undefined) return;
		const value = this.#html.slice(start, end);
		this.#attributes[name] = value.includes('&') ? decodeHTMLAttribute(value) : value;
	}

	/** What stands in an element whose content is no tags, up to its own end tag. */
	#raw(start: number, { name, content }: Element): number {
		const html = this.#html;
		let end = html.indexOf('</', start);
		while (end !== -1 && !isNamed(html, end + 2, name)) end = html.indexOf('</', end + 2);
		if (end === -1) end = html.length;
		if (end > start && content === 'text') this.#text(start, end);
		else if (end > start) this.#visitor.text(html, start, end);
		return end;
	}

	#open(element: Element, endsItself: boolean): void {
		const { ends } = element;
		if (ends.size > 0) {
			let top = this.#stack.at(-1);
			while (top !== undefined && ends.has(top.name)) {
				this.#closeTo(this.#stack.length - 1);
				top = this.#stack.at(-1);
			}
		}
		this.#visitor.open(element, this.#attributes);
		this.#clear();
		if (element.isVoid || this.#stack.length >= deepest || (endsItself && this.#foreignFrom !== 0)) {
			this.#visitor.close(element);
			return;
		}
		this.#stack.push(element);
		if (this.#foreignFrom === 0 && (element.name === 'svg' || element.name === 'math'))
			this.#foreignFrom = this.#stack.length;
	}

	#close(element: Element): void {
		// An end without a beginning is none.
		for (let at = this.#stack.length - 1; at >= 0; at -= 1)
			if (this.#stack[at]?.name === element.name) return this.#closeTo(at);
		if (element.name !== 'p' && element.name !== 'br') return;
		this.#visitor.open(element, this.#attributes);
		this.#visitor.close(element);
	}

	#closeTo(depth: number): void {
		for (let element = this.#stack.at(-1); this.#stack.length > depth; element = this.#stack.at(-1)) {
			if (this.#stack.length === this.#foreignFrom) this.#foreignFrom = 0;
			this.#stack.pop();
			if (element !== undefined) this.#visitor.close(element);
		}
	}

	#clear(): void {
		const attributes = this.#attributes;
		attributes.id = undefined;
		attributes.name = undefined;
		attributes.href = undefined;
		attributes.rel = undefined;
		attributes.role = undefined;
		attributes.class = undefined;
		attributes.hidden = undefined;
		attributes.content = undefined;
		attributes['aria-hidden'] = undefined;
	}
}

const noAttributes = (): Mutable<Attributes> => ({
	id: undefined,
	name: undefined,
	href: undefined,
	rel: undefined,
	role: undefined,
	class: undefined,
	hidden: undefined,
	content: undefined,
	'aria-hidden': undefined,
});

const names = Object.keys(noAttributes()) as (keyof Attributes)[];
const longestName = Math.max(...names.map(({ length }) => length));
const namesOfLength = Array.from({ length: longestName + 1 }, (_, length) =>
	names.filter((name) => name.length === length),
);

const attributeAt = (html: string, start: number, end: number): keyof Attributes | undefined => {
	const candidates = namesOfLength[end - start];
	if (candidates === undefined) return undefined;
	for (const name of candidates) if (html.startsWith(name, start)) return name;
	// Written in capitals, if anything.
	if (html.charCodeAt(start) >= 97) return undefined;
	const written = html.slice(start, end).toLowerCase();
	return candidates.find((name) => name === written);
};

const BANG = 33;
const DOUBLE = 34;
const SINGLE = 39;
const SLASH = 47;
const EQUALS = 61;
const GREATER = 62;
const QUESTION = 63;

const isLetter = (code: number): boolean => (code >= 97 && code <= 122) || (code >= 65 && code <= 90);

const isBlank = (code: number): boolean =>
	code === 32 || code === 10 || code === 9 || code === 13 || code === 12;

/** Where a tag's name ends. */
const nameEnd = (html: string, start: number): number => {
	let at = start;
	for (let code = html.charCodeAt(at); at < html.length; code = html.charCodeAt((at += 1)))
		if (code === GREATER || code === SLASH || isBlank(code)) break;
	return at;
};

const isNamed = (html: string, start: number, name: string): boolean => {
	const end = start + name.length;
	const code = html.charCodeAt(end);
	return (
		(code === GREATER || code === SLASH || isBlank(code)) && html.slice(start, end).toLowerCase() === name
	);
};

const behind = (at: number, html: string): number => (at === -1 ? html.length : at + 1);

const commentEnd = /--!?>/gu;
