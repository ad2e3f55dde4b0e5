import type { JsonObject, JsonValue } from '../../protocol/json.ts';
import type { TaskStatus } from '../../protocol/status.ts';
import { decodeBody, decodeInputs, decodeText, encodeBody, encodeInputs, encodeText } from '../columns.ts';
import type { TaskRecord } from '../record.ts';
import type { Parameter } from './database.ts';
import { policyOf, policyText } from './policies.ts';

/** The columns that make up a record, in the order of {@link TaskRow}. */
export const RECORD_COLUMNS = `id, task_id, revision, principal, idempotency_key, tool, status, created_at_ms,
	last_updated_at_ms, ttl_ms, run_at_ms, due_at_ms, cancel_requested_at_ms, lease_owner, lease_token,
	lease_expires_at_ms, journalled, policy, body, inputs`;

/** The columns that hold the result, or say in how many parts it is kept. */
export const RESULT_COLUMNS = 'result, result_parts';

/** One row of `tasks`. */
export type TaskRow = readonly [
	id: string,
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
	journalled: boolean,
	policy: string,
	body: string,
	inputs: string | null,
	result?: string | null,
	resultParts?: number,
];

/** Longest JSON of a result that is kept with its task, and length of a part of a longer one, in characters. */
export const PART_LENGTH = 262_144;

/** A result as it is kept: with its task, in parts, or not at all. */
export interface EncodedResult {
	readonly inline: string | null;
	readonly parts: readonly string[];
}

export function encodeResult(result: JsonObject | null): EncodedResult {
	if (result === null) return { inline: null, parts: [] };
	const text = JSON.stringify(result);
	return text.length <= PART_LENGTH ? { inline: text, parts: [] } : { inline: null, parts: partsOf(text) };
}

/** Never cuts a character of two code units, which would not survive by halves. */
function partsOf(text: string): string[] {
	const parts: string[] = [];
	for (let start = 0; start < text.length; ) {
		let end = Math.min(start + PART_LENGTH, text.length);
		if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
		parts.push(text.slice(start, end));
		start = end;
	}
	return parts;
}

/** The columns that a replacement sets, in the order of the statements. */
export function changingColumns(record: TaskRecord, result: EncodedResult): Parameter[] {
	const { lease } = record;
	return [
		record.revision,
		record.status,
		record.lastUpdatedAtMs,
		record.ttlMs,
		record.runAtMs,
		record.dueAtMs,
		record.cancelRequestedAtMs,
		lease && encodeText(lease.owner),
		lease && encodeText(lease.token),
		lease && lease.expiresAtMs,
		record.journalled,
		policyText(record.policy),
		encodeBody(record),
		encodeInputs(record),
		result.inline,
		result.parts.length,
	];
}

export function decodeRecord(row: TaskRow, result: JsonObject | null): TaskRecord {
	const body = decodeBody(row[18]);
	const inputs = decodeInputs(row[19]);
	return {
		taskId: decodeText(row[1]),
		revision: row[2],
		tool: decodeText(row[5]),
		principal: decodeText(row[3]),
		idempotencyKey: row[4] === null ? null : decodeText(row[4]),
		argumentsDigest: body.argumentsDigest,
		status: row[6],
		statusMessage: body.statusMessage,
		progress: body.progress,
		createdAtMs: row[7],
		lastUpdatedAtMs: row[8],
		ttlMs: row[9],
		policy: policyOf(row[17]),
		inputCapabilities: body.inputCapabilities,
		openInputs: inputs.openInputs,
		inputResponses: inputs.inputResponses,
		journalled: row[16],
		attempt: body.attempt,
		retries: body.retries,
		crashes: body.crashes,
		waitedMs: body.waitedMs,
		waitingSinceMs: body.waitingSinceMs,
		releasedSinceMs: body.releasedSinceMs,
		lease:
			row[14] === null
				? null
				: { owner: decodeText(row[13] ?? ''), token: decodeText(row[14]), expiresAtMs: row[15] ?? 0 },
		runAtMs: row[10],
		dueAtMs: row[11],
		cancelRequestedAtMs: row[12],
		result,
		error: body.error,
		trace: body.trace,
	};
}

/** A JSON value out of its column. */
export function decodeJson(text: string): JsonValue {
	return JSON.parse(text) as JsonValue;
}
