import { MAX_TIMER_MS } from '../client/clock.ts';
import type { Client, McpSubscription } from '../client/sdk.ts';
import { TASKS_PROTOCOL_VERSION } from '../protocol/names.ts';

/**
 * The resources of one upstream that hosts want to hear of, over all of its connections. Before 2026-07-28 a server is
 * told of each; since then one stream is listened to for all of them.
 */
export class ResourceWatch {
	readonly #client: Client;
	readonly #uris = new Set<string>();
	#stream: McpSubscription | undefined;
	#inTurn: Promise<void> = Promise.resolve();

	constructor(client: Client) {
		this.#client = client;
	}

	/** @throws what the SDK throws. */
	async add(uri: string): Promise<void> {
		this.#uris.add(uri);
		if (this.#isModern) await this.#listen();
		else await this.#request('resources/subscribe', uri);
	}

	/** @throws what the SDK throws. */
	async remove(uri: string): Promise<void> {
		this.#uris.delete(uri);
		if (this.#isModern) await this.#listen();
		else await this.#request('resources/unsubscribe', uri);
	}

	/** Takes all of them up again on a new connection. */
	async resume(): Promise<void> {
		this.#stream = undefined;
		if (this.#uris.size === 0) return;
		if (this.#isModern) await this.#listen();
		else for (const uri of this.#uris) await this.#request('resources/subscribe', uri);
	}

	get #isModern(): boolean {
		return this.#client.getNegotiatedProtocolVersion() === TASKS_PROTOCOL_VERSION;
	}

	async #request(method: 'resources/subscribe' | 'resources/unsubscribe', uri: string): Promise<void> {
		await this.#client.request({ method, params: { uri } }, { timeout: MAX_TIMER_MS });
	}

	/** The next stream is open before the last one is closed, so that nothing is missed in between. */
	#listen(): Promise<void> {
		const next = this.#inTurn.then(async () => {
			const last = this.#stream;
			this.#stream =
				this.#uris.size === 0
					? undefined
					: await this.#client.listen({ resourceSubscriptions: [...this.#uris] });
			await last?.close();
		});
		this.#inTurn = next.catch(() => {});
		return next;
	}
}
