/**
 * Gets runnable tasks to workers. It carries ids only: the engine claims a task by writing a lease to its
 * record, so an id that is handed out twice is run once.
 */
export interface Dispatcher {
	/** Ids of tasks whose `runAtMs` has come, longest waiting first. */
	take(nowMs: number, limit: number): Promise<readonly string[]>;
	/** The earliest `runAtMs` of all tasks; null when none waits to be run. */
	nextRunAtMs(): Promise<number | null>;
}
