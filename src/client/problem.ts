import { HoldfastError, isHoldfastError, messageOf } from '../errors.ts';
import { isJsonObject } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from './sdk.ts';

/**
 * Why a request about a task has no good answer.
 *
 * - `outage`: nobody answered, or only something in front of the server. Says nothing about the task (T71).
 * - `trouble`: the server answered that it is in trouble itself. Says nothing about the task either.
 * - `forgotten`: the server does not know the task (T23).
 * - `refused`: the server will not do what was asked.
 * - `invalid`: the answer is none that the extension allows.
 */
export type ProblemKind = 'outage' | 'trouble' | 'forgotten' | 'refused' | 'invalid';

/** A failed request about a task, sorted by what it says about the task. */
export class RequestProblem extends Error {
	readonly kind: ProblemKind;
	/** How long the server wants to be left alone, in milliseconds; undefined when it did not say. */
	readonly retryAfterMs: number | undefined;

	constructor(kind: ProblemKind, cause: unknown, retryAfterMs?: number) {
		super(messageOf(cause), { cause });
		this.name = 'RequestProblem';
		this.kind = kind;
		this.retryAfterMs = retryAfterMs;
	}
}

const RPC_KINDS: Readonly<Record<number, ProblemKind>> = {
	[WIRE_CODES.invalidParams]: 'forgotten',
	[WIRE_CODES.methodNotFound]: 'refused',
	[WIRE_CODES.headerMismatch]: 'refused',
	[WIRE_CODES.missingClientCapability]: 'refused',
	[-32600]: 'refused',
};

/** The SDK's own words for an answer that it cannot read. */
const UNREADABLE: ReadonlySet<string> = new Set([
	SdkErrorCode.InvalidResult,
	SdkErrorCode.UnsupportedResultType,
]);

/** Sorts whatever the SDK threw for a request about a task. */
export function problemOf(error: unknown): RequestProblem {
	if (error instanceof RequestProblem) return error;
	if (isHoldfastError(error, 'INVALID_RESPONSE')) return new RequestProblem('invalid', error);
	// Only the bodies of HTTP 400 reach the caller as a ProtocolError; the others are inside the HTTP error.
	if (error instanceof SdkHttpError) {
		const code = rpcCodeIn(error.data['text']);
		// A session that is gone says nothing about the task: the host may connect anew.
		if (error.data.status === 404 && code !== WIRE_CODES.methodNotFound)
			return new RequestProblem('outage', error);
		if (code !== undefined) return new RequestProblem(rpcKind(code), error, retryAfterOf(error));
		return new RequestProblem('outage', error, retryAfterOf(error));
	}
	if (error instanceof ProtocolError) return new RequestProblem(rpcKind(error.code), error);
	if (error instanceof SdkError && UNREADABLE.has(error.code)) return new RequestProblem('invalid', error);
	return new RequestProblem('outage', error);
}

function rpcKind(code: number): ProblemKind {
	return RPC_KINDS[code] ?? 'trouble';
}

function rpcCodeIn(text: unknown): number | undefined {
	if (typeof text !== 'string') return undefined;
	try {
		const body: unknown = JSON.parse(text);
		const error = isJsonObject(body) && body['jsonrpc'] === '2.0' ? body['error'] : undefined;
		return isJsonObject(error) && Number.isInteger(error['code']) ? Number(error['code']) : undefined;
	} catch {
		return undefined;
	}
}

function retryAfterOf(error: SdkHttpError): number | undefined {
	const { retryAfterMs } = error.data;
	return typeof retryAfterMs === 'number' ? retryAfterMs : undefined;
}

/** What `fetch` says when no connection came about, so that nothing was sent. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
	'ECONNREFUSED',
	'ENOTFOUND',
	'EAI_AGAIN',
	'EHOSTUNREACH',
	'ENETUNREACH',
	'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * What a caller is told when a call that is no task could not be finished: OUTCOME_UNKNOWN when the connection broke
 * after the call may have reached the server, and otherwise the error itself.
 *
 * @param isCutOff - whether the stream of the answer ended without one.
 */
export function outcomeUnknown(tool: string, error: unknown, isCutOff: boolean): unknown {
	const isClosed = error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed;
	if (!isCutOff && !isClosed && !isBrokenFetch(error)) return error;
	return new HoldfastError(
		'OUTCOME_UNKNOWN',
		`The connection broke while "${tool}" was called: whether it ran is unknown. Check before calling it again.`,
		{ cause: error },
	);
}

/** `fetch` throws a TypeError whose cause is the socket's error. */
function isBrokenFetch(error: unknown): boolean {
	if (!(error instanceof TypeError) || !(error.cause instanceof Error)) return false;
	return !NOT_SENT.has(Reflect.get(error.cause, 'code'));
}
