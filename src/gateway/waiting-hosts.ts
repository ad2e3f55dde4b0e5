import { randomUUID } from 'node:crypto';
import type { ServerContext } from '../server/sdk.ts';

/** The requests of hosts that wait for an answer now, so that what belongs on their streams finds them. */
export class WaitingHosts {
	readonly #waiting = new Map<string, ServerContext>();

	/** Takes up a request; its id is gone once `answer` has settled. */
	async while<T>(ctx: ServerContext, answer: (id: string) => Promise<T>): Promise<T> {
		const id = randomUUID();
		this.#waiting.set(id, ctx);
		try {
			return await answer(id);
		} finally {
			this.#waiting.delete(id);
		}
	}

	/** Sends a notification on the stream of a request, if it still waits. */
	notify(id: string, method: string, params: object): void {
		this.#waiting
			.get(id)
			?.mcpReq.notify({ method, params: { ...params } })
			.catch(() => {});
	}
}
