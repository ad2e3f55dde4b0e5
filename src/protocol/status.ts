/** The five statuses of a task (2026-07-28). No other word is ever stored or sent. */
export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** A status that no task ever leaves (T24). */
export type TerminalStatus = 'completed' | 'failed' | 'cancelled';

const ARCS: Readonly<Record<TaskStatus, readonly TaskStatus[]>> = {
	working: ['input_required', 'completed', 'failed', 'cancelled'],
	input_required: ['working', 'completed', 'failed', 'cancelled'],
	completed: [],
	failed: [],
	cancelled: [],
};

/** Every status, in the order in which a task can pass through them. */
export const TASK_STATUSES: readonly TaskStatus[] = [
	'working',
	'input_required',
	'completed',
	'failed',
	'cancelled',
];

/** Whether a status is one that a task never leaves (T24). */
export function isTerminal(status: TaskStatus): status is TerminalStatus {
	return ARCS[status].length === 0;
}

/** Whether the specification allows a task to go from one status to another (T24). */
export function isAllowedArc(from: TaskStatus, to: TaskStatus): boolean {
	return ARCS[from].includes(to);
}
