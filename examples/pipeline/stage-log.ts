/** What a stage wrote. The whole of it is only ever on disk. */
import { closeSync, existsSync, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

/** The end of a log. */
export interface LogTail {
	readonly text: string;
	/** Whether there is more before it. */
	readonly isCut: boolean;
}

const LAST_LINE_BYTES = 4_096;
const LAST_LINE_CHARACTERS = 120;

/** The log file of one stage; stages write to it by themselves, through a file descriptor. */
export class StageLog {
	readonly file: string;
	#seenBytes = 0;

	constructor(file: string) {
		this.file = file;
	}

	get sizeBytes(): number {
		return existsSync(this.file) ? statSync(this.file).size : 0;
	}

	/** A descriptor to append to, for a process that is about to be started; the caller closes it. */
	open(): number {
		const isSecondRun = existsSync(this.file);
		const descriptor = openSync(this.file, 'a', 0o600);
		if (isSecondRun) writeSync(descriptor, '\n[pipeline] The server went away; the stage begins again.\n');
		return descriptor;
	}

	/** The last line, when something was written since the last call. */
	newLine(): string | undefined {
		const size = this.sizeBytes;
		if (size === this.#seenBytes) return undefined;
		this.#seenBytes = size;
		// A progress bar rewrites its line with carriage returns: each one is a line here.
		const lines = this.#read(LAST_LINE_BYTES).split(/[\r\n]+/);
		return lines
			.findLast((line) => line.trim() !== '')
			?.trim()
			.slice(0, LAST_LINE_CHARACTERS);
	}

	/** The last lines, for a person or a model to read. */
	tail(maxBytes: number, maxLines: number): LogTail {
		const all = this.#read(maxBytes).split('\n');
		const isLong = this.sizeBytes > maxBytes;
		// The first line of a cut text is most likely half a line.
		const whole = isLong && all.length > 1 ? all.slice(1) : all;
		const lines = whole.join('\n').trimEnd().split('\n');
		return { text: lines.slice(-maxLines).join('\n'), isCut: isLong || lines.length > maxLines };
	}

	/** The last bytes as text, without what would move a terminal's cursor or colour a model's context. */
	#read(maxBytes: number): string {
		if (!existsSync(this.file)) return '';
		const descriptor = openSync(this.file, 'r');
		try {
			const { size } = fstatSync(descriptor);
			const buffer = Buffer.alloc(Math.min(size, maxBytes));
			const length = readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
			const text = stripVTControlCharacters(buffer.toString('utf8', 0, length));
			return text.replaceAll('\r\n', '\n').replace(/[^\P{Cc}\t\n\r]/gu, '');
		} finally {
			closeSync(descriptor);
		}
	}
}
