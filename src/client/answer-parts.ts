import type { CallToolResult, ContentBlock } from './sdk.ts';

/** A piece of what a model is given. JSON. */
export type AnswerPart =
	| { readonly type: 'text'; readonly text: string }
	/** `data` is base64. */
	| { readonly type: 'file'; readonly data: string; readonly mediaType: string };

/** The largest file that is passed on, in characters of its base64: about 6 MB. */
const MAX_FILE_LENGTH = 8_000_000;

/**
 * What a model is given of a tool's result: its texts; its structured content, as JSON, where there is no text;
 * links in words; images, sounds and other files as they are. All texts together have at most `maxTextLength`
 * UTF-16 units; what is cut ends with a notice.
 */
export function answerParts(result: CallToolResult, maxTextLength: number): readonly AnswerPart[] {
	const { structuredContent } = result;
	const content = Array.isArray(result.content) ? result.content : [];
	const hasText = content.some((block) => block.type === 'text' && block.text.trim() !== '');
	const parts = content.map(partOf);
	if (!hasText && structuredContent !== undefined) parts.push(text(JSON.stringify(structuredContent)));
	if (parts.length === 0) return [text('The tool returned nothing.')];
	return cutParts(parts, maxTextLength);
}

/** The words for a file where it cannot be shown. */
export function fileNotice({ data, mediaType }: Extract<AnswerPart, { type: 'file' }>): string {
	return `[A file of type ${mediaType}, ${decodedBytes(data)} bytes, which cannot be shown here]`;
}

/** All parts as one text, files in words. */
export function plainText(parts: readonly AnswerPart[]): string {
	return parts.map((part) => (part.type === 'text' ? part.text : fileNotice(part))).join('\n');
}

function text(words: string): AnswerPart {
	return { type: 'text', text: words };
}

function partOf(block: ContentBlock): AnswerPart {
	switch (block.type) {
		case 'text':
			return text(block.text);
		case 'image':
		case 'audio':
			return file(block.data, block.mimeType);
		case 'resource': {
			const { resource } = block;
			if ('text' in resource) return text(`Resource ${resource.uri}:\n${resource.text}`);
			return file(resource.blob, resource.mimeType ?? 'application/octet-stream');
		}
		case 'resource_link': {
			const { title, name, uri, mimeType, description } = block;
			const kind = mimeType === undefined ? '' : ` (${mimeType})`;
			return text(`Link to ${title ?? name}: ${uri}${kind}${description ? `. ${description}` : ''}`);
		}
		default:
			return text(`[Content of an unknown type: ${JSON.stringify(block)}]`);
	}
}

function file(data: string, mediaType: string): AnswerPart {
	const whole = { type: 'file', data, mediaType } as const;
	return data.length > MAX_FILE_LENGTH ? text(fileNotice(whole)) : whole;
}

function cutParts(parts: readonly AnswerPart[], maxTextLength: number): readonly AnswerPart[] {
	const length = parts.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
	let left = maxTextLength;
	const kept = parts.flatMap((part): AnswerPart[] => {
		if (part.type === 'file') return [part];
		const words = cut(part.text, left);
		left -= words.length;
		return words === '' && part.text !== '' ? [] : [text(words.toWellFormed())];
	});
	if (length <= maxTextLength) return kept;
	return [
		...kept,
		text(`[Cut: the text has ${length} characters, and these are the first ${maxTextLength}]`),
	];
}

/** The first `length` units of a text, less one where that would split a code point. */
function cut(words: string, length: number): string {
	if (words.length <= length) return words;
	const last = words.charCodeAt(length - 1);
	return words.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

function decodedBytes(base64: string): number {
	return Math.floor((base64.replace(/=+$/, '').length * 3) / 4);
}
