import type { TaskRecord } from '../backend/record.ts';
import { isHoldfastError, messageOf, TaskFailure } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import type { TaskEvent } from './transition.ts';

/** How a handler ended. */
export type HandlerEnd =
	| { readonly kind: 'returned'; readonly result: unknown }
	| { readonly kind: 'threw'; readonly error: unknown }
	/** This process has no such tool. */
	| { readonly kind: 'unknown_tool' };

/** How long a task whose tool no worker knows waits for one that does, in milliseconds. */
const UNKNOWN_TOOL_PATIENCE_MS = 60_000;
const UNKNOWN_TOOL_PAUSE_MS = 2_000;

/**
 * The event that a handler's end is. A thrown error is retried where the tool asked for it, a
 * {@link TaskFailure} is `failed`, and any other error is the tool's own error: a result with `isError`.
 */
export function endEvent(record: TaskRecord, token: string, end: HandlerEnd, nowMs: number): TaskEvent {
	if (end.kind === 'unknown_tool') return unknownTool(record, token, nowMs);
	if (end.kind === 'returned') {
		const result = toResult(end.result);
		return result === undefined
			? complete(token, toolError(`The tool "${record.tool}" returned something that is not a JSON object`))
			: complete(token, result);
	}
	const { error } = end;
	if (record.cancelRequestedAtMs !== null) return { type: 'stopped', token };
	if (error instanceof TaskFailure) {
		const data = error.data === undefined ? {} : { data: error.data };
		return { type: 'fail', token, error: { code: error.code, message: error.message, ...data } };
	}
	const { maxAttempts, backoffMs, maxBackoffMs } = record.policy.retry;
	if (record.retries + 1 < maxAttempts && !isHoldfastError(error, 'INPUT_UNAVAILABLE')) {
		const waitMs = Math.min(maxBackoffMs, backoffMs * 2 ** record.retries);
		const statusMessage = `Attempt ${record.retries + 1} of ${maxAttempts} failed (${messageOf(error)}); trying again`;
		return { type: 'retry', token, runAtMs: nowMs + waitMs, statusMessage };
	}
	return complete(token, toolError(messageOf(error)));
}

/** A tool result that says what went wrong, for the model to read (T22). */
export function toolError(text: string): JsonObject {
	return { content: [{ type: 'text', text }], isError: true };
}

function complete(token: string, result: JsonObject): TaskEvent {
	return { type: 'complete', token, result };
}

function toResult(value: unknown): JsonObject | undefined {
	try {
		const copy: unknown = JSON.parse(JSON.stringify(value ?? null));
		return isJsonObject(copy) ? copy : undefined;
	} catch {
		return undefined;
	}
}

function unknownTool(record: TaskRecord, token: string, nowMs: number): TaskEvent {
	if (nowMs - (record.releasedSinceMs ?? nowMs) < UNKNOWN_TOOL_PATIENCE_MS)
		return { type: 'release', token, runAtMs: nowMs + UNKNOWN_TOOL_PAUSE_MS, isUnknown: true };
	const message = `No worker has the tool "${record.tool}" any more`;
	return { type: 'fail', token, error: { code: WIRE_CODES.internalError, message } };
}
