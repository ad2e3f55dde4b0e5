import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A signal that ends a process in order. */
export type EndSignal = (typeof SIGNALS)[number];

/** The exit code of a process that a signal ended. */
export function signalExitCode(signal: EndSignal): number {
	return 128 + constants.signals[signal];
}

/**
 * How long after the first signal another one is part of it, in milliseconds: hosts send SIGINT and SIGTERM in quick
 * succession, and a person who loses patience takes longer.
 */
const SAME_SIGNAL_MS = 500;

/**
 * Calls `onSignal` for the first signal that asks the process to end; a later one exits at once. The returned
 * function takes it back.
 */
export function onEndSignal(onSignal: (signal: EndSignal) => void): () => void {
	let askedAtMs: number | undefined;
	const listener = (signal: EndSignal): void => {
		if (askedAtMs !== undefined) {
			if (performance.now() - askedAtMs >= SAME_SIGNAL_MS) process.exit(signalExitCode(signal));
			return;
		}
		askedAtMs = performance.now();
		onSignal(signal);
	};
	for (const signal of SIGNALS) process.on(signal, listener);
	return () => {
		for (const signal of SIGNALS) process.off(signal, listener);
	};
}
