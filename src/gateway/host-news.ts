import { InMemoryServerEventBus, type McpServer, type ServerEventBus } from '../server/sdk.ts';
import type { ListName } from './upstream-lists.ts';

/** Tells hosts what changed: those that listen over HTTP, and those with a connection of their own. */
export class HostNews {
	/** For `listen()`: the streams of hosts that listen on 2026-07-28 over HTTP. */
	readonly bus: ServerEventBus = new InMemoryServerEventBus();
	readonly #connections = new Set<McpServer>();

	/** Takes up the server of a connection that lives longer than one request. */
	add(server: McpServer): void {
		this.#connections.add(server);
		const { onclose } = server.server;
		server.server.onclose = () => {
			this.#connections.delete(server);
			onclose?.();
		};
	}

	/** Lists are not what they were. */
	listsChanged(names: readonly ListName[]): void {
		const kinds = new Set(names.map((name) => (name === 'resourceTemplates' ? 'resources' : name)));
		for (const kind of kinds) {
			this.bus.publish({ kind: `${kind}_list_changed` });
			this.#tell(`notifications/${kind}/list_changed`, {});
		}
	}

	/** A resource that somebody subscribed to is not what it was. */
	resourceUpdated(uri: string): void {
		this.bus.publish({ kind: 'resource_updated', uri });
		this.#tell('notifications/resources/updated', { uri });
	}

	/** A log message that belongs to no call. */
	logged(params: object): void {
		this.#tell('notifications/message', params);
	}

	/** Each connection by itself: one that has gone, or does not want to hear of it, concerns no other. */
	#tell(method: string, params: object): void {
		for (const { server } of this.#connections)
			server.notification({ method, params: { ...params } }).catch(() => {});
	}
}
