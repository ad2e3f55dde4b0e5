import type { TaskProgress } from '../backend/record.ts';

/**
 * What a handler may say about how far it is: words alone, or numbers with or without words; and from when on
 * asking again is worth it.
 */
export type ProgressNote = string | Partial<TaskProgress>;

/** A note made whole from what was said before. */
export function nextProgress(before: TaskProgress | null, note: ProgressNote): TaskProgress {
	const said = typeof note === 'string' ? { message: note } : note;
	const total = said.total ?? (said.progress === undefined ? before?.total : undefined);
	const message = said.message ?? (said.progress === undefined ? before?.message : undefined);
	const pollIntervalMs = finite(said.pollIntervalMs) ?? before?.pollIntervalMs;
	return {
		progress: finite(said.progress) ?? before?.progress ?? 0,
		...(finite(total) !== undefined && { total: finite(total) ?? 0 }),
		...(message !== undefined && { message }),
		...(pollIntervalMs !== undefined && { pollIntervalMs }),
	};
}

/**
 * The words for `statusMessage`: what the handler said, with percentage and remaining time where known.
 *
 * @param elapsedMs - since the task began.
 * @param standingMs - since the number last changed; a number that stands says nothing about the pace.
 */
export function progressText(
	progress: TaskProgress,
	elapsedMs: number,
	standingMs: number,
	estimateMs: number | null,
): string {
	const { total, message } = progress;
	const fraction =
		total !== undefined && total > 0 ? Math.min(1, Math.max(0, progress.progress / total)) : undefined;
	const words =
		message ?? (total === undefined ? `${progress.progress} done` : `${progress.progress} of ${total}`);
	const percent = fraction === undefined ? undefined : `${Math.floor(fraction * 100)}%`;
	const left = remainingMs(fraction, elapsedMs, standingMs, estimateMs);
	const extra = [percent, left === undefined ? undefined : `about ${durationText(left)} left`].filter(
		(part) => part !== undefined,
	);
	return extra.length === 0 ? words : `${words} (${extra.join(', ')})`;
}

/** A duration in the largest fitting unit, as a person says it. */
export function durationText(durationMs: number): string {
	const seconds = Math.max(1, Math.round(durationMs / 1000));
	if (seconds < 90) return `${seconds} s`;
	if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
	return seconds < 36 * 3600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** Extrapolates once enough has been seen to mean something; before that the tool's own estimate speaks. */
function remainingMs(
	fraction: number | undefined,
	elapsedMs: number,
	standingMs: number,
	estimateMs: number | null,
): number | undefined {
	const pacedMs = elapsedMs - standingMs;
	if (fraction !== undefined && fraction >= 0.05 && pacedMs >= 2_000) {
		const leftMs = (pacedMs / fraction) * (1 - fraction) - standingMs;
		return leftMs < 1_000 ? undefined : leftMs;
	}
	return estimateMs !== null && estimateMs > elapsedMs ? estimateMs - elapsedMs : undefined;
}

function finite(value: number | undefined): number | undefined {
	return value !== undefined && Number.isFinite(value) ? value : undefined;
}
