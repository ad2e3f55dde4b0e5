/** "Task X is now revision N." Level-triggered: a listener reads the record when it cares. */
export interface TaskChange {
	readonly taskId: string;
	readonly revision: number;
	/** Whether a worker can claim the task now or later. */
	readonly runnable: boolean;
}

/**
 * Tells every process about changes. A change may be told twice, late or, when a process is cut off, never:
 * whoever waits also looks by itself now and then.
 */
export interface Signals {
	/** Called after the change was stored. Never throws. */
	publish(change: TaskChange): void;
	/** Changes of this and all other processes, from now on. The returned function ends it. */
	subscribe(listener: (change: TaskChange) => void): () => void;
}
