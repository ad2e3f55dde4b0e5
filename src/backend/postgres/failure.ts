import { HoldfastError, messageOf } from '../../errors.ts';

/** Postgres's own words for "not now": shutting down, starting up, too many connections, a lost race. */
const PASSING_STATES: ReadonlySet<string> = new Set([
	...['57P01', '57P02', '57P03', '53300', '40001', '40P01', '25006'],
]);

/** What sockets say when there is nobody at the other end. */
const PASSING_SYSTEM_CODES: ReadonlySet<string> = new Set([
	...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN'],
]);

/** What `pg` says about it without a code. */
const PASSING_MESSAGE =
	/^(Connection terminated|Query read timeout|timeout exceeded|Client has encountered a connection error|Client was closed)/;

/**
 * Whether the same may work in a moment: the server cannot be reached, restarts, or has moved to another machine.
 * What was sent before the failure may have been done all the same.
 */
export function isPassing(error: unknown): boolean {
	if (!(error instanceof Error)) return false;
	if (error instanceof AggregateError) return error.errors.some(isPassing);
	const code = codeOf(error);
	if (code === undefined) return PASSING_MESSAGE.test(error.message);
	return PASSING_STATES.has(code) || PASSING_SYSTEM_CODES.has(code) || code.startsWith('08');
}

/** Whether the database says that a table or schema is not there. */
export function isMissing(error: unknown): boolean {
	const code = codeOf(error);
	return code === '42P01' || code === '3F000';
}

/** The error for whatever went wrong with the database at `place`. */
export function unusable(place: string, error: unknown): HoldfastError {
	if (error instanceof HoldfastError) return error;
	const reason = error instanceof AggregateError ? error.errors.map(messageOf).join('; ') : messageOf(error);
	return new HoldfastError('STORE_UNUSABLE', `${place} cannot be used: ${reason}`, { cause: error });
}

function codeOf(error: unknown): string | undefined {
	const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
	return typeof code === 'string' ? code : undefined;
}
