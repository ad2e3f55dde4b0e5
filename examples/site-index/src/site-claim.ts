/** Goes on claiming a site for the task that reads it, among all processes that share the file. */
import { claimMs } from './claims.ts';
import type { StoreCalls } from './threads.ts';

const renewMs = claimMs / 3;

export class SiteClaim {
	readonly #release: () => Promise<void>;
	readonly #timer: NodeJS.Timeout;

	/** Calls back with the reason when the claim is lost. */
	constructor(
		store: StoreCalls,
		siteId: number,
		taskId: string,
		now: () => number,
		onLost: (reason: unknown) => void,
	) {
		this.#release = () => store.call('release', siteId, taskId);
		this.#timer = setInterval(async () => {
			try {
				const isOurs = await store.call('renew', siteId, taskId, now());
				if (!isOurs) onLost(new Error('Another task reads this site by now.'));
			} catch (error) {
				onLost(error);
			}
		}, renewMs);
	}

	async release(): Promise<void> {
		clearInterval(this.#timer);
		await this.#release();
	}
}
