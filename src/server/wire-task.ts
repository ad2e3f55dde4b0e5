import type { TaskRecord } from '../backend/record.ts';
import { pollIntervalMs } from '../engine/poll-interval.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { CreateTaskResult, DetailedTask, InputRequests, Task } from '../protocol/task.ts';

/** The wire's task of a record: exactly the fields of the specification (T10). */
function toTask(record: TaskRecord, nowMs: number): Task {
	return {
		taskId: record.taskId,
		status: record.status,
		...(record.statusMessage !== null && { statusMessage: record.statusMessage }),
		createdAt: new Date(record.createdAtMs).toISOString(),
		lastUpdatedAt: new Date(record.lastUpdatedAtMs).toISOString(),
		ttlMs: record.ttlMs,
		pollIntervalMs: pollIntervalMs(record, nowMs),
	};
}

/** What `tools/call` answers when the call became a task (T10). */
export function toCreateTaskResult(record: TaskRecord, nowMs: number): CreateTaskResult {
	return { resultType: 'task', ...toTask(record, nowMs) };
}

/** What `tasks/get` and `notifications/tasks` carry (T21, T52). */
export function toDetailedTask(record: TaskRecord, nowMs: number): DetailedTask {
	const task = toTask(record, nowMs);
	if (record.status === 'input_required') return { ...task, inputRequests: toInputRequests(record) };
	if (record.status === 'completed' && record.result) return { ...task, result: wholeResult(record.result) };
	if (record.status === 'failed' && record.error) return { ...task, error: record.error };
	return task;
}

/** A result as it stands on the wire of 2026-07-28. */
export function wholeResult(result: JsonObject): JsonObject {
	return { resultType: 'complete', ...result };
}

/** The outstanding questions of a record. */
export function toInputRequests(record: TaskRecord): InputRequests {
	return Object.fromEntries(Object.entries(record.openInputs).map(([key, open]) => [key, open.request]));
}
