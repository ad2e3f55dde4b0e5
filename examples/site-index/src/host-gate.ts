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
	#wishesKnown = false;

	constructor(limits: GateLimits) {
		this.#limits = limits;
	}

	/** How long until a request may go out; nothing when one has to come back first. */
	waitMs(now: number): number | undefined {
		const oneByOne = !this.#wishesKnown || this.#limits.delayMs > 0 || this.#troubles > 0;
		const atOnce = oneByOne ? 1 : this.#limits.atOnce;
		if (this.#open >= atOnce) return undefined;
		return Math.max(0, this.#notBefore - now);
	}

	/** What the host's robots.txt asks for. Until it is known, requests go one by one. */
	keepApart(delayMs: number, now: number): void {
		if (this.#wishesKnown) return;
		this.#wishesKnown = true;
		this.#limits.delayMs = delayMs;
		if (this.#open > 0 && delayMs > 0) this.#notBefore = Math.max(this.#notBefore, now + delayMs);
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
