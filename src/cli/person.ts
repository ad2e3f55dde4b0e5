import type { CallControls } from './call-controls.ts';
import type { CallScreen } from './call-screen.ts';
import { Keyboard } from './keyboard.ts';
import type { Choice, Prompts } from './prompts.ts';

/** What a person who pressed Ctrl-C wants. */
export type Wish = 'stay' | 'decline' | 'cancel' | 'leave';

/** Asks the person something; see {@link Person.attend}. */
export type Conversation<T> = (prompts: Prompts) => Promise<T>;

/**
 * Whoever sits at the terminal. One thing is asked at a time, and nothing else is drawn meanwhile. Ctrl-C asks
 * what is meant; Ctrl-C again leaves the calls to themselves.
 */
export class Person {
	readonly #screen: CallScreen;
	readonly #controls: CallControls;
	readonly #keyboard: Keyboard;
	#line: Promise<unknown> = Promise.resolve();
	#isGone = false;

	constructor(screen: CallScreen, controls: CallControls) {
		this.#screen = screen;
		this.#controls = controls;
		this.#keyboard = new Keyboard(process.stdin, () => void this.#interrupted());
	}

	/** Whether there is a person to ask: both ends of the conversation are at a terminal. */
	static isThere(): boolean {
		const { stdin, stderr, env } = process;
		return stdin.isTTY && stderr.isTTY && (env['CI'] ?? '') === '' && env['TERM'] !== 'dumb';
	}

	/** Begins to take notice of Ctrl-C. */
	greet(): void {
		this.#keyboard.open();
	}

	/** Gives the terminal back. */
	dismiss(): void {
		this.#isGone = true;
		this.#keyboard.close();
	}

	/**
	 * Has one conversation when its turn has come.
	 *
	 * @throws the signal's reason when it fires, whatever the conversation throws otherwise.
	 */
	attend<T>(signal: AbortSignal, conversation: Conversation<T>): Promise<T> {
		const turn = this.#line.then(async () => {
			signal.throwIfAborted();
			this.#keyboard.close();
			const resume = this.#screen.pause();
			try {
				const { Prompts } = await import('./prompts.ts');
				return await conversation(new Prompts(signal));
			} finally {
				resume();
				if (!this.#isGone) this.#keyboard.open();
			}
		});
		this.#line = turn.catch(() => {});
		return turn;
	}

	/** Asks what Ctrl-C was meant to do. */
	async wish(prompts: Prompts, isQuestion: boolean): Promise<Wish> {
		const { PromptLeft } = await import('./prompts.ts');
		const { canLeave } = this.#controls;
		const choices: Choice<Wish>[] = [
			canLeave
				? { value: 'leave', label: 'Leave it running', hint: 'come back with holdfast resume' }
				: { value: 'cancel', label: 'Cancel it', hint: 'it is no task: it cannot be left running' },
			...(canLeave ? [{ value: 'cancel' as const, label: 'Cancel it' }] : []),
			...(isQuestion ? [{ value: 'decline' as const, label: 'Decline the question' }] : []),
			{ value: 'stay', label: isQuestion ? 'Back to the question' : 'Keep waiting' },
		];
		const message = canLeave
			? 'Cancel it or leave it running? (Ctrl-C again leaves it)'
			: 'Cancel it? (Ctrl-C again does)';
		try {
			return await prompts.choose(message, choices, choices[0]?.value);
		} catch (error) {
			if (error instanceof PromptLeft) return canLeave ? 'leave' : 'cancel';
			throw error;
		}
	}

	/** Does what was wished, as far as it concerns the calls. */
	obey(wish: Wish): void {
		if (wish === 'leave') this.#controls.leave('asked');
		else if (wish === 'cancel') this.#controls.cancel();
	}

	async #interrupted(): Promise<void> {
		const { over, cancelling } = this.#controls;
		// Whoever has cancelled, and loses patience with the server.
		if (cancelling.aborted) return this.#controls.leave('asked');
		// It throws where the calls end while the person thinks.
		await this.attend(over, async (prompts) => this.obey(await this.wish(prompts, false))).catch(() => {});
	}
}
