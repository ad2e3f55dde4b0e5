import type { JsonObject, JsonValue } from '../../protocol/json.ts';
import type { TaskStatus } from '../../protocol/status.ts';
import type { TaskPolicy, TaskRecord } from '../record.ts';

/** One row of `tasks`, in the order of the columns in statements.ts. An array costs a third of an object. */
export type TaskRow = readonly [
	id: number,
	taskId: string,
	revision: number,
	principal: string,
	idempotencyKey: string | null,
	tool: string,
	status: TaskStatus,
	createdAtMs: number,
	lastUpdatedAtMs: number,
	ttlMs: number,
	runAtMs: number | null,
	dueAtMs: number,
	cancelRequestedAtMs: number | null,
	leaseOwner: string | null,
	leaseToken: string | null,
	leaseExpiresAtMs: number | null,
	journalled: number,
	policyId: number,
	body: string,
	inputs: string | null,
	result?: string | null,
];

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
	const [
		,
		taskId,
		revision,
		principal,
		idempotencyKey,
		tool,
		status,
		createdAtMs,
		lastUpdatedAtMs,
		ttlMs,
		runAtMs,
		dueAtMs,
		cancelRequestedAtMs,
		leaseOwner,
		leaseToken,
		leaseExpiresAtMs,
		journalled,
		,
		bodyText,
		inputsText,
		result,
	] = row;
	const body = JSON.parse(bodyText) as TaskBody;
	const inputs = inputsText === null ? NO_INPUTS : (JSON.parse(inputsText) as TaskInputs);
	return {
		taskId: decodeText(taskId),
		revision,
		tool: decodeText(tool),
		principal: decodeText(principal),
		idempotencyKey: idempotencyKey === null ? null : decodeText(idempotencyKey),
		argumentsDigest: body.argumentsDigest,
		status,
		statusMessage: body.statusMessage,
		progress: body.progress,
		createdAtMs,
		lastUpdatedAtMs,
		ttlMs,
		policy,
		inputCapabilities: body.inputCapabilities,
		openInputs: inputs.openInputs,
		inputResponses: inputs.inputResponses,
		journalled: journalled === 1,
		attempt: body.attempt,
		retries: body.retries,
		crashes: body.crashes,
		waitedMs: body.waitedMs,
		waitingSinceMs: body.waitingSinceMs,
		releasedSinceMs: body.releasedSinceMs,
		lease:
			leaseToken === null
				? null
				: {
						owner: decodeText(leaseOwner ?? ''),
						token: decodeText(leaseToken),
						expiresAtMs: leaseExpiresAtMs ?? 0,
					},
		runAtMs,
		dueAtMs,
		cancelRequestedAtMs,
		result: typeof result === 'string' ? (JSON.parse(result) as JsonObject) : null,
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
