import { type Readable, Transform, type Writable } from 'node:stream';

/** Longest line that is read, in bytes; just below what the SDK's own buffer takes before it gives up. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * Passes lines on, and answers one that is too long with a JSON-RPC error instead: the SDK's transport would
 * close the connection, and with it every other request.
 */
export function limitLines(input: Readable, output: Writable, maxBytes = MAX_LINE_BYTES): Readable {
	let length = 0;
	let held: Buffer[] = [];
	const refuse = (): void => {
		const error = { code: -32600, message: `The message is longer than ${maxBytes} bytes` };
		output.write(`${JSON.stringify({ jsonrpc: '2.0', id: null, error })}\n`);
	};
	const lines = new Transform({
		transform(chunk: Buffer, _encoding, done) {
			for (let start = 0; start < chunk.length; ) {
				const newline = chunk.indexOf(NEWLINE, start);
				const end = newline < 0 ? chunk.length : newline + 1;
				length += end - start;
				if (length > maxBytes) held = [];
				else held.push(chunk.subarray(start, end));
				if (newline >= 0) {
					if (length > maxBytes) refuse();
					else this.push(Buffer.concat(held));
					held = [];
					length = 0;
				}
				start = end;
			}
			done();
		},
		flush(done) {
			if (held.length > 0) this.push(Buffer.concat(held));
			done();
		},
	});
	return input.pipe(lines);
}
