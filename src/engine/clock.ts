import { MACHINE_TIME, type TimeSource } from '../backend/backend.ts';

/** The longest time that a platform timer can wait; longer waits are cut and looked at again. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** The only source of time and timers in the engine. */
export interface Clock extends TimeSource {
	/**
	 * Calls `action` once after `delayMs` milliseconds, at most {@link MAX_TIMER_MS}. The returned function
	 * takes it back. A waiting timer does not keep the process alive.
	 */
	after(delayMs: number, action: () => void): () => void;
}

/** The machine's clock and timers. */
export const systemClock: Clock = {
	nowMs: () => MACHINE_TIME.nowMs(),
	after(delayMs, action) {
		const timer = setTimeout(action, Math.min(Math.max(0, delayMs), MAX_TIMER_MS));
		timer.unref();
		return () => clearTimeout(timer);
	},
};

/** Calls `action` every `periodMs` milliseconds, never twice at once, until the returned function is called. */
export function every(clock: Clock, periodMs: number, action: () => Promise<void>): () => void {
	let stop = (): void => {};
	let stopped = false;
	const arm = (): void => {
		if (!stopped) stop = clock.after(periodMs, () => void action().finally(arm));
	};
	arm();
	return () => {
		stopped = true;
		stop();
	};
}
