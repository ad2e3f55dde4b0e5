import { messageOf } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { SUBSCRIPTION_ID_META, WIRE_CODES } from '../protocol/names.ts';
import { acknowledge, asTaskListen, refuseListen } from './listen-http.ts';
import type { TaskRuntime } from './runtime.ts';
import type { JSONRPCMessage, Transport } from './sdk.ts';
import { Subscription } from './subscription.ts';
import { toWireError } from './task-methods.ts';

const MAX_SUBSCRIPTIONS = 100;

/**
 * A stdio transport with task subscriptions: listen requests go on to the SDK, whose acknowledgement gets the
 * honoured ids; the task notifications are written beside the SDK's own messages.
 */
export class ListeningTransport implements Transport {
	onmessage?: NonNullable<Transport['onmessage']>;
	onclose?: NonNullable<Transport['onclose']>;
	onerror?: NonNullable<Transport['onerror']>;
	readonly #wire: Transport;
	readonly #runtime: TaskRuntime;
	readonly #principal: string;
	readonly #started: Promise<void>;
	readonly #subscriptions = new Map<string | number, Subscription>();
	#inbound: Promise<void> = Promise.resolve();

	/** @param started - resolves when the engine can be asked. */
	constructor(wire: Transport, runtime: TaskRuntime, principal: string, started: Promise<void>) {
		this.#started = started;
		this.#wire = wire;
		this.#runtime = runtime;
		this.#principal = principal;
	}

	async start(): Promise<void> {
		this.#wire.onmessage = (message, extra) => {
			// Strictly in order: a cancel must not overtake the listen that it cancels.
			this.#inbound = this.#inbound
				.then(async () => {
					if (await this.#receive(message)) this.onmessage?.(message, extra);
				})
				.catch((error: unknown) => this.onerror?.(new Error(messageOf(error), { cause: error })));
		};
		this.#wire.onclose = () => {
			this.#drop();
			this.onclose?.();
		};
		this.#wire.onerror = (error) => this.onerror?.(error);
		await this.#wire.start();
	}

	async send(message: JSONRPCMessage, options?: Parameters<Transport['send']>[1]): Promise<void> {
		// The SDK's own answer to a listen request is its end; close() must not answer again.
		if ('id' in message && message.id !== undefined && !('method' in message)) {
			this.#subscriptions.get(message.id)?.close();
			this.#subscriptions.delete(message.id);
		}
		const subscription = this.#acknowledged(message);
		if (!subscription) return this.#wire.send(message, options);
		const { taskIds } = subscription;
		await this.#wire.send(
			acknowledge(message as unknown as JsonObject, taskIds) as unknown as JSONRPCMessage,
			options,
		);
		subscription.start();
	}

	/** Ends every subscription with its completion result (T55), then the connection. */
	async close(): Promise<void> {
		for (const id of this.#subscriptions.keys()) {
			const result = { resultType: 'complete', _meta: { [SUBSCRIPTION_ID_META]: id } };
			await this.#wire.send({ jsonrpc: '2.0', id, result }).catch(() => {});
		}
		this.#drop();
		await this.#wire.close();
	}

	/** False when the message was answered here. */
	async #receive(message: JSONRPCMessage): Promise<boolean> {
		const listen = asTaskListen(message);
		if (listen) {
			const refusal = refuseListen(listen);
			if (refusal) return this.#refuse(listen.id, refusal);
			if (this.#subscriptions.size >= MAX_SUBSCRIPTIONS)
				return this.#refuse(listen.id, {
					code: WIRE_CODES.internalError,
					message: `The connection has ${MAX_SUBSCRIPTIONS} subscriptions, which is its limit`,
				});
			try {
				await this.#started;
				const subscription = await Subscription.open(
					{
						id: listen.id,
						taskIds: listen.taskIds ?? [],
						principal: this.#principal,
						engine: this.#runtime.engine(),
					},
					(notification) => this.#wire.send(notification as unknown as JSONRPCMessage),
				);
				this.#subscriptions.get(listen.id)?.close();
				this.#subscriptions.set(listen.id, subscription);
			} catch (error) {
				return this.#refuse(listen.id, toWireError(error));
			}
		} else if ('method' in message && message.method === 'notifications/cancelled') {
			const requestId: unknown = isJsonObject(message.params) ? message.params['requestId'] : undefined;
			if (typeof requestId === 'string' || typeof requestId === 'number') {
				this.#subscriptions.get(requestId)?.close();
				this.#subscriptions.delete(requestId);
			}
		}
		return true;
	}

	#acknowledged(message: JSONRPCMessage): Subscription | undefined {
		if (!('method' in message) || message.method !== 'notifications/subscriptions/acknowledged')
			return undefined;
		const meta: unknown = message.params?.['_meta'];
		const id = isJsonObject(meta) ? meta[SUBSCRIPTION_ID_META] : undefined;
		return typeof id === 'string' || typeof id === 'number' ? this.#subscriptions.get(id) : undefined;
	}

	#refuse(id: string | number, error: object): false {
		void this.#wire.send({ jsonrpc: '2.0', id, error } as JSONRPCMessage).catch(() => {});
		return false;
	}

	#drop(): void {
		for (const subscription of this.#subscriptions.values()) subscription.close();
		this.#subscriptions.clear();
	}
}
