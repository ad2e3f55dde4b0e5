import type { JsonObject, JsonValue } from '../../protocol/json.ts';
import type { TaskStatus } from '../../protocol/status.ts';
import { decodeBody, decodeInputs, decodeText, encodeBody, encodeText } from '../columns.ts';
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
	const body = decodeBody(bodyText);
	const inputs = decodeInputs(inputsText);
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

/** A JSON value out of its column. */
export function decodeJson(text: string): JsonValue {
	return JSON.parse(text) as JsonValue;
}
