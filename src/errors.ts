import type { JsonValue } from './protocol/json.ts';
import { WIRE_CODES } from './protocol/names.ts';

/**
 * Every local error code, with what it means. Match on the code, never on the message.
 * `docs/errors.md` has one row for each, and a test compares the two.
 */
export const ERROR_CODES = {
	INVALID_OPTION: 'an option has a wrong type or is out of range',
	TASK_NOT_FOUND: 'no such task for this principal: unknown, expired and foreign ids look the same',
	TASK_LIMIT: 'the principal or the server has as many tasks as the limits allow',
	IDEMPOTENCY_CONFLICT: 'the idempotency key was used with another tool or other arguments',
	INPUT_UNAVAILABLE: 'the client that called cannot be asked for this kind of input',
	INPUT_KEY_REUSED: 'a handler used one input key for two different questions',
	STEP_NOT_SERIALIZABLE: 'a step returned something that is not JSON',
	LEASE_LOST: 'another worker took the task over; nothing more is recorded for this attempt',
	NOT_STARTED: 'the method needs start() first',
	NO_PRINCIPAL: 'the request is authenticated, but it cannot be told for whom',
	STORE_NEWER: 'the store was written by a newer version of holdfast',
	STORE_UNUSABLE: 'the store cannot be opened or is not a holdfast store',
	NETWORK_FILE_SYSTEM: 'the SQLite file lies on a network file system, where its locks do not hold',
	CLOSED: 'the object was closed before',
	TASK_CANCELLED: 'the task was cancelled, by this client or by another',
	TASK_EXPIRED: "the server did not answer until the task's lifetime was over; the outcome is unknown",
	INVALID_RESPONSE: 'the server answered something that the Tasks extension does not allow',
	OUTCOME_UNKNOWN: 'the connection broke during a call that was no task; it may have run, so check first',
	DETACHED: 'this execution stopped watching; the task lives on and can be resumed by its reference',
	INVALID_REFERENCE: 'the text is not a task reference of holdfast, or one of another server',
	UPSTREAM_UNAVAILABLE: 'a server behind the gateway cannot be started or reached',
	INVALID_CONFIG:
		'the configuration of the gateway is wrong; the message has the line and the reason of each fault',
	JOURNAL_NEWER: 'the journal was written by a newer version of holdfast',
	JOURNAL_UNUSABLE: 'the journal cannot be opened or is not a holdfast journal',
} as const;

/** A local error code. */
export type ErrorCode = keyof typeof ERROR_CODES;

const BRAND = Symbol.for('holdfast/error');

/** The base of every error that holdfast throws. */
export class HoldfastError extends Error {
	readonly code: ErrorCode;

	constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
		super(message, options);
		this.name = 'HoldfastError';
		this.code = code;
		Object.defineProperty(this, BRAND, { value: true });
	}
}

/**
 * Whether a value is a {@link HoldfastError}, also one of another installed copy of holdfast, and
 * optionally whether it has this code.
 */
export function isHoldfastError(value: unknown, code?: ErrorCode): value is HoldfastError {
	return (
		value instanceof Error && BRAND in value && (code === undefined || Reflect.get(value, 'code') === code)
	);
}

/**
 * Thrown by a tool handler to end its task as `failed` with exactly this JSON-RPC error. Any other error
 * that a handler throws is a tool error: the task is `completed` with `isError: true` (T22).
 */
export class TaskFailure extends Error {
	/** A JSON-RPC error code. */
	readonly code: number;
	readonly data?: JsonValue;

	constructor(code: number, message: string, data?: JsonValue) {
		super(message);
		this.name = 'TaskFailure';
		this.code = code;
		if (data !== undefined) this.data = data;
	}
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}

/** The JSON-RPC code that a local error has on the wire. */
export function wireCodeOf(code: ErrorCode): number {
	return code === 'TASK_NOT_FOUND' || code === 'IDEMPOTENCY_CONFLICT' || code === 'TASK_LIMIT'
		? WIRE_CODES.invalidParams
		: WIRE_CODES.internalError;
}
