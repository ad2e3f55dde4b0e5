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
	/** Connects and brings the schema up to date. Must be called once before anything else. */
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
