import type { Clock } from '../engine/clock.ts';

interface Timer {
	readonly atMs: number;
	readonly action: () => void;
}

/** Time that stands still until a test moves it. */
export class FakeClock implements Clock {
	#nowMs: number;
	readonly #timers = new Set<Timer>();

	/** @param startMs - milliseconds since the epoch at which the clock begins. */
	constructor(startMs = Date.UTC(2026, 6, 28)) {
		this.#nowMs = startMs;
	}

	/** Timers that wait. */
	get pending(): number {
		return this.#timers.size;
	}

	nowMs(): number {
		return this.#nowMs;
	}

	after(delayMs: number, action: () => void): () => void {
		const timer: Timer = { atMs: this.#nowMs + Math.max(0, delayMs), action };
		this.#timers.add(timer);
		return () => void this.#timers.delete(timer);
	}

	/**
	 * Moves time on, firing each timer at its instant, and lets everything that follows from it happen before
	 * the next one fires.
	 */
	async advance(byMs: number): Promise<void> {
		const untilMs = this.#nowMs + byMs;
		await settle();
		for (;;) {
			const next = [...this.#timers].sort((a, b) => a.atMs - b.atMs)[0];
			if (!next || next.atMs > untilMs) break;
			this.#timers.delete(next);
			this.#nowMs = Math.max(this.#nowMs, next.atMs);
			next.action();
			await settle();
		}
		this.#nowMs = untilMs;
		await settle();
	}

	/** Moves time on without firing anything: the process was asleep, or the clock jumped. */
	jump(byMs: number): void {
		this.#nowMs += byMs;
	}
}

const underWay = new Set<Promise<unknown>>();

/**
 * Makes {@link settle}, and with it every fake clock, wait for work that takes real time, such as a query. Answers
 * what it was given.
 */
export function awaited<T>(work: Promise<T>): Promise<T> {
	const ended: Promise<unknown> = work.then(
		() => underWay.delete(ended),
		() => underWay.delete(ended),
	);
	underWay.add(ended);
	return work;
}

/** Lets everything that is ready to run do so, and what is {@link awaited} end. */
export async function settle(): Promise<void> {
	do {
		await Promise.all(underWay);
		for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
	} while (underWay.size > 0);
}
