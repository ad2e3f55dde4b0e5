import type { TaskRecord } from '../backend/record.ts';
import { isTerminal } from '../protocol/status.ts';

/**
 * Until when a record is kept. A task that has ended is kept for its whole retention time from its end; one
 * that lives is kept at least half of it from now, and past the deadline of its last question, so that it
 * never vanishes under a client.
 */
export function keptUntilMs(record: TaskRecord, nowMs: number): number {
	const { retentionMs } = record.policy;
	if (isTerminal(record.status)) return record.lastUpdatedAtMs + retentionMs;
	const promisedMs = record.createdAtMs + record.ttlMs;
	const neededMs = Math.max(nowMs + retentionMs / 2, lastInputDeadlineMs(record) + retentionMs);
	return neededMs < promisedMs ? promisedMs : Math.ceil(neededMs + retentionMs / 2);
}

/** When the sweeper must look at a record again. */
export function dueAtMs(record: TaskRecord): number {
	const expiresAtMs = record.createdAtMs + record.ttlMs;
	if (isTerminal(record.status)) return expiresAtMs;
	if (record.lease !== null) return record.lease.expiresAtMs;
	return waitDeadlineMs(record);
}

/** When a live record needs attention apart from its lease: a missed answer, or a lifetime to be extended. */
export function waitDeadlineMs(record: TaskRecord): number {
	const deadlines = Object.values(record.openInputs).map((input) => input.deadlineAtMs);
	return Math.min(
		...deadlines,
		record.createdAtMs + record.ttlMs - Math.floor(record.policy.retentionMs / 2),
	);
}

/** Whether an ended record's retention is over. */
export function isExpired(record: TaskRecord, nowMs: number): boolean {
	return isTerminal(record.status) && record.createdAtMs + record.ttlMs <= nowMs;
}

function lastInputDeadlineMs(record: TaskRecord): number {
	return Math.max(0, ...Object.values(record.openInputs).map((input) => input.deadlineAtMs)) || -Infinity;
}

/** How long a task has been worked on at `nowMs`: its age without the time in which it waited for answers. */
export function workedMs(record: TaskRecord, nowMs: number): number {
	const waitingMs = record.waitingSinceMs === null ? 0 : nowMs - record.waitingSinceMs;
	return nowMs - record.createdAtMs - record.waitedMs - waitingMs;
}
