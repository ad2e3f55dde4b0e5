import { HoldfastError, messageOf } from '../../errors.ts';

/** Redis's own words for "not now": starting up, a replica that is about to take over, a cluster that moves. */
const PASSING_REPLIES = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|NOREPLICAS|UNBLOCKED) /;

/** What sockets say when there is nobody at the other end. */
const PASSING_SYSTEM_CODES: ReadonlySet<string> = new Set([
	...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN'],
]);

/** What `ioredis` says about it without a code. */
const PASSING_MESSAGE =
	/^(Connection is closed|Stream isn't writeable|Socket timeout|Command aborted|Reached the max retries)/;

/**
 * Whether the same may work in a moment: the server cannot be reached, restarts, or hands over to another one. What
 * was sent before the failure may have been done all the same.
 */
export function isPassing(error: unknown): boolean {
	if (!(error instanceof Error)) return false;
	const code: unknown = Reflect.get(error, 'code');
	if (typeof code === 'string' && PASSING_SYSTEM_CODES.has(code)) return true;
	return PASSING_MESSAGE.test(error.message) || PASSING_REPLIES.test(error.message);
}

/** Whether the server has forgotten a script, or never had it. */
export function isUnknownScript(error: unknown): boolean {
	return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** The error for whatever went wrong with the server at `place`. */
export function unusable(place: string, error: unknown): HoldfastError {
	if (error instanceof HoldfastError) return error;
	return new HoldfastError('STORE_UNUSABLE', `${place} cannot be used: ${messageOf(error)}`, {
		cause: error,
	});
}
