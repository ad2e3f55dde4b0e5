/** The longest time that a platform timer can wait; longer waits are cut and looked at again. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** The only source of time and timers in the client; a test gives its own. */
export interface Clock {
	/** Milliseconds since the epoch. */
	nowMs(): number;
	/**
	 * Calls `action` once after `delayMs` milliseconds, at most {@link MAX_TIMER_MS}. The returned function
	 * takes it back.
	 */
	after(delayMs: number, action: () => void): () => void;
}

/** The machine's clock. Its timers keep the process alive: whoever awaits a result still wants the next poll. */
export const systemClock: Clock = {
	nowMs: () => Date.now(),
	after(delayMs, action) {
		const timer = setTimeout(action, Math.min(Math.max(0, delayMs), MAX_TIMER_MS));
		return () => clearTimeout(timer);
	},
};

/** Waits; resolves early, without an error, when `signal` fires. */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		if (signal.aborted) return resolve();
		const end = (): void => {
			cancel();
			signal.removeEventListener('abort', end);
			resolve();
		};
		const cancel = clock.after(delayMs, end);
		signal.addEventListener('abort', end, { once: true });
	});
}
