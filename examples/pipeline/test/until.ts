import { vi } from 'vitest';

/** How long a test waits for what must come. */
export const DEADLINE_MS = 25_000;

/** Waits until `look` finds something, and fails with `what` when it does not in time. */
export function until<T>(
	what: string | (() => string),
	look: () => T | undefined | Promise<T | undefined>,
	deadlineMs = DEADLINE_MS,
): Promise<T> {
	return vi.waitFor(
		async () => {
			const found = await look();
			if (found === undefined)
				throw new Error(`Waited in vain for ${typeof what === 'string' ? what : what()}`);
			return found;
		},
		{ timeout: deadlineMs, interval: 50 },
	);
}
