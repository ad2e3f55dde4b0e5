/** What the reading of a page has to know about each kind of element. */

export interface Element {
	readonly name: string;
	/** Has no end tag and no content. */
	readonly isVoid: boolean;
	/** What may stand in it: elements, text with entities, or text as it stands. */
	readonly content: 'elements' | 'text' | 'raw';
	/** Stands on lines of its own. */
	readonly isBlock: boolean;
	/** Holds nothing that is read as the page's words. */
	readonly isUnread: boolean;
	/** 1 to 6 for headings, 7 for a defined term, 0 for all others. */
	readonly level: number;
	/** The elements that end where this one begins, if they are still open and innermost. */
	readonly ends: ReadonlySet<string>;
}

export const termLevel = 7;

const set = (names: string): ReadonlySet<string> => new Set(names.split(' '));

const unread = set(
	'script style noscript template svg math iframe object select button nav footer aside dialog',
);
const blocks = set(
	'address article blockquote body br caption dd details div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 ' +
		'header hr li main ol p pre section summary table tr ul tbody thead',
);
const voids = set(
	'area base basefont br col command embed frame hr img input isindex keygen link meta param source track wbr',
);
const raw = set('script style xmp iframe noembed noframes plaintext');
const onlyText = set('title textarea');
const formEnds = set('input option optgroup select button datalist textarea');

/** End tags that may be left out, as HTML has it. */
const endedBy: Readonly<Record<string, ReadonlySet<string>>> = {
	tr: set('tr th td'),
	th: set('th td'),
	td: set('thead th td'),
	tbody: set('thead tbody'),
	tfoot: set('thead tbody'),
	body: set('head link script'),
	a: set('a'),
	li: set('li'),
	dd: set('dd dt'),
	dt: set('dd dt'),
	option: set('option'),
	optgroup: set('optgroup option'),
	select: formEnds,
	button: formEnds,
	textarea: formEnds,
};
const paragraphEnds = set(
	'address article aside blockquote details div dl fieldset figcaption figure footer form header hr main nav ol p ' +
		'pre section table ul',
);
const paragraph = set('p');
const heading = set('h1 h2 h3 h4 h5 h6 p');
const nothing: ReadonlySet<string> = new Set();

const known = new Map<string, Element>();
const mostKnown = 2_000;

/** The element of a name, written in small letters or not. */
export const elementOf = (tag: string): Element => {
	const found = known.get(tag);
	if (found !== undefined) return found;
	const name = tag.toLowerCase();
	const level = levelOf(name);
	const element: Element = {
		name,
		level,
		content: raw.has(name) ? 'raw' : onlyText.has(name) ? 'text' : 'elements',
		isVoid: voids.has(name),
		isBlock: blocks.has(name),
		isUnread: unread.has(name),
		ends: endsOf(name, level),
	};
	// Pages can make up names without end.
	if (known.size < mostKnown) known.set(tag, element);
	return element;
};

const levelOf = (name: string): number => {
	if (name === 'dt') return termLevel;
	return /^h[1-6]$/u.test(name) ? Number(name[1]) : 0;
};

const endsOf = (name: string, level: number): ReadonlySet<string> => {
	if (level > 0 && level < termLevel) return heading;
	return endedBy[name] ?? (paragraphEnds.has(name) ? paragraph : nothing);
};
