import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A signal that ends a process in order. */
export type EndSignal = (typeof SIGNALS)[number];

/** The exit code of a process that a signal ended. */
export function signalExitCode(signal: EndSignal): number {
	return 128 + constants.signals[signal];
}

/**
 * Calls `onSignal` for the first signal that asks the process to end; a second one exits at once. The returned
 * function takes it back.
 */
export function onEndSignal(onSignal: (signal: EndSignal) => void): () => void {
	let asked = false;
	const listener = (signal: EndSignal): void => {
		if (asked) process.exit(signalExitCode(signal));
		asked = true;
		onSignal(signal);
	};
	for (const signal of SIGNALS) process.on(signal, listener);
	return () => {
		for (const signal of SIGNALS) process.off(signal, listener);
	};
}
