import type { TaskStatus } from './status.ts';

/** The one protocol version that has the experimental Tasks (L01). */
export const LEGACY_TASKS_VERSION = '2025-11-25';

/** `_meta` key that ties a message of that version to the task it belongs to (L02). */
export const RELATED_TASK_META = 'io.modelcontextprotocol/related-task';

/** What a server of that version advertises under `capabilities.tasks`, in full form (L01). */
export const LEGACY_TASKS_CAPABILITY = { list: {}, cancel: {}, requests: { tools: { call: {} } } } as const;

/** What a tool says under `execution.taskSupport`; a tool that says nothing is `forbidden`. */
export type TaskSupport = 'optional' | 'required' | 'forbidden';

/** A task as the messages of 2025-11-25 carry it (L02). */
export interface LegacyTask {
	readonly taskId: string;
	readonly status: TaskStatus;
	readonly statusMessage?: string;
	/** ISO 8601. */
	readonly createdAt: string;
	/** ISO 8601. */
	readonly lastUpdatedAt: string;
	/** Milliseconds after `createdAt` for which the task is kept; null is unlimited. */
	readonly ttl: number | null;
	/** Milliseconds that a client should wait between two `tasks/get`. */
	readonly pollInterval?: number;
}
