import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import {
	CLIENT_CAPABILITIES_META,
	PROTOCOL_VERSION_META,
	SUBSCRIPTION_ID_META,
	TASKS_EXTENSION,
	TASKS_PROTOCOL_VERSION,
} from '../protocol/names.ts';
import type { JSONRPCMessage, Transport, TransportSendOptions } from './sdk.ts';

/** `_meta` key of a `tools/call` that may become a task; never leaves the process. */
export const CALL_META = 'holdfast/call';

/** `_meta` key of a request that is answered inside the process; never leaves it. */
export const LOCAL_META = 'holdfast/local';

/** A `tools/call` on its way, over all of its round trips. */
export interface PendingCall {
	readonly id: string;
	/** The server's task result, once it answered with one. */
	task: JsonObject | undefined;
}

/** What a request that never leaves the process is answered with: `{ result }` or `{ error }`. */
export type LocalAnswer = (params: JsonObject) => JsonObject;

/**
 * The seam to one connection of an SDK client, on the transport that the client is connected to. It declares
 * the Tasks extension on each request of 2026-07-28 (T01, T06), takes task results of `tools/call` away before
 * the SDK throws on them, hears task notifications, and answers requests locally, which is the public way to
 * the handlers that the host registered and to the SDK's validation of results.
 */
export class TransportShim {
	static readonly #installed = new WeakMap<Transport, TransportShim>();
	/** Of all connections: a person may answer after the host has connected the client anew. */
	static readonly #local = new Map<string, LocalAnswer>();
	static #nextLocal = 0;
	readonly #calls = new Map<string, PendingCall>();
	readonly #requests = new Map<string, PendingCall>();
	readonly #taskListeners = new Set<(params: JsonObject) => void>();
	readonly #listenFilters = new Map<string, object>();
	readonly #honoured = new WeakMap<object, readonly string[]>();
	readonly #deliver: (message: JSONRPCMessage) => void;
	#next = 0;

	/** The shim of a transport; installed the first time. The SDK client must be connected to it. */
	static on(transport: Transport): TransportShim {
		let shim = TransportShim.#installed.get(transport);
		if (!shim) {
			shim = new TransportShim(transport);
			TransportShim.#installed.set(transport, shim);
		}
		return shim;
	}

	private constructor(transport: Transport) {
		const send = transport.send.bind(transport);
		const { onmessage } = transport;
		this.#deliver = (message) => onmessage?.call(transport, message);
		transport.onmessage = (message, extra) =>
			onmessage?.call(transport, this.#inbound(message) as typeof message, extra);
		transport.send = (message, options) => this.#outbound(message, options, send);
	}

	/** Announces a `tools/call`; put its id under {@link CALL_META} and call {@link endCall} afterwards. */
	beginCall(): PendingCall {
		const call: PendingCall = { id: `call:${this.#next++}`, task: undefined };
		this.#calls.set(call.id, call);
		return call;
	}

	/** Forgets a call. */
	endCall(call: PendingCall): void {
		this.#calls.delete(call.id);
		for (const [requestId, pending] of this.#requests) if (pending === call) this.#requests.delete(requestId);
	}

	/** Has every request that carries the returned id under {@link LOCAL_META} answered here, until ended. */
	static beginLocal(answer: LocalAnswer): { readonly id: string; end(): void } {
		const id = `local:${TransportShim.#nextLocal++}`;
		TransportShim.#local.set(id, answer);
		return { id, end: () => void TransportShim.#local.delete(id) };
	}

	/** Calls `listener` with the params of each `notifications/tasks` until the returned function is called. */
	onTask(listener: (params: JsonObject) => void): () => void {
		this.#taskListeners.add(listener);
		return () => void this.#taskListeners.delete(listener);
	}

	/** The task ids that the acknowledgement of a listen request named; the SDK does not pass them on (T50). */
	honoured(filter: object): readonly string[] {
		return this.#honoured.get(filter) ?? [];
	}

	#outbound(
		message: JSONRPCMessage,
		options: TransportSendOptions | undefined,
		send: Transport['send'],
	): Promise<void> {
		const params: unknown = 'params' in message ? message.params : undefined;
		const meta = isJsonObject(params) ? params['_meta'] : undefined;
		if (!('method' in message) || !isJsonObject(params) || !isJsonObject(meta)) return send(message, options);
		const { [LOCAL_META]: localId, [CALL_META]: callId, ...rest } = meta;
		const isRequest = 'id' in message && message.id !== undefined;
		const local = typeof localId === 'string' ? TransportShim.#local.get(localId) : undefined;
		if (isRequest && local) {
			const answer = { jsonrpc: '2.0', id: message.id, ...local(params) } as unknown as JSONRPCMessage;
			queueMicrotask(() => this.#deliver(answer));
			return Promise.resolve();
		}
		const call = typeof callId === 'string' ? this.#calls.get(callId) : undefined;
		const isModern = rest[PROTOCOL_VERSION_META] === TASKS_PROTOCOL_VERSION;
		if (isRequest && isModern) {
			if (call) this.#requests.set(String(message.id), call);
			if (message.method === 'subscriptions/listen' && isJsonObject(params['notifications']))
				this.#listenFilters.set(String(message.id), params['notifications']);
		}
		// A tools/call that the host makes past holdfast cannot take a task, so it must not declare them.
		const declares = isModern && isRequest && (call !== undefined || message.method !== 'tools/call');
		if (!declares && callId === undefined) return send(message, options);
		const nextParams = { ...params, _meta: declares ? withTasks(rest) : rest };
		return send({ ...message, params: nextParams }, options);
	}

	#inbound(message: JSONRPCMessage): JSONRPCMessage {
		if ('method' in message) {
			const params: unknown = message.params;
			if (!isJsonObject(params)) return message;
			if (message.method === 'notifications/tasks')
				for (const listener of [...this.#taskListeners]) listener(params);
			if (message.method === 'notifications/subscriptions/acknowledged') this.#acknowledged(params);
			return message;
		}
		const id = String('id' in message ? message.id : undefined);
		this.#listenFilters.delete(id);
		const call = this.#requests.get(id);
		if (!call) return message;
		this.#requests.delete(id);
		const result: unknown = 'result' in message ? message.result : undefined;
		if (!isJsonObject(result) || result['resultType'] !== 'task') return message;
		call.task = result;
		// `isError` keeps the SDK from holding an empty result against the tool's output schema.
		const stand = { resultType: 'complete', content: [], isError: true };
		return { jsonrpc: '2.0', id: message.id, result: stand } as JSONRPCMessage;
	}

	#acknowledged(params: JsonObject): void {
		const meta = params['_meta'];
		const id = isJsonObject(meta) ? meta[SUBSCRIPTION_ID_META] : undefined;
		const filter = typeof id === 'string' ? this.#listenFilters.get(id) : undefined;
		const honoured = isJsonObject(params['notifications']) ? params['notifications']['taskIds'] : undefined;
		if (!filter || !Array.isArray(honoured)) return;
		this.#honoured.set(
			filter,
			honoured.filter((taskId) => typeof taskId === 'string'),
		);
	}
}

/** `_meta` whose client capabilities declare the extension, beside whatever the host declared. */
function withTasks(meta: JsonObject): JsonObject {
	const given = meta[CLIENT_CAPABILITIES_META];
	const capabilities = isJsonObject(given) ? given : {};
	const extensions = isJsonObject(capabilities['extensions']) ? capabilities['extensions'] : {};
	return {
		...meta,
		[CLIENT_CAPABILITIES_META]: { ...capabilities, extensions: { ...extensions, [TASKS_EXTENSION]: {} } },
	};
}
