import type { WriteStream } from 'node:tty';
import { styleText } from 'node:util';

/**
 * What must not reach a terminal as it is: control characters, which move the cursor or worse; signs that are
 * not seen or turn the direction, which make text look like another; separators of lines; halves of characters.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const SEGMENTER = new Intl.Segmenter();

/** Text from elsewhere, safe to show on one line, or on several with a line feed among the characters to `keep`. */
export function plain(text: string, keep = ''): string {
	return text.replace(UNSAFE, (char) => (keep.includes(char) ? char : escaped(char)));
}

/** Safe text of at most `width` characters; what is cut off is marked. */
export function clip(text: string, width: number): string {
	const chars = charsOf(plain(text));
	return chars.length <= width ? chars.join('') : `${chars.slice(0, Math.max(0, width - 1)).join('')}…`;
}

/** JSON that is safe to show on a terminal, and still the same JSON. */
export function safeJson(value: unknown, indent = 2): string {
	// JSON itself has escaped everything below a space; the line feeds left are those of the indent.
	return JSON.stringify(value, null, indent).replace(UNSAFE, (char) =>
		char === '\n' ? char : escaped(char),
	);
}

/** Colours for one stream: only on a terminal, and never against `NO_COLOR`. */
export type Paint = (format: Parameters<typeof styleText>[0], text: string) => string;

/** The colours that a stream may have. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
	const { NO_COLOR, TERM } = process.env;
	const colourful = stream.isTTY && (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb';
	return (format, text) => (colourful ? styleText(format, text, { validateStream: false }) : text);
}

/** The width of a stream's lines; endless where it is no terminal. */
export function widthOf(stream: Partial<WriteStream>): number {
	return stream.isTTY === true ? Math.max(40, stream.columns || 80) : Infinity;
}

/** Rows under each other, each cut to fit `width`. Every column but the last is as wide as it needs to be. */
export function table(rows: readonly (readonly string[])[], width: number): string {
	const safe = rows.map((row) => row.map((cell) => plain(cell)));
	const widthOfColumn = (column: number): number =>
		Math.max(...safe.map((row) => charsOf(row[column] ?? '').length));
	const widths = (safe[0] ?? []).map((_, column) => widthOfColumn(column));
	const lines = safe.map((row) => {
		const cells = row.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - charsOf(cell).length));
		return clip(cells.join('  ').trimEnd(), width);
	});
	return `${lines.join('\n')}\n`;
}

/** What a reader takes for one character each. */
function charsOf(text: string): string[] {
	return Array.from(SEGMENTER.segment(text), ({ segment }) => segment);
}

/** By code units, since JSON knows no others. */
function escaped(char: string): string {
	return char
		.split('')
		.map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
		.join('');
}
