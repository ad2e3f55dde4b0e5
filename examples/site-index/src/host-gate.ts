/** When the next request to a host may go out: so many at a time, so far apart, and not while it asks for quiet. */

export interface GateLimits {
	readonly atOnce: number;
	delayMs: number;
}

const shortestBackOffMs = 1_000;
const longestBackOffMs = 5 * 60_000;

export class HostGate {
	readonly #limits: GateLimits;
	#open = 0;
	#notBefore = 0;
	#troubles = 0;

	constructor(limits: GateLimits) {
		this.#limits = limits;
	}

	/** How long until a request may go out; nothing when one has to come back first. */
	waitMs(now: number): number | undefined {
		const atOnce = this.#limits.delayMs > 0 || this.#troubles > 0 ? 1 : this.#limits.atOnce;
		if (this.#open >= atOnce) return undefined;
		return Math.max(0, this.#notBefore - now);
	}

	/** What the host's robots.txt asks for, known only once it is read. */
	keepApart(delayMs: number): void {
		this.#limits.delayMs = delayMs;
	}

	enter(now: number): void {
		this.#open += 1;
		if (this.#limits.delayMs > 0) this.#notBefore = Math.max(this.#notBefore, now + this.#limits.delayMs);
	}

	leave(): void {
		this.#open -= 1;
	}

	/** The host answered well: full speed again. */
	calm(): void {
		this.#troubles = 0;
	}

	/** The host asked for quiet, or failed: for how long nothing is sent to it. */
	backOff(now: number, askedMs: number | undefined): number {
		this.#troubles += 1;
		const own = shortestBackOffMs * 2 ** Math.min(this.#troubles - 1, 10);
		const pauseMs = Math.min(askedMs ?? own, longestBackOffMs);
		this.#notBefore = Math.max(this.#notBefore, now + pauseMs);
		return pauseMs;
	}
}
