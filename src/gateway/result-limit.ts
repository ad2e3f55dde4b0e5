import type { CallToolResult } from '../client/sdk.ts';

/** How much of a result that is too large is shown, in UTF-16 units. */
const SHOWN = 16_384;

/**
 * A result as it may be given on. Many hosts end on one of many megabytes, or cut it without a word; so one that is
 * larger than `maxBytes` as JSON becomes an error that says so and shows how it begins.
 */
export function limitResult(result: CallToolResult, maxBytes: number, tool: string): CallToolResult {
	const bytes = Buffer.byteLength(JSON.stringify(result));
	if (bytes <= maxBytes) return result;
	const first = result.content.find((block) => block.type === 'text');
	const text = first?.type === 'text' ? first.text : '';
	const shown = startOf(text, SHOWN);
	const words = [
		`The result of ${tool} has ${bytes} bytes, and the gateway passes on ${maxBytes} at most (maxResultBytes).`,
		'The call was done. If it can be asked for less, do that.',
		...(shown === ''
			? []
			: [`The result begins like this, and is cut after ${shown.length} characters:`, shown]),
	];
	return { content: [{ type: 'text', text: words.join('\n') }], isError: true };
}

/** The start of a text, which ends with a whole character. */
function startOf(text: string, length: number): string {
	const start = text.slice(0, length);
	return start.isWellFormed() ? start : start.slice(0, -1).toWellFormed();
}
