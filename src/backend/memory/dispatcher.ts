import type { Dispatcher } from '../dispatcher.ts';
import type { TaskRecord } from '../record.ts';
import type { MemoryStore } from './store.ts';

/** Reads what is runnable straight from the store. */
export class MemoryDispatcher implements Dispatcher {
	readonly #store: MemoryStore;

	constructor(store: MemoryStore) {
		this.#store = store;
	}

	async take(nowMs: number, limit: number): Promise<readonly string[]> {
		return this.#waiting()
			.filter(({ runAtMs }) => runAtMs <= nowMs)
			.slice(0, limit)
			.map(({ taskId }) => taskId);
	}

	async nextRunAtMs(): Promise<number | null> {
		return this.#waiting()[0]?.runAtMs ?? null;
	}

	#waiting(): (TaskRecord & { runAtMs: number })[] {
		return this.#store
			.records()
			.filter((record): record is TaskRecord & { runAtMs: number } => record.runAtMs !== null)
			.sort((a, b) => a.runAtMs - b.runAtMs);
	}
}
