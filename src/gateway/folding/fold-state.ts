import type { JsonValue } from '../../protocol/json.ts';

/**
 * What a check of a family says about the work. The first two and the next three are the statuses of a task, but
 * `failed` means here that the work went badly, which as a task is `completed` with `isError`; `lost` that the server
 * does not know the work any more, which as a task is `failed`.
 */
export const FOLD_STATES = ['working', 'input_required', 'completed', 'failed', 'cancelled', 'lost'] as const;

/** One of {@link FOLD_STATES}. */
export type FoldState = (typeof FOLD_STATES)[number];

/** A word, number or truth value with which a server names a state. */
export type StateWord = string | number | boolean;

/** Words by state. */
export type StateWords = Readonly<Record<FoldState, readonly StateWord[]>>;

/** What servers call the states, as far as one word means the same everywhere. Numbers mean something else each time. */
export const COMMON_WORDS: StateWords = {
	working: [
		...['queued', 'pending', 'waiting', 'submitted', 'scheduled', 'ready', 'created', 'accepted'],
		...['starting', 'started', 'running', 'active', 'processing', 'in_progress', 'scraping', 'building'],
		...['retrying', 'cancelling', 'canceling', 'stopping', 'cancel_in_progress', 'cancel_requested'],
	],
	input_required: ['blocked', 'on_hold', 'needs_input', 'waiting_for_approval', 'action_required'],
	completed: [
		'completed',
		'complete',
		'success',
		'succeeded',
		'successful',
		'done',
		'finished',
		'passed',
		'ok',
	],
	failed: ['failed', 'failure', 'fail', 'error', 'errored', 'timed_out', 'crashed'],
	cancelled: ['cancelled', 'canceled', 'aborted', 'terminated', 'stopped', 'killed', 'cancel_complete'],
	lost: ['unknown', 'expired', 'not_found'],
};

/** The state that a word names: as the mapping says, else as is common; undefined for a word that nobody knows. */
export function stateOf(word: JsonValue, own: StateWords): FoldState | undefined {
	const wanted = folded(word);
	for (const words of [own, COMMON_WORDS])
		for (const state of FOLD_STATES) if (words[state].some((known) => folded(known) === wanted)) return state;
	return undefined;
}

/** Whether nothing comes after a state. */
export function isEnd(state: FoldState): boolean {
	return state !== 'working' && state !== 'input_required';
}

/** Words are the same whatever their case, and with `-`, `_` or a space; numbers are the same only as numbers. */
function folded(word: JsonValue): JsonValue {
	return typeof word === 'string'
		? word
				.trim()
				.toLowerCase()
				.replace(/[\s-]+/g, '_')
		: word;
}
