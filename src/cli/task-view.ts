import { workedMs } from '../engine/deadlines.ts';
import type { TaskRecord } from '../backend/record.ts';
import { progressText } from '../engine/progress.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { TaskStatus } from '../protocol/status.ts';
import { plain } from './terminal.ts';

/** The colour of each status. */
export const STATUS_COLOURS = {
	working: 'cyan',
	input_required: 'yellow',
	completed: 'green',
	failed: 'red',
	cancelled: 'dim',
} as const satisfies Readonly<Record<TaskStatus, string>>;

/** What `--json` shows of a task in a list. */
export function summaryOf(record: TaskRecord): JsonObject {
	const { progress } = record;
	return {
		taskId: record.taskId,
		status: record.status,
		tool: record.tool,
		principal: record.principal,
		statusMessage: record.statusMessage,
		progress: progress && { ...progress },
		createdAt: isoTime(record.createdAtMs),
		lastUpdatedAt: isoTime(record.lastUpdatedAtMs),
		ttlMs: record.ttlMs,
		attempt: record.attempt,
		isCancelRequested: record.cancelRequestedAtMs !== null,
		openInputs: Object.keys(record.openInputs),
	};
}

/** A worker as people know it: the machine and the process id; what else is in an owner's name is for machines. */
export function workerName(owner: string): string {
	return plain(owner.split('#')[0] ?? owner);
}

/** Where a task stands, in words: what it said last, or how far it said it was. */
export function standOf(record: TaskRecord): string {
	if (record.statusMessage !== null) return record.statusMessage;
	if (record.progress === null) return '';
	return progressText(record.progress, workedMs(record, record.lastUpdatedAtMs), 0, record.policy.estimateMs);
}

/** A point in time as ISO 8601. */
export function isoTime(atMs: number): string {
	return new Date(atMs).toISOString();
}

/** The same for a point in time that may never have come. */
export function isoTimeOrNull(atMs: number | null): string | null {
	return atMs === null ? null : isoTime(atMs);
}

/** How long ago, or in how long, in the two largest units: `3m 20s`. */
export function span(durationMs: number): string {
	const seconds = Math.round(Math.abs(durationMs) / 1_000);
	const parts = [
		[Math.floor(seconds / 86_400), 'd'],
		[Math.floor(seconds / 3_600) % 24, 'h'],
		[Math.floor(seconds / 60) % 60, 'm'],
		[seconds % 60, 's'],
	] as const;
	const first = parts.findIndex(([count]) => count > 0);
	const shown = first < 0 ? parts.slice(-1) : parts.slice(first, first + 2);
	return shown
		.filter(([count], index) => count > 0 || index === 0)
		.map(([count, unit]) => `${count}${unit}`)
		.join(' ');
}
