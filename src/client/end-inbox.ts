import type { BackgroundEnd } from './background-tasks.ts';

/** An end that arrived, and how to say that it was taken. */
interface Arrival {
	readonly end: BackgroundEnd;
	readonly acknowledge: () => void;
}

/**
 * Where the ends of background calls wait until an agent loop is between two model turns. Ends that were given to
 * somebody by `await` are not given again.
 *
 * An end counts as acknowledged once {@link acknowledge} is called after it was taken. When the host crashes before,
 * it is in the journal still: `BackgroundTasks.resumeAll(client, { unacknowledged: true })` tells it again.
 */
export class EndInbox {
	/** The option `onEnd` of a `BackgroundTasks`. Resolves when the end is acknowledged. */
	readonly onEnd = (end: BackgroundEnd): Promise<void> =>
		new Promise((acknowledge) => {
			if (end.awaited) this.#taken.push({ end, acknowledge });
			else this.#arrived.push({ end, acknowledge });
			this.#wake.resolve();
			this.#wake = Promise.withResolvers();
		});
	readonly #arrived: Arrival[] = [];
	readonly #taken: Arrival[] = [];
	#wake = Promise.withResolvers<void>();

	/** How many ends have arrived and were not taken. */
	get size(): number {
		return this.#arrived.length;
	}

	/** Takes what has arrived, oldest first; nothing, perhaps. */
	take(): readonly BackgroundEnd[] {
		const arrived = this.#arrived.splice(0);
		this.#taken.push(...arrived);
		return arrived.map(({ end }) => end);
	}

	/**
	 * Takes what has arrived, and waits for it where there is nothing yet. Ask for it only while a call is open, or
	 * give a signal.
	 *
	 * @throws the signal's reason.
	 */
	async next(signal?: AbortSignal): Promise<readonly BackgroundEnd[]> {
		const aborted = Promise.withResolvers<void>();
		const wake = (): void => aborted.resolve();
		signal?.addEventListener('abort', wake, { once: true });
		try {
			for (;;) {
				signal?.throwIfAborted();
				const ends = this.take();
				if (ends.length > 0) return ends;
				await Promise.race([this.#wake.promise, aborted.promise]);
			}
		} finally {
			signal?.removeEventListener('abort', wake);
		}
	}

	/** Says that everything taken so far is where it should be: call it each time the conversation was saved. */
	acknowledge(): void {
		for (const { acknowledge } of this.#taken.splice(0)) acknowledge();
	}
}
