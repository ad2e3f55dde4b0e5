import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { ENTRY, until } from './harness.ts';

/** Whether this machine can give a pseudo-terminal: Python's standard library does, where there is a Python 3. */
export const HAS_PTY =
	process.platform !== 'win32' && spawnSync('python3', ['-c', 'import pty, termios']).status === 0;

/** Every sequence that a terminal obeys, and what is not seen on it. */
// oxlint-disable-next-line no-control-regex
const SEQUENCES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78])|[\r\u0007]/g;

export const KEYS = {
	ctrlC: '\u0003',
	enter: '\r',
	down: '\u001b[B',
	up: '\u001b[A',
	clear: '\u0015',
} as const;

const open: ChildProcess[] = [];
afterEach(() => {
	for (const child of open.splice(0)) child.kill('SIGKILL');
});

/** The command, as it runs for a person at a terminal. */
export class Terminal {
	readonly #child: ChildProcess;
	readonly #closed: Promise<unknown>;
	#raw = '';
	#seen = 0;

	constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
		const own = {
			...process.env,
			CI: undefined,
			FORCE_COLOR: undefined,
			NO_COLOR: '1',
			TERM: 'xterm',
			...env,
		};
		this.#child = spawn('python3', [join(import.meta.dirname, 'in-terminal.py'), ...command], { env: own });
		this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#raw += text));
		this.#child.stdin?.on('error', () => {});
		this.#closed = once(this.#child, 'close');
		open.push(this.#child);
	}

	/** Runs holdfast with these words. */
	static holdfast(args: readonly string[], env: Readonly<Record<string, string>>): Terminal {
		return new Terminal([process.execPath, ENTRY, ...args], env);
	}

	/** Everything that was shown, without what only moves the cursor. */
	get shown(): string {
		return this.#raw.replace(SEQUENCES, '');
	}

	/** The bytes that the terminal was sent. */
	get raw(): string {
		return this.#raw;
	}

	/** Waits until something new is shown; what comes before it counts as seen. */
	async sees(pattern: RegExp): Promise<RegExpExecArray> {
		const found = await until(`${pattern} on the terminal: ${this.shown}`, () => {
			const match = pattern.exec(this.shown.slice(this.#seen));
			if (!match && this.#child.exitCode !== null) throw new Error(`it ended, and showed: ${this.shown}`);
			return match ?? undefined;
		});
		this.#seen += found.index + found[0].length;
		return found;
	}

	/** Types keys. */
	type(keys: string): void {
		this.#child.stdin?.write(keys);
	}

	/** Waits for the end; answers the exit code. */
	async ended(): Promise<number | null> {
		await this.#closed;
		return this.#child.exitCode;
	}
}
