import { backoffMs, type Random } from './cadence.ts';
import type { Clock } from './clock.ts';
import { problemOf } from './problem.ts';

/** What a gate needs. */
export interface RequestGateDeps {
	readonly clock: Clock;
	readonly random: Random;
	/** How many requests are in flight at once; the rest waits in line. */
	readonly maxConcurrent: number;
}

interface Waiter {
	readonly admit: () => void;
	readonly signal: AbortSignal;
}

/**
 * Every request about a task passes through its connection's gate. It bounds how many are in flight, and in an
 * outage lets one through at a time, after a back-off that grows: so an outage costs the server one request
 * per back-off, however many tasks wait.
 */
export class RequestGate {
	readonly #deps: RequestGateDeps;
	readonly #waiting = new Set<Waiter>();
	#active = 0;
	#failures = 0;
	/** Counts changes between up and down, so that requests from before a change do not count. */
	#epoch = 0;
	#closedUntilMs = 0;
	#cancelTimer: (() => void) | undefined;

	constructor(deps: RequestGateDeps) {
		this.#deps = deps;
	}

	/** Whether the last that was heard of the server is an outage. */
	get isDown(): boolean {
		return this.#failures > 0;
	}

	/**
	 * Does one request when its turn has come.
	 *
	 * @param signal - gives the place in line up, and is the caller's to hand to the request as well.
	 * @throws RequestProblem
	 */
	async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
		await this.#enter(signal);
		const epoch = this.#epoch;
		try {
			const value = await work();
			this.#answered(epoch);
			return value;
		} catch (error) {
			const problem = problemOf(error);
			if (problem.kind !== 'outage') this.#answered(epoch);
			else if (!signal.aborted) this.#failed(epoch, problem.retryAfterMs);
			throw problem;
		} finally {
			this.#active -= 1;
			this.#admit();
		}
	}

	/** Lets the next request through without waiting for the back-off: there is a new connection. */
	retryNow(): void {
		this.#closedUntilMs = 0;
		this.#admit();
	}

	#enter(signal: AbortSignal): Promise<void> {
		return new Promise((resolve, reject) => {
			const giveUp = (): void => {
				this.#waiting.delete(waiter);
				reject(problemOf(signal.reason));
			};
			const waiter: Waiter = {
				signal,
				admit: () => {
					signal.removeEventListener('abort', giveUp);
					resolve();
				},
			};
			if (signal.aborted) return reject(problemOf(signal.reason));
			signal.addEventListener('abort', giveUp, { once: true });
			this.#waiting.add(waiter);
			this.#admit();
		});
	}

	#admit(): void {
		this.#cancelTimer?.();
		this.#cancelTimer = undefined;
		for (const waiter of this.#waiting) {
			if (this.#active >= (this.isDown ? 1 : this.#deps.maxConcurrent)) return;
			const waitMs = this.isDown ? this.#closedUntilMs - this.#deps.clock.nowMs() : 0;
			if (waitMs > 0) {
				this.#cancelTimer = this.#deps.clock.after(waitMs, () => this.#admit());
				return;
			}
			this.#waiting.delete(waiter);
			this.#active += 1;
			waiter.admit();
		}
	}

	#answered(epoch: number): void {
		if (epoch !== this.#epoch || !this.isDown) return;
		this.#failures = 0;
		this.#epoch += 1;
	}

	#failed(epoch: number, retryAfterMs: number | undefined): void {
		const nowMs = this.#deps.clock.nowMs();
		let waitMs = retryAfterMs ?? 0;
		// What was in flight together fails together, and is one failure.
		if (epoch === this.#epoch) {
			this.#failures += 1;
			this.#epoch += 1;
			waitMs = backoffMs(this.#failures, retryAfterMs, this.#deps.random);
		}
		this.#closedUntilMs = Math.max(this.#closedUntilMs, nowMs + waitMs);
	}
}
