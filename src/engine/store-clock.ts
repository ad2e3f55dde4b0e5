import type { TaskStore } from '../backend/store.ts';
import { type Clock, every } from './clock.ts';

/** How often the two clocks are compared, in milliseconds. */
const COMPARE_MS = 30_000;

/** How many comparisons are made at a time; the quickest one is the most exact. */
const SAMPLES = 3;

/**
 * The store's clock, which decides leases and deadlines, as this process knows it: its own clock, set right by how
 * much the two differ. Reading it takes no way to the store; timers are the process's own.
 */
export class StoreClock implements Clock {
	readonly #local: Clock;
	readonly #store: Pick<TaskStore, 'nowMs'>;
	#offsetMs = 0;
	#stop: (() => void) | undefined;

	constructor(local: Clock, store: Pick<TaskStore, 'nowMs'>) {
		this.#local = local;
		this.#store = store;
	}

	nowMs(): number {
		return this.#local.nowMs() + this.#offsetMs;
	}

	after(delayMs: number, action: () => void): () => void {
		return this.#local.after(delayMs, action);
	}

	/** Compares the clocks now, and again and again until {@link stop}. The store must be open. */
	async start(): Promise<void> {
		await this.compare();
		// A comparison that fails is made up for by the next one.
		this.#stop = every(this.#local, COMPARE_MS, () => this.compare().catch(() => {}));
	}

	stop(): void {
		this.#stop?.();
	}

	/** Compares the clocks once. */
	async compare(): Promise<void> {
		let quickestMs = Infinity;
		for (let sample = 0; sample < SAMPLES; sample++) {
			const askedAtMs = this.#local.nowMs();
			const shownMs = await this.#store.nowMs();
			const tookMs = this.#local.nowMs() - askedAtMs;
			if (tookMs >= quickestMs) continue;
			quickestMs = tookMs;
			const offsetMs = Math.round(shownMs - askedAtMs - tookMs / 2);
			// The store may have been asked at any moment in between: less than that is no difference at all, least of all
			// where both are the same clock and this process was only slow.
			this.#offsetMs = Math.abs(offsetMs) <= tookMs / 2 + 1 ? 0 : offsetMs;
		}
	}
}
