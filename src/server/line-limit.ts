import { isJsonObject } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import type { WireError } from '../protocol/task.ts';
import { type Readable, Transform, type Writable } from 'node:stream';

/** Longest line that is read, in bytes; just below what the SDK's own buffer takes before it gives up. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * Passes messages on, one a line, and answers a line that is too long or no message with a JSON-RPC error
 * instead: the SDK's transport would close the connection, or drop the line so that its sender waits for ever.
 */
export function limitLines(input: Readable, output: Writable, maxBytes = MAX_LINE_BYTES): Readable {
	const tooLong = {
		code: WIRE_CODES.invalidRequest,
		message: `The message is longer than ${maxBytes} bytes`,
	};
	let length = 0;
	let held: Buffer[] = [];
	const refuse = (error: WireError): void => {
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
					const line = Buffer.concat(held);
					const refusal = length > maxBytes ? tooLong : problemOf(line.toString('utf8'));
					if (refusal) refuse(refusal);
					else this.push(line);
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

/** Why a line is no message; undefined for one, and for an empty line. */
function problemOf(line: string): WireError | undefined {
	if (line.trim() === '') return undefined;
	try {
		const message: unknown = JSON.parse(line);
		if (isJsonObject(message) && ['method', 'result', 'error'].some((key) => key in message))
			return undefined;
		return {
			code: WIRE_CODES.invalidRequest,
			message: 'The line is not a JSON-RPC message; batches are not supported',
		};
	} catch {
		return { code: WIRE_CODES.parseError, message: 'The line is not JSON' };
	}
}
