import { setInterval } from 'node:timers';
import { clip, type Paint, paintFor, widthOf } from './terminal.ts';

const REDRAW_MS = 100;
const BAR_WIDTH = 30;
const CLEAR_LINE = '\r\u001b[2K';

/** What a person sees of the demo: lines with the time at which they came, and on a terminal a live one below. */
export class DemoScreen {
	readonly paint: Paint;
	readonly #out: NodeJS.WriteStream;
	readonly #startedAtMs = performance.now();
	#live: string | undefined;
	#redraw: NodeJS.Timeout | undefined;

	constructor(out: NodeJS.WriteStream) {
		this.#out = out;
		this.paint = paintFor(out);
	}

	/** One line with the time since the start. Text from elsewhere is made safe before it comes here. */
	say(text: string): void {
		this.line(`${this.paint('dim', this.#elapsed())}  ${text}`);
	}

	/** One line without a time. */
	line(text = ''): void {
		this.#clear();
		this.#out.write(`${text}\n`);
		this.#draw();
	}

	/** The line that is kept at the bottom of a terminal, with a running clock; undefined takes it away. */
	live(text: string | undefined): void {
		if (!this.#out.isTTY) return;
		this.#clear();
		this.#live = text;
		clearInterval(this.#redraw);
		if (text === undefined) return;
		this.#draw();
		this.#redraw = setInterval(() => this.#draw(), REDRAW_MS);
		this.#redraw.unref();
	}

	#clear(): void {
		if (this.#live !== undefined) this.#out.write(CLEAR_LINE);
	}

	#draw(): void {
		if (this.#live === undefined) return;
		const text = clip(`${this.#elapsed()}  ${bar(this.#live)}`, widthOf(this.#out) - 1);
		this.#out.write(CLEAR_LINE + this.paint('cyan', text));
	}

	#elapsed(): string {
		return `${((performance.now() - this.#startedAtMs) / 1_000).toFixed(1)} s`.padStart(7);
	}
}

/** A bar for the percentage in a task's words; the words themselves where there is none. */
function bar(words: string): string {
	const percent = /\((\d{1,3})%/.exec(words)?.[1];
	if (percent === undefined) return words;
	const full = Math.round((Math.min(100, Number(percent)) / 100) * BAR_WIDTH);
	return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${percent}%`;
}
