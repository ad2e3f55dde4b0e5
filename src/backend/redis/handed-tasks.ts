import type { TaskDetails } from '../record.ts';

/**
 * Tasks that came together with their ids when they were taken, for whoever reads them at once. They are forgotten at
 * the end of this turn of the event loop, so that none is older than an answer of the server that was just read.
 */
export class HandedTasks {
	readonly #tasks = new Map<string, TaskDetails>();

	put(tasks: readonly TaskDetails[]): void {
		if (tasks.length === 0) return;
		for (const details of tasks) this.#tasks.set(details.record.taskId, details);
		setImmediate(() => this.#tasks.clear());
	}

	/** Hands a task over, once. */
	take(taskId: string): TaskDetails | undefined {
		const details = this.#tasks.get(taskId);
		this.#tasks.delete(taskId);
		return details;
	}
}
