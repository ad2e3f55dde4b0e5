/** A small seeded generator (mulberry32), so that a failed run can be played again with the same choices. */
export class Random {
	#state: number;

	constructor(seed: number) {
		this.#state = seed >>> 0;
	}

	/** From 0 up to, not including, 1. */
	next(): number {
		this.#state = (this.#state + 0x6d2b79f5) >>> 0;
		let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	}

	/** A whole number within bounds, both included. */
	between(least: number, greatest: number): number {
		return least + Math.floor(this.next() * (greatest - least + 1));
	}

	isOneIn(count: number): boolean {
		return this.next() * count < 1;
	}

	pick<T>(choices: readonly [T, ...T[]]): T {
		return choices[Math.floor(this.next() * choices.length)] ?? choices[0];
	}
}
