import type { CallScreen } from './call-screen.ts';
import { type ProgressView, progressLine } from './progress-bar.ts';
import { span } from './task-view.ts';
import { plain } from './terminal.ts';

const ELAPSED_WIDTH = 7;

/** The line that stands for a call: on a terminal with a running clock, elsewhere written anew when there is news. */
export class CallLine {
	readonly #screen: CallScreen;
	readonly #tool: string;
	readonly #sinceMs: number;
	#view: ProgressView = { fraction: undefined, message: '', left: undefined };
	#said = '';

	/** @param sinceMs - when the call began, in milliseconds since the epoch. */
	constructor(screen: CallScreen, tool: string, sinceMs: number) {
		this.#screen = screen;
		this.#tool = tool;
		this.#sinceMs = sinceMs;
	}

	get elapsedMs(): number {
		return Math.max(0, Date.now() - this.#sinceMs);
	}

	/** Shows where the call stands now. */
	show(view: ProgressView): void {
		this.#view = view;
		if (this.#screen.isLive) return this.#screen.live(this, () => this.#text());
		// That less time is left is no news.
		const news = progressLine({ ...view, left: undefined });
		if (news !== this.#said) this.#screen.say(plain(this.#text()));
		this.#said = news;
	}

	/** Takes the line away. */
	end(): void {
		this.#screen.still(this);
	}

	#text(): string {
		const elapsed = span(this.elapsedMs).padStart(ELAPSED_WIDTH);
		return `${elapsed}  ${this.#tool}  ${progressLine(this.#view)}`;
	}
}
