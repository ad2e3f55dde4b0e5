import { type Backend, MACHINE_TIME, type TimeSource } from '../backend.ts';
import { MemoryDispatcher } from './dispatcher.ts';
import { MemorySignals } from './signals.ts';
import { MemoryStore } from './store.ts';

/** Options of {@link memory}. */
export interface MemoryOptions {
	/** Where the time comes from. Default: the machine's clock. */
	readonly time?: TimeSource;
}

/** A backend for tests and trials: no task survives the process. */
export function memory(options: MemoryOptions = {}): Backend {
	const store = new MemoryStore(options.time ?? MACHINE_TIME);
	return {
		name: 'memory',
		store,
		dispatcher: new MemoryDispatcher(store),
		signals: new MemorySignals(),
		open: async () => {},
		close: async () => {},
	};
}
