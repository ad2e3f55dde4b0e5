import type { Signals, TaskChange } from '../backend/signals.ts';

/** Fans changes out to whoever listens for one task. */
export class Watch {
	readonly #signals: Signals;
	readonly #listeners = new Map<string, Set<(change: TaskChange) => void>>();
	#unsubscribe: (() => void) | undefined;

	constructor(signals: Signals) {
		this.#signals = signals;
	}

	/** Begins to listen to the backend. */
	open(): void {
		this.#unsubscribe ??= this.#signals.subscribe((change) => {
			for (const listener of [...(this.#listeners.get(change.taskId) ?? [])]) listener(change);
		});
	}

	close(): void {
		this.#unsubscribe?.();
		this.#unsubscribe = undefined;
		this.#listeners.clear();
	}

	/** Calls `listener` for each change of one task until the returned function is called. */
	on(taskId: string, listener: (change: TaskChange) => void): () => void {
		const listeners = this.#listeners.get(taskId) ?? new Set();
		this.#listeners.set(taskId, listeners.add(listener));
		return () => {
			listeners.delete(listener);
			if (listeners.size === 0 && this.#listeners.get(taskId) === listeners) this.#listeners.delete(taskId);
		};
	}
}
