import { messageOf } from '../../errors.ts';
import type { Signals, TaskChange } from '../signals.ts';

/** Tells the listeners of this process. */
export class MemorySignals implements Signals {
	readonly #listeners = new Set<(change: TaskChange) => void>();

	publish(change: TaskChange): void {
		for (const listener of this.#listeners) {
			try {
				listener(change);
			} catch (error) {
				// The change is stored: whoever published it, and the other listeners, have no part in this.
				process.emitWarning(`a listener for task changes failed: ${messageOf(error)}`, 'HoldfastWarning');
			}
		}
	}

	subscribe(listener: (change: TaskChange) => void): () => void {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	}
}
