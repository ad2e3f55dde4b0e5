/** Starts, releases and kills victims. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

const VICTIM = join(import.meta.dirname, 'victim.ts');

export interface VictimFiles {
	readonly dbFile: string;
	readonly effectsFile: string;
	/** Shared by all victims, so that starting one is quick. */
	readonly cacheFolder: string;
	readonly timing: Readonly<Record<string, number>>;
}

/** One process: loaded, then serving, then dead. */
export class VictimProcess {
	readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
	readonly #lines: AsyncIterator<string>;
	readonly #loaded: Promise<unknown>;
	readonly #exited: Promise<unknown>;
	/** What it complained about. */
	stderr = '';
	isDead = false;

	constructor({ dbFile, effectsFile, cacheFolder, timing }: VictimFiles) {
		this.#child = spawn(process.execPath, [VICTIM, dbFile, effectsFile, JSON.stringify(timing)], {
			stdio: ['pipe', 'pipe', 'pipe'],
			env: { ...process.env, NODE_COMPILE_CACHE: cacheFolder, NODE_OPTIONS: '' },
		});
		this.#child.stdin.on('error', () => {});
		this.#child.stderr.on('data', (chunk: Buffer) => {
			this.stderr += String(chunk);
		});
		this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]();
		this.#exited = once(this.#child, 'exit').then(() => {
			this.isDead = true;
		});
		this.#loaded = this.#line();
	}

	get pid(): number {
		return this.#child.pid ?? 0;
	}

	/** Resolves when it could begin at once. */
	async loaded(): Promise<void> {
		await this.#loaded;
	}

	/** Lets it open its database and listen. Undefined when it was killed before it did. */
	async serve(): Promise<string | undefined> {
		await this.#loaded;
		this.#child.stdin.write('go\n');
		const url = await this.#line();
		if (url === undefined && !this.#child.killed)
			throw new Error(`The victim ended by itself: ${this.stderr}`);
		return url;
	}

	/** SIGKILL; resolves when the process is gone. */
	async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
		this.#child.kill(signal);
		await this.#exited;
	}

	async #line(): Promise<string | undefined> {
		const { value, done } = await this.#lines.next();
		return done === true ? undefined : value;
	}
}
