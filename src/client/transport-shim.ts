import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import {
	CLIENT_CAPABILITIES_META,
	PROTOCOL_VERSION_META,
	SUBSCRIPTION_ID_META,
	TASKS_EXTENSION,
	TASKS_PROTOCOL_VERSION,
} from '../protocol/names.ts';
import { LegacyQuestions } from './legacy-questions.ts';
import type { CallToolRequestOptions, JSONRPCMessage, Transport, TransportSendOptions } from './sdk.ts';

/** `_meta` key of a `tools/call` that may become a task; never leaves the process. */
export const CALL_META = 'holdfast/call';

/** `_meta` key of a request that is answered inside the process; never leaves it. */
export const LOCAL_META = 'holdfast/local';

/** A `tools/call` on its way, over all of its round trips. */
export interface PendingCall {
	readonly id: string;
	/** The `task` parameter that asks a server of 2025-11-25 for a task (L02); undefined asks for none. */
	readonly asksTask: JsonObject | undefined;
	/** Hears the progress of a task of 2025-11-25, which goes on after the call was answered. */
	readonly onProgress: CallToolRequestOptions['onprogress'];
	/** The server's task result, once it answered with one. */
	task: JsonObject | undefined;
	/** Whether the stream of the answer ended for good without one. */
	isCutOff: boolean;
}

/** What a request is answered with in this process when the stream of its answer ended without one. */
const CUT_OFF = { code: -32000, message: 'The connection ended before the answer' };

/** What a request that never leaves the process is answered with: `{ result }` or `{ error }`. */
export type LocalAnswer = (params: JsonObject) => JsonObject;

/**
 * The seam to one connection of an SDK client, on the transport that the client is connected to. It declares
 * the Tasks extension on each request of 2026-07-28 (T01, T06), asks for tasks on 2025-11-25 (L02), takes task results
 * of `tools/call` away before the SDK throws on them, hears task notifications, and answers requests locally, which is
 * the public way to the handlers that the host registered and to the SDK's validation of results.
 */
export class TransportShim {
	static readonly #installed = new WeakMap<Transport, TransportShim>();
	/** Of all connections: a person may answer after the host has connected the client anew. */
	static readonly #local = new Map<string, LocalAnswer>();
	static #nextLocal = 0;
	readonly #calls = new Map<string, PendingCall>();
	readonly #requests = new Map<string, PendingCall>();
	/** Ids of requests of older versions that are not answered yet. */
	readonly #unanswered = new Set<unknown>();
	/** Calls whose task still has progress to tell, by progress token, which the SDK makes the request's id. */
	readonly #progressing = new Map<unknown, PendingCall>();
	readonly #taskListeners = new Set<(params: JsonObject) => void>();
	readonly #toolListeners = new Set<() => void>();
	readonly #listenFilters = new Map<string, object>();
	readonly #honoured = new WeakMap<object, readonly string[]>();
	readonly #deliver: (message: JSONRPCMessage) => void;
	/** The questions of tasks of 2025-11-25. */
	readonly questions: LegacyQuestions;
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
		this.questions = new LegacyQuestions(send);
		transport.onmessage = (message, extra) => {
			if (this.questions.inbound(message) && !this.#progressed(message))
				onmessage?.call(transport, this.#inbound(message) as typeof message, extra);
		};
		transport.send = (message, options) => this.#outbound(message, options, send);
	}

	/**
	 * Announces a `tools/call`; put its id under {@link CALL_META} and call {@link endCall} afterwards.
	 *
	 * @param asksTask - the `task` parameter of 2025-11-25, where a task is asked for.
	 */
	beginCall(asksTask?: JsonObject, onProgress?: PendingCall['onProgress']): PendingCall {
		const id = `call:${this.#next++}`;
		const call: PendingCall = { id, asksTask, onProgress, task: undefined, isCutOff: false };
		this.#calls.set(call.id, call);
		return call;
	}

	/** Forgets a call. */
	endCall(call: PendingCall): void {
		this.#calls.delete(call.id);
		for (const [requestId, pending] of this.#requests) if (pending === call) this.#requests.delete(requestId);
	}

	/** Stops hearing the progress of a call's task. */
	endProgress(call: PendingCall): void {
		for (const [token, { id }] of this.#progressing) if (id === call.id) this.#progressing.delete(token);
	}

	/** Has every request that carries the returned id under {@link LOCAL_META} answered here, until ended. */
	static beginLocal(answer: LocalAnswer): { readonly id: string; end(): void } {
		const id = `local:${TransportShim.#nextLocal++}`;
		TransportShim.#local.set(id, answer);
		return { id, end: () => void TransportShim.#local.delete(id) };
	}

	/** Calls `listener` with the params of each task notification until the returned function is called. */
	onTask(listener: (params: JsonObject) => void): () => void {
		this.#taskListeners.add(listener);
		return () => void this.#taskListeners.delete(listener);
	}

	/** Calls `listener` when the server says that its tools have changed, until the returned function is called. */
	onTools(listener: () => void): () => void {
		this.#toolListeners.add(listener);
		return () => void this.#toolListeners.delete(listener);
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
		if (!('method' in message)) {
			this.questions.outbound(message);
			return send(message, options);
		}
		const params: unknown = message.params;
		if (!isJsonObject(params)) return send(message, options);
		if (message.method === 'notifications/cancelled') this.#unanswered.delete(params['requestId']);
		const meta = isJsonObject(params['_meta']) ? params['_meta'] : {};
		const { [LOCAL_META]: localId, [CALL_META]: callId, ...rest } = meta;
		const rawId = 'id' in message ? message.id : undefined;
		const id = rawId === undefined ? undefined : String(rawId);
		const local = typeof localId === 'string' ? TransportShim.#local.get(localId) : undefined;
		if (id !== undefined && local) {
			const answer = { jsonrpc: '2.0', id: rawId, ...local(params) } as unknown as JSONRPCMessage;
			queueMicrotask(() => this.#deliver(answer));
			return Promise.resolve();
		}
		const call = typeof callId === 'string' ? this.#calls.get(callId) : undefined;
		const isModern = rest[PROTOCOL_VERSION_META] === TASKS_PROTOCOL_VERSION;
		if (id !== undefined && call && (isModern || call.asksTask)) this.#requests.set(id, call);
		if (rawId !== undefined && !isModern && (call || message.method.startsWith('tasks/')))
			return send(legacy(message, params, rest, call), this.#watched(rawId, call, options));
		if (id !== undefined && isModern && message.method === 'subscriptions/listen')
			if (isJsonObject(params['notifications'])) this.#listenFilters.set(id, params['notifications']);
		// A tools/call that the host makes past holdfast cannot take a task, so it must not declare them.
		const declares = isModern && id !== undefined && (call !== undefined || message.method !== 'tools/call');
		if (!declares && callId === undefined) return send(message, options);
		const nextParams = { ...params, _meta: declares ? withTasks(rest) : rest };
		return send({ ...message, params: nextParams }, options);
	}

	/**
	 * Has a request answered when the stream of its answer ends for good without one: on the older versions the SDK
	 * waits on until the request times out.
	 */
	#watched(
		id: string | number,
		call: PendingCall | undefined,
		options: TransportSendOptions | undefined,
	): TransportSendOptions {
		this.#unanswered.add(id);
		const onRequestStreamEnd = (): void => {
			options?.onRequestStreamEnd?.();
			if (!this.#unanswered.delete(id)) return;
			if (call) call.isCutOff = true;
			this.#deliver({ jsonrpc: '2.0', id, error: CUT_OFF });
		};
		return { ...options, onRequestStreamEnd };
	}

	#inbound(message: JSONRPCMessage): JSONRPCMessage {
		if ('method' in message) {
			const { method } = message;
			if (method === 'notifications/tools/list_changed')
				for (const listener of [...this.#toolListeners]) listener();
			const params: unknown = message.params;
			if (!isJsonObject(params)) return message;
			if (method === 'notifications/tasks' || method === 'notifications/tasks/status')
				for (const listener of [...this.#taskListeners]) listener(params);
			if (method === 'notifications/subscriptions/acknowledged') this.#acknowledged(params);
			return message;
		}
		const id = String('id' in message ? message.id : undefined);
		this.#listenFilters.delete(id);
		this.#unanswered.delete(message.id);
		const call = this.#requests.get(id);
		if (!call) return message;
		this.#requests.delete(id);
		const result: unknown = 'result' in message ? message.result : undefined;
		const task = taskIn(result, call);
		if (!task) return message;
		call.task = task;
		if (call.asksTask && call.onProgress) this.#progressing.set(message.id, call);
		// `isError` keeps the SDK from holding an empty result against the tool's output schema.
		const stand = { resultType: 'complete', content: [], isError: true };
		return { jsonrpc: '2.0', id: message.id, result: stand } as JSONRPCMessage;
	}

	/** Takes the progress of a task, which the SDK has stopped listening for with the answer to the call. */
	#progressed(message: JSONRPCMessage): boolean {
		if (!('method' in message) || message.method !== 'notifications/progress') return false;
		const { progressToken, progress, total, message: words } = message.params ?? {};
		const call = this.#progressing.get(progressToken);
		if (!call || typeof progress !== 'number') return false;
		call.onProgress?.({
			progress,
			...(typeof total === 'number' && { total }),
			...(typeof words === 'string' && { message: words }),
		});
		return true;
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

/** The task that a call was answered with: flat on 2026-07-28 (T10), nested on 2025-11-25 (L02). */
function taskIn(result: unknown, { asksTask }: PendingCall): JsonObject | undefined {
	if (!isJsonObject(result)) return undefined;
	if (!asksTask) return result['resultType'] === 'task' ? result : undefined;
	const task = result['task'];
	return isJsonObject(task) && typeof task['taskId'] === 'string' ? task : undefined;
}

/** A request of an older version, without what is only for this process. */
function legacy(
	message: JSONRPCMessage & { readonly method: string },
	params: JsonObject,
	meta: JsonObject,
	call: PendingCall | undefined,
): JSONRPCMessage {
	const nextParams = {
		...params,
		...(call?.asksTask && { task: call.asksTask }),
		_meta: Object.keys(meta).length > 0 ? meta : undefined,
	};
	return { ...message, params: nextParams };
}
