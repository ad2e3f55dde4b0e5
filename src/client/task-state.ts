import type { Task } from '../protocol/task.ts';

/** Where a task stands, as far as the client knows. */
export interface TaskState extends Task {
	/** False while the server cannot be reached: the rest is what it last said. */
	readonly reachable: boolean;
}

/** The state that a task is in, without its questions, result and error. */
export function toState(task: Task, reachable: boolean): TaskState {
	const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = task;
	return {
		...{ taskId, status, createdAt, lastUpdatedAt, ttlMs, reachable },
		...(statusMessage !== undefined && { statusMessage }),
		...(pollIntervalMs !== undefined && { pollIntervalMs }),
	};
}

/** Whether two states of one task say the same. */
export function sameState(a: TaskState, b: TaskState): boolean {
	return (
		a.status === b.status &&
		a.statusMessage === b.statusMessage &&
		a.lastUpdatedAt === b.lastUpdatedAt &&
		a.ttlMs === b.ttlMs &&
		a.pollIntervalMs === b.pollIntervalMs &&
		a.reachable === b.reachable
	);
}
