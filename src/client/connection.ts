import { HoldfastError } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { TASKS_PROTOCOL_VERSION } from '../protocol/names.ts';
import type { InputRequest, InputResponse, Task } from '../protocol/task.ts';
import { type Clock, MAX_TIMER_MS } from './clock.ts';
import { readCreatedTask } from './read-task.ts';
import {
	type CallToolRequestOptions,
	type CallToolResult,
	type Client,
	type McpSubscription,
	SdkError,
	SdkErrorCode,
	type SubscriptionFilter,
} from './sdk.ts';
import { ANY_RESULT, extensionWire, type TaskWire } from './task-wire.ts';
import { CALL_META, LOCAL_META, TransportShim } from './transport-shim.ts';

/** The params of a `tools/call`, as the SDK's `callTool` takes them. */
export type CallToolParams = Parameters<Client['callTool']>[0];

/** What a `tools/call` was answered with. */
export type CallAnswer =
	| { readonly kind: 'result'; readonly result: CallToolResult }
	| { readonly kind: 'task'; readonly task: Task };

/** A listen stream that the server acknowledged. */
export interface OpenListen {
	/** The task ids that the server honours (T50, T54). */
	readonly taskIds: readonly string[];
	readonly subscription: McpSubscription;
}

/**
 * An SDK client as holdfast uses it: over whatever transport the client is connected to at the moment, so that
 * a host may reconnect the same client.
 */
export class Connection {
	readonly client: Client;
	readonly #clock: Clock;
	readonly #rpcTimeoutMs: number;
	readonly #onNotification: (params: JsonObject) => void;
	#shim: TransportShim | undefined;
	#stopListening: (() => void) | undefined;
	#closed = false;

	constructor(
		client: Client,
		options: {
			readonly clock: Clock;
			readonly rpcTimeoutMs: number;
			/** Takes the params of each `notifications/tasks`. */
			readonly onNotification: (params: JsonObject) => void;
			/** Called when the host has connected the client anew. */
			readonly onConnected: () => void;
		},
	) {
		this.client = client;
		this.#clock = options.clock;
		this.#rpcTimeoutMs = options.rpcTimeoutMs;
		this.#onNotification = options.onNotification;
		const connect = client.connect.bind(client);
		client.connect = async (...connectArguments: Parameters<Client['connect']>): Promise<void> => {
			await connect(...connectArguments);
			if (this.#closed) return;
			// Before anything is sent: an answer to an open question must not go to the server by itself.
			this.#attached();
			options.onConnected();
		};
		if (client.transport) this.#attached();
	}

	/** Whether the connection speaks the protocol version that the Tasks extension belongs to (T06). */
	get hasTasks(): boolean {
		return this.client.getNegotiatedProtocolVersion() === TASKS_PROTOCOL_VERSION;
	}

	/**
	 * Makes a `tools/call` that may be answered with a task (T03). On an older protocol version it is the SDK's
	 * call, unchanged.
	 */
	async call(params: CallToolParams, options?: CallToolRequestOptions): Promise<CallAnswer> {
		if (!this.hasTasks) return { kind: 'result', result: await this.client.callTool(params, options) };
		const shim = this.#attached();
		const call = shim.beginCall();
		try {
			const marked = { ...params, _meta: { ...params._meta, [CALL_META]: call.id } };
			const result = await this.client.callTool(marked, options);
			return call.task ? { kind: 'task', task: readCreatedTask(call.task) } : { kind: 'result', result };
		} finally {
			shim.endCall(call);
		}
	}

	/**
	 * The wire of the tasks of this connection.
	 *
	 * @throws SdkError when the client is not connected, INVALID_RESPONSE when it speaks another version now.
	 */
	wire(): TaskWire {
		this.#attached();
		if (!this.hasTasks)
			throw new HoldfastError(
				'INVALID_RESPONSE',
				`The server now speaks ${this.client.getNegotiatedProtocolVersion()}, which has no Tasks extension`,
			);
		return extensionWire(TASKS_PROTOCOL_VERSION, (method, params, schema, signal) =>
			this.#withTimeout(method, signal, (options) =>
				this.client.request({ method, params: { ...params } }, schema, options),
			),
		);
	}

	/** Opens a stream of task notifications (T50). */
	async listen(taskIds: readonly string[], signal: AbortSignal): Promise<OpenListen> {
		const shim = this.#attached();
		const filter: SubscriptionFilter & { taskIds: string[] } = { taskIds: [...taskIds] };
		// Without the signal, which the SDK would hold against the open stream as well.
		const subscription = await this.client.listen(filter, { timeout: this.#rpcTimeoutMs });
		if (signal.aborted) void subscription.close();
		return { taskIds: shim.honoured(filter), subscription };
	}

	/**
	 * Has the handler that the host registered on the SDK client answer a question of the server, validated as
	 * the standalone request would be (T34). The SDK itself brings a question to its handlers when a request is
	 * answered with `input_required`, so it is given such an answer.
	 *
	 * @param key - what the handler sees as the request's id.
	 * @throws what the SDK or the handler throws; an SdkError that says so when the client was not connected when
	 * the handler answered, whose answer the SDK then drops.
	 */
	async ask(key: string, request: InputRequest, signal: AbortSignal): Promise<InputResponse> {
		this.#attached();
		const local = TransportShim.beginLocal((params) => {
			const responses = params['inputResponses'];
			return {
				result: isJsonObject(responses)
					? { resultType: 'complete', answer: responses[key] ?? null }
					: {
							resultType: 'input_required',
							inputRequests: { [key]: { ...request } as unknown as JsonObject },
						},
			};
		});
		try {
			const { answer } = await this.client.request(
				{ method: 'holdfast/ask', params: { _meta: { [LOCAL_META]: local.id } } },
				ANY_RESULT,
				{ signal, timeout: MAX_TIMER_MS },
			);
			if (!isJsonObject(answer)) throw new TypeError(`The handler of ${request.method} returned no object`);
			return answer;
		} catch (error) {
			if (this.client.transport) throw error;
			throw new SdkError(SdkErrorCode.NotConnected, 'Not connected', undefined, { cause: error });
		} finally {
			local.end();
		}
	}

	/**
	 * Has the SDK validate and convert a task's result as if the call had just taken long.
	 *
	 * @throws what `callTool` throws for such a result.
	 */
	async conclude(
		params: CallToolParams,
		result: JsonObject,
		options?: CallToolRequestOptions,
	): Promise<CallToolResult> {
		if (!this.hasTasks || !this.client.transport) return result as unknown as CallToolResult;
		this.#attached();
		const local = TransportShim.beginLocal(() => ({ result: { ...result, resultType: 'complete' } }));
		try {
			const marked = { ...params, _meta: { ...params._meta, [LOCAL_META]: local.id } };
			const toolDefinition = options?.toolDefinition;
			return await this.client.callTool(marked, { ...(toolDefinition && { toolDefinition }) });
		} finally {
			local.end();
		}
	}

	/** Stops hearing notifications. */
	close(): void {
		this.#closed = true;
		this.#stopListening?.();
		this.#stopListening = undefined;
		this.#shim = undefined;
	}

	#attached(): TransportShim {
		const { transport } = this.client;
		if (!transport) throw new SdkError(SdkErrorCode.NotConnected, 'Not connected');
		const shim = TransportShim.on(transport);
		if (shim !== this.#shim) {
			this.#stopListening?.();
			this.#stopListening = shim.onTask(this.#onNotification);
			this.#shim = shim;
		}
		return shim;
	}

	/** One request under its own limit, on the client's clock; the SDK's timers are kept out of it. */
	async #withTimeout<T>(
		method: string,
		signal: AbortSignal,
		send: (options: { signal: AbortSignal; timeout: typeof MAX_TIMER_MS }) => Promise<T>,
	): Promise<T> {
		const late = new AbortController();
		const cancelTimer = this.#clock.after(this.#rpcTimeoutMs, () =>
			late.abort(
				new SdkError(SdkErrorCode.RequestTimeout, `${method} took longer than ${this.#rpcTimeoutMs} ms`),
			),
		);
		try {
			return await send({ signal: AbortSignal.any([signal, late.signal]), timeout: MAX_TIMER_MS });
		} finally {
			cancelTimer();
		}
	}
}
