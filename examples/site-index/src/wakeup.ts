import { setTimeout as wait } from 'node:timers/promises';

export type Sleep = (durationMs: number, signal: AbortSignal) => Promise<void>;

export const usualSleep: Sleep = async (durationMs, signal) => {
	await wait(durationMs, undefined, { signal });
};

/** Waits for something to have changed since it was last waited for, or for a time. */
export class Wakeup {
	readonly #sleep: Sleep;
	readonly #signal: AbortSignal;
	#changed = Promise.withResolvers<void>();

	constructor(sleep: Sleep, signal: AbortSignal) {
		this.#sleep = sleep;
		this.#signal = signal;
		signal.addEventListener('abort', this.wake);
	}

	readonly wake = (): void => this.#changed.resolve();

	/** Waits, for no longer than some milliseconds; Infinity when only a change will do. */
	async next(waitMs: number): Promise<void> {
		if (waitMs === Infinity) await this.#changed.promise;
		else {
			const woken = new AbortController();
			const signal = AbortSignal.any([this.#signal, woken.signal]);
			await Promise.race([this.#changed.promise, this.#sleep(waitMs, signal).catch(() => undefined)]);
			woken.abort();
		}
		this.#changed = Promise.withResolvers();
	}
}
