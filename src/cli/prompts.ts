import { type CANCEL_SYMBOL, isCancel, multiselect, note, select, text } from '@clack/prompts';
import { clip, plain, widthOf } from './terminal.ts';

/** One of several things to choose from. */
export interface Choice<Value> {
	readonly value: Value;
	readonly label: string;
	readonly hint?: string;
}

/** Thrown when the person pressed Ctrl-C or Esc instead of answering. */
export class PromptLeft extends Error {}

/** What is around a title. */
const FRAME_WIDTH = 10;

/** How many choices are seen at once. */
const MAX_ITEMS = 12;

/**
 * Questions at the terminal, on stderr. All words may come from a stranger: none reaches the terminal unescaped.
 * Every method throws {@link PromptLeft} when the person leaves the question, and the signal's reason when it fires.
 */
export class Prompts {
	readonly #signal: AbortSignal;

	constructor(signal: AbortSignal) {
		this.#signal = signal;
	}

	/** Words that belong to the questions that follow. */
	show(title: string, body: string): void {
		// A title is not broken into lines.
		const fitting = clip(title, widthOf(process.stderr) - FRAME_WIDTH);
		note(safe(body), fitting, { output: process.stderr });
	}

	/** One line of text; `check` answers what is wrong with it. */
	async text(
		message: string,
		initialValue: string,
		check: (text: string) => string | undefined,
	): Promise<string> {
		const validate = (value: string | undefined): string | undefined => safeOrNone(check(value ?? ''));
		const answer = await text({ ...this.#common(message), initialValue: plain(initialValue), validate });
		// No text at all comes as undefined, whatever the type says.
		return this.#answered(answer) || '';
	}

	/** One of several. */
	async choose<Value>(
		message: string,
		choices: readonly Choice<Value>[],
		initial: Value | undefined,
	): Promise<Value> {
		const index = choices.findIndex(({ value }) => value === initial);
		const answer = await select<number>({
			...this.#common(message),
			...{ options: options(choices), initialValue: Math.max(0, index), maxItems: MAX_ITEMS },
			showInstructions: false,
		});
		return valueAt(choices, this.#answered(answer));
	}

	/** Any number of several; `check` answers what is wrong with a selection. */
	async chooseSome<Value>(
		message: string,
		choices: readonly Choice<Value>[],
		initial: readonly Value[],
		check: (values: readonly Value[]) => string | undefined,
	): Promise<readonly Value[]> {
		let chosen = initial;
		for (let problem: string | undefined; ; ) {
			const answer = await multiselect<number>({
				...this.#common(problem === undefined ? message : `${message} (${problem})`),
				options: options(choices),
				initialValues: choices.flatMap(({ value }, index) => (chosen.includes(value) ? [index] : [])),
				...{ required: false, maxItems: MAX_ITEMS },
			});
			chosen = this.#answered(answer).map((index) => valueAt(choices, index));
			problem = check(chosen);
			if (problem === undefined) return chosen;
		}
	}

	#common(message: string) {
		return { message: safe(message), input: process.stdin, output: process.stderr, signal: this.#signal };
	}

	#answered<T>(answer: T | typeof CANCEL_SYMBOL): T {
		if (!isCancel(answer)) return answer;
		this.#signal.throwIfAborted();
		throw new PromptLeft();
	}
}

/** Values are told apart by their place: they need not be what a prompt can compare. */
function options(choices: readonly Choice<unknown>[]): { value: number; label: string; hint?: string }[] {
	return choices.map(({ label, hint }, value) => ({
		...{ value, label: plain(label) },
		...(hint !== undefined && { hint: plain(hint) }),
	}));
}

function valueAt<Value>(choices: readonly Choice<Value>[], index: number): Value {
	const choice = choices[index];
	if (!choice) throw new RangeError(`There is no choice ${index}`);
	return choice.value;
}

function safe(words: string): string {
	return plain(words, '\n');
}

function safeOrNone(words: string | undefined): string | undefined {
	return words === undefined ? undefined : safe(words);
}
