import type { TaskRecord } from '../backend/record.ts';
import { workedMs } from './deadlines.ts';
import { isTerminal } from '../protocol/status.ts';

/**
 * How long a client should wait before it asks again, in milliseconds: a tenth of the distance to the
 * nearer of the task's start and its estimated end, within the tool's bounds. So a task is asked for often
 * while it is young and around the time at which it should end, and ever more seldom otherwise. What the
 * handler itself said goes before.
 */
export function pollIntervalMs(record: TaskRecord, nowMs: number): number {
	const { minPollIntervalMs, maxPollIntervalMs, estimateMs } = record.policy;
	if (isTerminal(record.status)) return minPollIntervalMs;
	const saidMs = record.progress?.pollIntervalMs;
	if (saidMs !== undefined) return Math.round(Math.max(minPollIntervalMs, saidMs));
	const ageMs = workedMs(record, nowMs);
	const distanceMs = estimateMs === null ? ageMs : Math.min(ageMs, Math.abs(estimateMs - ageMs));
	return Math.round(Math.min(maxPollIntervalMs, Math.max(minPollIntervalMs, distanceMs / 10)));
}
