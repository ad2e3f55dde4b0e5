import { type Paint, paintFor, plain, widthOf, clip } from './terminal.ts';

const REDRAW_MS = 250;

/** The cursor stays in its line while one that is too long is drawn. */
const NO_WRAP = '\u001b[?7l';
const WRAP = '\u001b[?7h';
const CLEAR_LINE = '\r\u001b[2K';
const UP_AND_CLEAR = '\u001b[1A\u001b[2K';

/** How a screen shows things. */
export interface ScreenOptions {
	/** Nothing but results and errors. */
	readonly isQuiet: boolean;
}

/**
 * What a person sees of calls while they run, on stderr: stdout is for results alone. On a terminal one live line
 * for each call, elsewhere a line for each change.
 */
export class CallScreen {
	readonly paint: Paint;
	readonly #out: NodeJS.WriteStream;
	readonly #isQuiet: boolean;
	readonly #isLive: boolean;
	readonly #live = new Map<object, () => string>();
	#redraw: NodeJS.Timeout | undefined;
	#drawn = 0;
	#pauses = 0;

	constructor(out: NodeJS.WriteStream, { isQuiet }: ScreenOptions) {
		this.#out = out;
		this.#isQuiet = isQuiet;
		this.#isLive = out.isTTY && process.env['TERM'] !== 'dumb' && !isQuiet;
		this.paint = paintFor(out);
	}

	/** Whether live lines are shown. */
	get isLive(): boolean {
		return this.#isLive;
	}

	/** One line for the person. Text from elsewhere is made safe before it comes here. */
	say(text: string): void {
		if (this.#isQuiet) return;
		this.#erase();
		this.#out.write(`${text}\n`);
		this.#draw();
	}

	/** Keeps a live line, which `text` is asked for again and again. Does nothing where lines cannot be live. */
	live(key: object, text: () => string): void {
		if (!this.#isLive) return;
		this.#live.set(key, text);
		this.#draw();
		this.#redraw ??= setInterval(() => this.#draw(), REDRAW_MS);
		this.#redraw.unref();
	}

	/** Takes a live line away. */
	still(key: object): void {
		if (!this.#live.has(key)) return;
		this.#erase();
		this.#live.delete(key);
		if (this.#live.size > 0) return this.#draw();
		clearInterval(this.#redraw);
		this.#redraw = undefined;
	}

	/** Keeps the live lines away until the returned function is called: somebody is asked something. */
	pause(): () => void {
		this.#erase();
		this.#pauses += 1;
		let isOver = false;
		return () => {
			if (isOver) return;
			isOver = true;
			this.#pauses -= 1;
			this.#draw();
		};
	}

	/** Takes every live line away for good. */
	close(): void {
		this.#erase();
		this.#live.clear();
		clearInterval(this.#redraw);
		this.#redraw = undefined;
	}

	#draw(): void {
		if (this.#live.size === 0 || this.#pauses > 0) return;
		const width = widthOf(this.#out) - 1;
		const lines = Array.from(this.#live.values(), (text) => clip(plain(text()), width));
		this.#out.write(this.#erasure() + NO_WRAP + this.paint('cyan', lines.join('\n')) + WRAP);
		this.#drawn = lines.length;
	}

	#erase(): void {
		this.#out.write(this.#erasure());
		this.#drawn = 0;
	}

	#erasure(): string {
		return this.#drawn === 0 ? '' : CLEAR_LINE + UP_AND_CLEAR.repeat(this.#drawn - 1);
	}
}
