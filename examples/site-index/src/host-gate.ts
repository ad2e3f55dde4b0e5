/** When the next request to a host may go out: so many at a time, so far apart, and not while it asks for quiet. */

export interface GateLimits {
	readonly atOnce: number;
	delayMs: number;
}

const shortestBackOffMs = 1_000;
const longestBackOffMs = 5 * 60_000;

export class HostGate {
	readonly #limits: GateLimits;
	/** Called when a request came back, the one that has waited longest first. */
	readonly #users = new Set<() => void>();
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
		const users = [...this.#users];
		for (const onFree of users) onFree();
		// Whoever was first now is last the next time, so that no crawl keeps another one out.
		const [first] = users;
		if (first !== undefined && this.#users.delete(first)) this.#users.add(first);
	}

	join(onFree: () => void): void {
		this.#users.add(onFree);
	}

	/** Tells whether somebody else still uses the gate. */
	part(onFree: () => void): boolean {
		this.#users.delete(onFree);
		return this.#users.size > 0;
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

/** The gates of one process: crawls that come to the same host share what it may be asked at once. */
export class HostGates {
	readonly #gates = new Map<string, HostGate>();

	/** The gate of a host; it calls back whenever a request came back. */
	join(origin: string, atOnce: number, onFree: () => void): HostGate {
		let gate = this.#gates.get(origin);
		if (gate === undefined) {
			gate = new HostGate({ atOnce, delayMs: 0 });
			this.#gates.set(origin, gate);
		}
		gate.join(onFree);
		return gate;
	}

	part(origin: string, onFree: () => void): void {
		if (this.#gates.get(origin)?.part(onFree) === false) this.#gates.delete(origin);
	}
}
