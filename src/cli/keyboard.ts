import type { ReadStream } from 'node:tty';

const CTRL_C = 0x03;
const CTRL_Z = 0x1a;

/**
 * The terminal's keys while calls run. The terminal is read key by key, because otherwise it sends Ctrl-C to every
 * process that it started, a server on stdio among them, before anybody could be asked what is meant. A prompt
 * reads the terminal itself; meanwhile the keyboard is paused.
 */
export class Keyboard {
	readonly #input: ReadStream;
	readonly #onInterrupt: () => void;
	readonly #onData = (keys: Buffer): void => {
		if (keys.includes(CTRL_C)) this.#onInterrupt();
		else if (keys.includes(CTRL_Z)) this.#suspend();
	};
	readonly #toLines = (): void => void this.#input.setRawMode(false);
	#isOpen = false;

	constructor(input: ReadStream, onInterrupt: () => void) {
		this.#input = input;
		this.#onInterrupt = onInterrupt;
	}

	/** Begins to read keys, or goes on. */
	open(): void {
		if (this.#isOpen) return;
		this.#isOpen = true;
		this.#input.setRawMode(true).on('data', this.#onData).resume();
		// However the process ends, the shell gets its terminal back.
		process.once('exit', this.#toLines);
	}

	/** Stops reading keys; the terminal is as it was. */
	close(): void {
		if (!this.#isOpen) return;
		this.#isOpen = false;
		this.#input.off('data', this.#onData).pause();
		this.#toLines();
		process.off('exit', this.#toLines);
	}

	#suspend(): void {
		if (process.platform === 'win32') return;
		this.close();
		process.once('SIGCONT', () => this.open());
		process.kill(process.pid, 'SIGTSTP');
	}
}
