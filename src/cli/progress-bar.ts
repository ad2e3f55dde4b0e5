import { span } from './task-view.ts';

const BAR_WIDTH = 24;

/** How far a tool must be before its pace says when it ends. */
const MIN_FRACTION = 0.05;
const MIN_PACE_MS = 2_000;

/** How far something is, as it is shown. */
export interface ProgressView {
	/** From 0 to 1; undefined when it is not known. */
	readonly fraction: number | undefined;
	readonly message: string;
	/** How long it still takes, in words; undefined when it is not known. */
	readonly left: string | undefined;
}

/**
 * Reads how far a task is from its status message, the only place where MCP has it: holdfast's own form,
 * `words (40%, about 2 min left)`, or any percentage in the words.
 *
 * @param elapsedMs - since the task began, from which the rest is estimated where the words have none.
 */
export function readProgress(words: string, elapsedMs: number): ProgressView {
	const [, message, own, left] =
		/^(.*?) \((?:(\d{1,3})%)?(?:(?:, |(?<=\())about ([^()]+) left)?\)$/s.exec(words) ?? [];
	const isOwn = own !== undefined || left !== undefined;
	const percent = isOwn ? own : /(?<![\d.])(\d{1,3})(?:\.\d+)?\s?%/.exec(words)?.[1];
	const fraction = percent === undefined || Number(percent) > 100 ? undefined : Number(percent) / 100;
	return {
		fraction,
		message: isOwn ? (message ?? '') : words,
		left: left ?? (isOwn ? undefined : estimate(fraction, elapsedMs)),
	};
}

/** The same for the numbers of a progress notification. */
export function progressOf(
	{
		progress,
		total,
		message,
	}: { progress: number; total?: number | undefined; message?: string | undefined },
	elapsedMs: number,
): ProgressView {
	const fraction = total !== undefined && total > 0 ? Math.min(1, Math.max(0, progress / total)) : undefined;
	const words = message ?? (total === undefined ? `${progress} done` : `${progress} of ${total}`);
	return { fraction, message: words, left: estimate(fraction, elapsedMs) };
}

function estimate(fraction: number | undefined, elapsedMs: number): string | undefined {
	if (fraction === undefined || fraction < MIN_FRACTION || fraction >= 1 || elapsedMs < MIN_PACE_MS)
		return undefined;
	return span((elapsedMs / fraction) * (1 - fraction));
}

/** `[######------]  50%`; empty when nothing is known. */
export function bar(fraction: number | undefined): string {
	if (fraction === undefined) return '';
	const full = Math.round(fraction * BAR_WIDTH);
	const percent = `${Math.floor(fraction * 100)}%`;
	return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${percent.padStart(4)}`;
}

/** One line of everything that is known. */
export function progressLine({ fraction, message, left }: ProgressView): string {
	const parts = [bar(fraction), message, left === undefined ? '' : `about ${left} left`];
	return parts.filter((part) => part !== '').join('  ');
}
