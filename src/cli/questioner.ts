import type { InputRequest, InputResponse } from '../protocol/task.ts';
import type { CallControls } from './call-controls.ts';
import type { CallScreen } from './call-screen.ts';
import type { Person, Wish } from './person.ts';
import type { Guard } from './question-form.ts';
import { plain } from './terminal.ts';

/** What is done with the questions of a server. */
export type QuestionPolicy = 'ask' | 'decline' | 'leave';

/** Where a question comes from. */
export interface QuestionOrigin {
	readonly server: string;
	readonly tool: string;
	/** The question's key within its task; undefined for a call that is none. */
	readonly key: string | undefined;
	readonly signal: AbortSignal;
}

/** The person declines in the middle of a form. */
class Declined extends Error {}

/** The person lets go of the call in the middle of a form. */
class LetGo extends Error {}

/** Answers the questions of servers, or has the person answer them. */
export class Questioner {
	readonly #screen: CallScreen;
	readonly #controls: CallControls;
	readonly #person: Person | undefined;
	readonly #policy: QuestionPolicy;
	/** What was left open for somebody else to answer, by key. */
	readonly open = new Map<string, InputRequest>();

	/** @param person - undefined where nobody is at a terminal. */
	constructor(
		screen: CallScreen,
		controls: CallControls,
		person: Person | undefined,
		policy: QuestionPolicy,
	) {
		this.#screen = screen;
		this.#controls = controls;
		this.#person = person;
		this.#policy = policy;
	}

	/**
	 * Answers a question; waits without end once nobody is there to take the answer.
	 *
	 * @throws Error for a question that this command has no answer to.
	 */
	async answer(request: InputRequest, origin: QuestionOrigin): Promise<InputResponse> {
		if (request.method !== 'elicitation/create') return this.#answerForMachine(request, origin);
		if (this.#policy === 'decline') {
			this.#say(origin, `declined: ${wordsOf(request)}`);
			return { action: 'decline' };
		}
		if (this.#policy === 'leave' || !this.#person) return this.#leaveOpen(request, origin);
		return this.#ask(this.#person, request, origin);
	}

	async #ask(person: Person, request: InputRequest, origin: QuestionOrigin): Promise<InputResponse> {
		const { signal, server, tool } = origin;
		const { askElicitation } = await import('./question-form.ts');
		const { PromptLeft } = await import('./prompts.ts');
		try {
			return await person.attend(signal, async (prompts) => {
				const guard: Guard = async (prompt) => {
					for (;;) {
						try {
							return await prompt();
						} catch (error) {
							if (!(error instanceof PromptLeft)) throw error;
							const wish: Wish = await person.wish(prompts, true);
							if (wish === 'decline') throw new Declined();
							person.obey(wish);
							if (wish !== 'stay') throw new LetGo();
						}
					}
				};
				return askElicitation(prompts, guard, request, `${tool} of ${server}`);
			});
		} catch (error) {
			if (error instanceof Declined) return { action: 'decline' };
			if (error instanceof LetGo) return new Promise(() => {});
			if (signal.aborted && !this.#controls.leaving.aborted && !this.#controls.cancelling.aborted)
				this.#say(origin, 'its question is not open any more');
			throw error;
		}
	}

	#leaveOpen(request: InputRequest, origin: QuestionOrigin): Promise<InputResponse> {
		if (origin.key === undefined) {
			this.#say(origin, `nobody is here to answer: ${wordsOf(request)}`);
			return Promise.resolve({ action: 'cancel' });
		}
		this.open.set(origin.key, request);
		this.#say(origin, `waits for an answer: ${wordsOf(request)}`);
		// Questions that are asked together are shown together.
		setImmediate(() => this.#controls.letGo('question'));
		return new Promise(() => {});
	}

	#answerForMachine({ method }: InputRequest, origin: QuestionOrigin): InputResponse {
		if (method === 'roots/list') return { roots: [] };
		const words = `asked for ${method}, and this command has no model to give it to`;
		this.#say(origin, words);
		throw new Error(`The server ${words}`);
	}

	#say({ tool }: QuestionOrigin, words: string): void {
		this.#screen.say(`${plain(tool)} ${plain(words)}`);
	}
}

/** What a question says, for one line. */
function wordsOf({ method, params }: InputRequest): string {
	const message = params?.['message'];
	return typeof message === 'string' && message !== '' ? message : method;
}
