import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/json.ts';
import { plain, safeJson } from './terminal.ts';

/** A tool's result as text: its text as it is, and a line about whatever cannot be shown on a terminal. */
export function textOfResult(result: JsonObject): string {
	const content = Array.isArray(result['content']) ? result['content'] : [];
	const blocks = content.map((block) => (isJsonObject(block) ? textOfBlock(block) : safeJson(block)));
	const structured = result['structuredContent'];
	if (blocks.length === 0 && structured !== undefined) blocks.push(safeJson(structured));
	return blocks.map((text) => (text.endsWith('\n') ? text : `${text}\n`)).join('');
}

function textOfBlock(block: JsonObject): string {
	const { type, mimeType, data, text, uri, name, resource } = block;
	switch (type) {
		case 'text':
			return lines(text);
		case 'image':
		case 'audio':
			return `[${type}, ${word(mimeType)}, ${bytesOf(data)} bytes; --json has it]`;
		case 'resource_link':
			return `[${word(name)}: ${word(uri)}]`;
		case 'resource':
			return isJsonObject(resource) ? textOfResource(resource) : safeJson(block);
		default:
			return safeJson(block);
	}
}

function textOfResource({ text, uri, mimeType, blob }: JsonObject): string {
	if (typeof text === 'string') return lines(text);
	return `[${word(uri)}, ${word(mimeType)}, ${bytesOf(blob)} bytes; --json has it]`;
}

/** Text keeps its lines and tabs, and nothing else that moves the cursor. */
function lines(text: JsonValue | undefined): string {
	return word(text, '\n\t');
}

function word(value: JsonValue | undefined, keep = ''): string {
	return plain(typeof value === 'string' ? value : 'unknown', keep);
}

function bytesOf(base64: JsonValue | undefined): number {
	return typeof base64 === 'string' ? Buffer.byteLength(base64, 'base64') : 0;
}
