import type { TaskRecord } from '../backend/record.ts';
import { toolError } from '../engine/outcome.ts';
import { pollIntervalMs } from '../engine/poll-interval.ts';
import { isJsonObject, type JsonObject, without } from '../protocol/json.ts';
import { type LegacyTask, RELATED_TASK_META } from '../protocol/legacy-tasks.ts';
import type { TaskStatus } from '../protocol/status.ts';

/** A record as the messages of 2025-11-25 carry it (L02). */
export function toLegacyTask(record: TaskRecord, nowMs: number): LegacyTask {
	return {
		taskId: record.taskId,
		status: legacyStatus(record),
		...(record.statusMessage !== null && { statusMessage: record.statusMessage }),
		createdAt: new Date(record.createdAtMs).toISOString(),
		lastUpdatedAt: new Date(record.lastUpdatedAtMs).toISOString(),
		ttl: record.ttlMs,
		pollInterval: pollIntervalMs(record, nowMs),
	};
}

/** On 2025-11-25 a tool that reported an error makes its task `failed`; on 2026-07-28 it is `completed`. */
function legacyStatus(record: TaskRecord): TaskStatus {
	return record.status === 'completed' && record.result?.['isError'] === true ? 'failed' : record.status;
}

/** What a call that has ended without a JSON-RPC error returned, without the words of 2026-07-28. */
export function legacyResult(record: TaskRecord): JsonObject {
	return without(record.result ?? toolError('The task was cancelled'), 'resultType');
}

/** The same message with the task that it belongs to in its `_meta`. */
export function relatedTo(taskId: string, message: JsonObject): JsonObject {
	const meta = isJsonObject(message['_meta']) ? message['_meta'] : {};
	return { ...message, _meta: { ...meta, [RELATED_TASK_META]: { taskId } } };
}
