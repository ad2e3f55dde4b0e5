import type { ProgressNote } from '../../engine/progress.ts';
import type { JsonValue } from '../../protocol/json.ts';
import type { FoldMapping } from './fold-mapping.ts';
import { type FoldState, stateOf } from './fold-state.ts';
import type { Reply } from './place.ts';

/** How a server answers that has no work under the handle that it was given. */
const NOT_KNOWN =
	/\bnot[ _-]?found\b|\bunknown\b|\bexpired\b|\bno (such|\w+ found)\b|\bdo(es)?(n't| not) exist\b/i;

/** What a reply says about the work. */
export interface FoldStatus {
	/** Undefined when it says nothing that is understood. */
	readonly state: FoldState | undefined;
	/** The word that says so, or that nobody knows; undefined when there is none. */
	readonly word: JsonValue | undefined;
}

/** Reads the status in the reply of a check. */
export function readStatus(mapping: FoldMapping, reply: Reply): FoldStatus {
	const { paths, outcome, words } = mapping.status;
	let first: JsonValue | undefined;
	for (const path of paths) {
		const word = reply.find([path]);
		if (word === undefined) continue;
		first ??= word;
		const state = stateOf(word, words);
		if (state === undefined) continue;
		if (state !== 'completed' || !outcome) return { state, word };
		const how = reply.find([outcome]);
		const ending = how === undefined ? undefined : stateOf(how, words);
		return ending === undefined ? { state, word } : { state: ending, word: how };
	}
	if (first !== undefined) return { state: undefined, word: first };
	return { state: NOT_KNOWN.test(reply.text) ? 'lost' : undefined, word: undefined };
}

/** What is said about the task while the work goes on. */
export function noteOf(
	mapping: FoldMapping,
	{ state, word }: FoldStatus,
	reply: Reply,
): Exclude<ProgressNote, string> {
	const number = (name: 'done' | 'total' | 'percent'): number | undefined => {
		const place = mapping.progress[name];
		const value = place === undefined ? undefined : Number(reply.find([place]) ?? Number.NaN);
		return Number.isFinite(value) ? value : undefined;
	};
	const { message: place } = mapping.progress;
	const said = place === undefined ? undefined : reply.find([place]);
	const words = [
		state === 'input_required' ? 'Needs something on the server' : undefined,
		text(said) ?? text(word),
	];
	const percent = number('percent');
	const done = percent ?? number('done');
	const total = percent === undefined ? number('total') : 100;
	return {
		message: words.filter((part) => part !== undefined).join(': '),
		...(done !== undefined && { progress: done }),
		...(total !== undefined && { total }),
	};
}

function text(value: JsonValue | undefined): string | undefined {
	return value === undefined || typeof value === 'object' ? undefined : String(value);
}
