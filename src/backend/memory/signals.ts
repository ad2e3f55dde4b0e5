import type { Signals, TaskChange } from '../signals.ts';

/** Tells the listeners of this process. */
export class MemorySignals implements Signals {
	readonly #listeners = new Set<(change: TaskChange) => void>();

	publish(change: TaskChange): void {
		for (const listener of this.#listeners) listener(change);
	}

	subscribe(listener: (change: TaskChange) => void): () => void {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	}
}
