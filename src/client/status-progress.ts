import { isTerminal } from '../protocol/status.ts';
import type { CallToolRequestOptions } from './sdk.ts';
import type { TaskState } from './task-state.ts';

/** Hears the progress of a call, as the SDK's `callTool` takes it. */
export type OnProgress = NonNullable<CallToolRequestOptions['onprogress']>;

/** What a step is that the task's words give no number for: small enough to stand within one percent. */
const STEP = 0.01;

/**
 * Tells the words of a task as the progress of its call. A task of 2026-07-28 has words alone; where they hold a
 * percentage that is the progress, of a total of 100. Otherwise it is a count of the words. It never falls or
 * stands still, as MCP wants it.
 */
export class StatusProgress {
	readonly #onProgress: OnProgress;
	#said: string | undefined;
	#progress = 0;
	#hasTotal = false;

	constructor(onProgress: OnProgress) {
		this.#onProgress = onProgress;
	}

	/** Takes the next state of the task; the end is the result's to tell. */
	tell({ status, statusMessage }: TaskState): void {
		if (isTerminal(status) || statusMessage === undefined || statusMessage === this.#said) return;
		this.#said = statusMessage;
		const percentage = percentageIn(statusMessage);
		this.#hasTotal ||= percentage !== undefined;
		const next = this.#progress + (this.#hasTotal ? STEP : 1);
		this.#progress = Math.max(percentage ?? 0, next);
		this.#onProgress({
			progress: this.#progress,
			...(this.#hasTotal && { total: 100 }),
			message: statusMessage,
		});
	}
}

/** `12%` or `12.5 %` in words, when it is one that a part can have. */
function percentageIn(words: string): number | undefined {
	const [, number] = /(?<![\d.])(\d{1,3}(?:\.\d+)?)\s?%/.exec(words) ?? [];
	const percentage = number === undefined ? undefined : Number(number);
	return percentage !== undefined && percentage <= 100 ? percentage : undefined;
}
