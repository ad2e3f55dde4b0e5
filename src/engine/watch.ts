import type { Signals } from '../backend/signals.ts';
import { type Clock, every } from './clock.ts';

/** How often every listener is made to look by itself, in case a signal was lost. */
const BACKSTOP_MS = 4_000;

/** Fans changes out to whoever listens for one task. */
export class Watch {
	readonly #signals: Signals;
	readonly #listeners = new Map<string, Set<() => void>>();
	readonly #clock: Clock;
	readonly #stops: (() => void)[] = [];
	#stopBackstop: (() => void) | undefined;

	constructor(signals: Signals, clock: Clock) {
		this.#signals = signals;
		this.#clock = clock;
	}

	/** Begins to listen to the backend. */
	open(): void {
		if (this.#stops.length > 0) return;
		this.#stops.push(this.#signals.subscribe((change) => this.#poke(change.taskId)));
	}

	close(): void {
		for (const stop of this.#stops.splice(0)) stop();
		this.#listeners.clear();
		this.#endBackstop();
	}

	/** Calls `listener` when one task may have changed, until the returned function is called. */
	on(taskId: string, listener: () => void): () => void {
		const listeners = this.#listeners.get(taskId) ?? new Set();
		this.#listeners.set(taskId, listeners.add(listener));
		this.#stopBackstop ??= every(this.#clock, BACKSTOP_MS, async () => {
			for (const watched of this.#listeners.keys()) this.#poke(watched);
		});
		return () => {
			listeners.delete(listener);
			if (listeners.size === 0 && this.#listeners.get(taskId) === listeners) this.#listeners.delete(taskId);
			if (this.#listeners.size === 0) this.#endBackstop();
		};
	}

	#endBackstop(): void {
		this.#stopBackstop?.();
		this.#stopBackstop = undefined;
	}

	#poke(taskId: string): void {
		for (const listener of [...(this.#listeners.get(taskId) ?? [])]) listener();
	}
}
