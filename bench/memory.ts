import { setTimeout as sleep } from 'node:timers/promises';

/** What a process holds. */
export interface Held {
	/** JavaScript objects and buffers, in bytes. */
	readonly heap: number;
	/** Resident memory of the process, in bytes. */
	readonly resident: number;
}

/** What the process holds when everything that can be collected is. */
export async function settled(): Promise<Held> {
	const { gc } = globalThis;
	if (!gc) throw new Error('run with --expose-gc');
	let least: Held = { heap: Infinity, resident: Infinity };
	for (let turn = 0; turn < 8; turn++) {
		gc();
		await sleep(100);
		const { heapUsed, external, rss } = process.memoryUsage();
		least = { heap: Math.min(least.heap, heapUsed + external), resident: Math.min(least.resident, rss) };
	}
	return least;
}

/** What each of `count` things costs, in kilobytes. */
export function each(before: Held, after: Held, count: number): { heap: number; resident: number } {
	return {
		heap: (after.heap - before.heap) / count / 1024,
		resident: (after.resident - before.resident) / count / 1024,
	};
}
