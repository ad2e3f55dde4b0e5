import type { JsonObject, JsonValue } from '../../protocol/json.ts';
import type { TaskStatus } from '../../protocol/status.ts';
import type { TaskPolicy, TaskRecord } from '../record.ts';

/** One row of `tasks`, with the values that lie in tables of their own. */
export interface TaskRow {
	readonly id: number;
	readonly task_id: string;
	readonly revision: number;
	readonly principal: string;
	readonly idempotency_key: string | null;
	readonly tool: string;
	readonly status: TaskStatus;
	readonly created_at_ms: number;
	readonly last_updated_at_ms: number;
	readonly ttl_ms: number;
	readonly run_at_ms: number | null;
	readonly due_at_ms: number;
	readonly cancel_requested_at_ms: number | null;
	readonly lease_owner: string | null;
	readonly lease_token: string | null;
	readonly lease_expires_at_ms: number | null;
	readonly journalled: number;
	readonly policy_id: number;
	readonly body: string;
	readonly inputs: string | null;
	readonly result?: string | null;
}

/** The fields of a record that no statement asks for: JSON in the column `body`. */
type TaskBody = Pick<
	TaskRecord,
	| 'argumentsDigest'
	| 'statusMessage'
	| 'progress'
	| 'inputCapabilities'
	| 'attempt'
	| 'retries'
	| 'crashes'
	| 'waitedMs'
	| 'waitingSinceMs'
	| 'releasedSinceMs'
	| 'error'
	| 'trace'
>;

/** JSON in the table `inputs`. */
type TaskInputs = Pick<TaskRecord, 'openInputs' | 'inputResponses'>;

/** The columns without an index that a replacement sets, in the order of the statements. */
export function plainColumns(record: TaskRecord, policyId: number, inputs: string | null) {
	const { lease } = record;
	return [
		record.revision,
		record.lastUpdatedAtMs,
		record.ttlMs,
		record.cancelRequestedAtMs,
		lease && encodeText(lease.owner),
		lease && encodeText(lease.token),
		lease && lease.expiresAtMs,
		record.journalled ? 1 : 0,
		policyId,
		record.result === null ? 0 : 1,
		inputs === null ? 0 : 1,
		encodeBody(record),
	] as const;
}

function encodeBody(record: TaskRecord): string {
	const body: TaskBody = {
		argumentsDigest: record.argumentsDigest,
		statusMessage: record.statusMessage,
		progress: record.progress,
		inputCapabilities: record.inputCapabilities,
		attempt: record.attempt,
		retries: record.retries,
		crashes: record.crashes,
		waitedMs: record.waitedMs,
		waitingSinceMs: record.waitingSinceMs,
		releasedSinceMs: record.releasedSinceMs,
		error: record.error,
		trace: record.trace,
	};
	return JSON.stringify(body);
}

/** Null where the record has neither questions nor answers. */
export function encodeInputs({ openInputs, inputResponses }: TaskRecord): string | null {
	if (isEmpty(openInputs) && isEmpty(inputResponses)) return null;
	return JSON.stringify({ openInputs, inputResponses } satisfies TaskInputs);
}

export function decodeRecord(row: TaskRow, policy: TaskPolicy): TaskRecord {
	const body = JSON.parse(row.body) as TaskBody;
	const inputs = row.inputs === null ? NO_INPUTS : (JSON.parse(row.inputs) as TaskInputs);
	return {
		taskId: decodeText(row.task_id),
		revision: row.revision,
		tool: decodeText(row.tool),
		principal: decodeText(row.principal),
		idempotencyKey: row.idempotency_key === null ? null : decodeText(row.idempotency_key),
		argumentsDigest: body.argumentsDigest,
		status: row.status,
		statusMessage: body.statusMessage,
		progress: body.progress,
		createdAtMs: row.created_at_ms,
		lastUpdatedAtMs: row.last_updated_at_ms,
		ttlMs: row.ttl_ms,
		policy,
		inputCapabilities: body.inputCapabilities,
		openInputs: inputs.openInputs,
		inputResponses: inputs.inputResponses,
		journalled: row.journalled === 1,
		attempt: body.attempt,
		retries: body.retries,
		crashes: body.crashes,
		waitedMs: body.waitedMs,
		waitingSinceMs: body.waitingSinceMs,
		releasedSinceMs: body.releasedSinceMs,
		lease:
			row.lease_token === null
				? null
				: {
						owner: decodeText(row.lease_owner ?? ''),
						token: decodeText(row.lease_token),
						expiresAtMs: row.lease_expires_at_ms ?? 0,
					},
		runAtMs: row.run_at_ms,
		dueAtMs: row.due_at_ms,
		cancelRequestedAtMs: row.cancel_requested_at_ms,
		result: typeof row.result === 'string' ? (JSON.parse(row.result) as JsonObject) : null,
		error: body.error,
		trace: body.trace,
	};
}

const NO_INPUTS: TaskInputs = { openInputs: Object.freeze({}), inputResponses: Object.freeze({}) };

/** A JSON value out of its column. */
export function decodeJson(text: string): JsonValue {
	return JSON.parse(text) as JsonValue;
}

/**
 * A string for a TEXT column. SQLite's text is UTF-8, which has no lone surrogates, so that two different
 * strings would become one, and a NUL ends it for many tools. Such strings are written as JSON, and so is
 * one that looks like it.
 */
export function encodeText(text: string): string {
	return text.isWellFormed() && !text.includes('\0') && !text.startsWith('"') ? text : JSON.stringify(text);
}

/** What {@link encodeText} was given. */
export function decodeText(text: string): string {
	return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}

function isEmpty(object: object): boolean {
	for (const _ in object) return false;
	return true;
}
