/** Starts, stops, pauses and kills the processes of a fleet. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Wire } from '../field/wire.ts';
import type { StoreAddress } from './stores.ts';

const PROCESS = join(import.meta.dirname, 'fleet-process.ts');

export type Role = 'requests' | 'worker';

export interface MemberFiles {
	readonly effectsFile: string;
	/** Shared by all, so that starting one is quick. */
	readonly cacheFolder: string;
}

/** A place in the fleet; whenever its process is killed, another one takes it. */
export class Member {
	readonly role: Role;
	readonly #args: readonly string[];
	readonly #cacheFolder: string;
	#child: ChildProcess | undefined;
	#wire: Wire | undefined;

	constructor(role: Role, store: StoreAddress, { effectsFile, cacheFolder }: MemberFiles) {
		this.role = role;
		this.#args = [PROCESS, role, JSON.stringify(store), effectsFile];
		this.#cacheFolder = cacheFolder;
	}

	/** The way to a request server; undefined while it is down. */
	get wire(): Wire | undefined {
		return this.#wire;
	}

	/** Resolves when it serves or works. One that cannot be reached by then is tried again, as a supervisor would. */
	async start(): Promise<void> {
		for (;;) {
			const child = spawn(process.execPath, this.#args, {
				stdio: ['ignore', 'pipe', 'ignore'],
				env: { ...process.env, NODE_COMPILE_CACHE: this.#cacheFolder, NODE_OPTIONS: '' },
			});
			this.#child = child;
			const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
			const { value, done } = await lines.next();
			if (this.#child !== child) return;
			if (done === true) continue;
			if (this.role === 'requests') this.#wire = new Wire(value);
			return;
		}
	}

	/** SIGKILL; resolves when the process is gone. */
	async kill(): Promise<void> {
		const child = this.#child;
		this.#child = undefined;
		this.#wire?.close();
		this.#wire = undefined;
		if (!child || child.exitCode !== null || child.signalCode !== null) return;
		const gone = once(child, 'exit');
		child.kill('SIGKILL');
		await gone;
	}

	/** It stands still, and does not know it. */
	pause(): void {
		this.#child?.kill('SIGSTOP');
	}

	resume(): void {
		this.#child?.kill('SIGCONT');
	}
}
