import type { Dispatcher } from './dispatcher.ts';
import type { Signals } from './signals.ts';
import type { TaskStore } from './store.ts';

/** A store, a dispatcher and signals that belong together. */
export interface Backend {
	/** `memory`, `sqlite`, `postgres` or `redis`. */
	readonly name: string;
	readonly store: TaskStore;
	readonly dispatcher: Dispatcher;
	readonly signals: Signals;
	/**
	 * Connects, and refuses a store that it does not fit. Must be called once before anything else. A store of one
	 * machine is made and brought up to date by it; one that several machines share is migrated beforehand.
	 */
	open(): Promise<void>;
	/** Lets go of everything; nothing may be called afterwards. Calling it twice does nothing. */
	close(): Promise<void>;
}

/** Where a backend that has no clock of its own gets the time. Replaced in tests. */
export interface TimeSource {
	/** Milliseconds since the epoch. */
	nowMs(): number;
}

/** The machine's clock. */
export const MACHINE_TIME: TimeSource = { nowMs: () => Date.now() };
