/** A number from 0 to 1, 1 excluded; `Math.random` unless a test decides. */
export type Random = () => number;

/** The interval when the server gives none, for a young task. */
const DEFAULT_INTERVAL_MS = 2_000;

/** The longest interval when the server gives none. */
const MAX_DEFAULT_INTERVAL_MS = 10_000;

/** However small the server's interval is, a task is not asked for more often. */
const MIN_INTERVAL_MS = 250;

/** Share of an interval that is added at random, so that tasks which began together do not stay together. */
const JITTER = 0.1;

const FIRST_BACKOFF_MS = 500;
/** Short, since in an outage one request per back-off is all that a connection sends. */
const MAX_BACKOFF_MS = 10_000;

/** When a new task is asked for the first time: within half a second, whatever its interval. */
export function firstPollMs(random: Random): number {
	return 150 + random() * 200;
}

/**
 * How long to wait after one answer before the next question (T70): the server's interval as a floor; 2 s when
 * it gives none, growing to 10 s with the age of the task; a tenth more at random.
 */
export function nextPollMs(pollIntervalMs: number | undefined, ageMs: number, random: Random): number {
	const intervalMs =
		pollIntervalMs ?? Math.min(MAX_DEFAULT_INTERVAL_MS, Math.max(DEFAULT_INTERVAL_MS, ageMs / 30));
	return Math.max(MIN_INTERVAL_MS, intervalMs) * (1 + JITTER * random());
}

/**
 * How long to leave a server alone after `failures` failures in a row, the first being 1: doubling from 0.5 s to
 * `maxMs`, half of it at random, never less than what the server asked for.
 */
export function backoffMs(
	failures: number,
	retryAfterMs: number | undefined,
	random: Random,
	maxMs: number = MAX_BACKOFF_MS,
): number {
	const fullMs = Math.min(maxMs, FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 20));
	return Math.max(retryAfterMs ?? 0, fullMs / 2 + (fullMs / 2) * random());
}
