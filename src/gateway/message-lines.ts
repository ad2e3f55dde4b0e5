import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';

/** How much of a line that is too long is kept from its ends, in bytes: its id stands in one of them. */
const END_BYTES = 512;

const NEWLINE = 0x0a;

/** What comes out of {@link MessageLines}. */
export interface LineReader {
	readonly onMessage: (message: JsonObject) => void;
	/** Hears of lines that are no messages, such as a program's greeting; they are passed over. */
	readonly onProblem: (error: Error) => void;
	/** Hears of a message that is too long and cannot be answered for: somebody may wait for it in vain. */
	readonly onLost: (error: Error) => void;
}

/**
 * Takes the messages out of a stream of lines, in time that grows with its length only. An answer that is longer
 * than allowed becomes an error for its request, and the connection lives on.
 */
export class MessageLines {
	readonly #maxBytes: number;
	readonly #reader: LineReader;
	#held: Buffer[] = [];
	#length = 0;
	/** The ends of a line that is too long; undefined for any other. */
	#ends: { readonly head: string; tail: string } | undefined;

	constructor(maxBytes: number, reader: LineReader) {
		this.#maxBytes = maxBytes;
		this.#reader = reader;
	}

	append(chunk: Buffer): void {
		for (let start = 0; start < chunk.length; ) {
			const newline = chunk.indexOf(NEWLINE, start);
			this.#hold(chunk.subarray(start, newline < 0 ? chunk.length : newline));
			if (newline < 0) return;
			this.#end();
			start = newline + 1;
		}
	}

	#hold(part: Buffer): void {
		this.#length += part.length;
		if (this.#ends) {
			this.#ends.tail = (
				this.#ends.tail + part.toString('latin1', Math.max(0, part.length - END_BYTES))
			).slice(-END_BYTES);
			return;
		}
		this.#held.push(part);
		if (this.#length <= this.#maxBytes) return;
		const text = Buffer.concat(this.#held);
		this.#held = [];
		this.#ends = {
			head: text.toString('latin1', 0, END_BYTES),
			tail: text.toString('latin1', text.length - END_BYTES),
		};
	}

	#end(): void {
		const [held, length, ends] = [this.#held, this.#length, this.#ends];
		this.#held = [];
		this.#length = 0;
		this.#ends = undefined;
		if (ends) return this.#tooLong(ends, length);
		const line = (held.length === 1 ? held[0] : Buffer.concat(held))?.toString('utf8').trim() ?? '';
		if (line === '') return;
		let message: unknown;
		try {
			message = JSON.parse(line);
		} catch {
			message = undefined;
		}
		if (isJsonObject(message) && message['jsonrpc'] === '2.0') this.#reader.onMessage(message);
		else this.#reader.onProblem(new Error(`A line that is no message: ${line.slice(0, 200)}`));
	}

	#tooLong({ head, tail }: { readonly head: string; readonly tail: string }, length: number): void {
		const id = idOf(head, tail);
		const message = `The message has ${length} bytes, and ${this.#maxBytes} are read at most`;
		if (id === undefined) this.#reader.onLost(new Error(message));
		else this.#reader.onMessage({ jsonrpc: '2.0', id, error: { code: WIRE_CODES.internalError, message } });
	}
}

/** How an answer begins, with its id or without. */
const HEAD =
	/^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?(?:\s*"id"\s*:\s*("[^"\\]*"|-?\d+)\s*,)?(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"(?:result|error)"/;

/** How one ends that has its id behind. */
const TAIL = /,\s*"id"\s*:\s*("[^"\\]*"|-?\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/** The id of an answer of which only the ends are known: libraries write it first or last. */
function idOf(head: string, tail: string): string | number | undefined {
	const begun = HEAD.exec(head);
	const text = begun && (begun[1] ?? TAIL.exec(tail)?.[1]);
	return text === null || text === undefined ? undefined : (JSON.parse(text) as string | number);
}
