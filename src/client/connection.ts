import { HoldfastError } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { LEGACY_TASKS_VERSION } from '../protocol/legacy-tasks.ts';
import { TASKS_PROTOCOL_VERSION, WIRE_CODES } from '../protocol/names.ts';
import type { InputRequest, InputResponse, Task } from '../protocol/task.ts';
import { type CallRoute, chooseRoute, readAnnouncement } from './call-route.ts';
import { type Clock, MAX_TIMER_MS } from './clock.ts';
import type { QuestionHandler } from './legacy-questions.ts';
import { LegacyTools } from './legacy-tools.ts';
import { legacyWire, readLegacyTask } from './legacy-wire.ts';
import { outcomeUnknown } from './problem.ts';
import { readCreatedTask } from './read-task.ts';
import {
	type CallToolRequestOptions,
	type CallToolResult,
	type Client,
	type McpSubscription,
	ProtocolError,
	SdkError,
	SdkErrorCode,
	type SubscriptionFilter,
} from './sdk.ts';
import { ANY_RESULT, extensionWire, type SendRequest, type TaskWire } from './task-wire.ts';
import { CALL_META, LOCAL_META, type PendingCall, TransportShim } from './transport-shim.ts';

/** The params of a `tools/call`, as the SDK's `callTool` takes them. */
export type CallToolParams = Parameters<Client['callTool']>[0];

/** What a `tools/call` was answered with. */
export type CallAnswer =
	| { readonly kind: 'result'; readonly result: CallToolResult }
	| {
			readonly kind: 'task';
			readonly task: Task;
			readonly protocolVersion: string;
			/** Nobody wants the progress of the task any more. */
			readonly endProgress: () => void;
	  };

/** How long a `tasks/result` is left open that brings questions; then it is asked anew. */
const ATTEND_MS = 3_600_000;

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
	readonly #legacyTtlMs: number;
	readonly #onNotification: (params: JsonObject) => void;
	readonly #onRoute: (route: CallRoute) => void;
	readonly #onQuestion: QuestionHandler | undefined;
	#shim: TransportShim | undefined;
	#tools = new LegacyTools();
	#stopListening: (() => void) | undefined;
	#closed = false;

	constructor(
		client: Client,
		options: {
			readonly clock: Clock;
			readonly rpcTimeoutMs: number;
			/** How long a server of 2025-11-25 is asked to keep a task. */
			readonly legacyTtlMs: number;
			/** Takes the params of each task notification. */
			readonly onNotification: (params: JsonObject) => void;
			/** Hears how each call is made. */
			readonly onRoute: (route: CallRoute) => void;
			/** Answers questions that come as requests; undefined leaves them to the SDK client's handlers. */
			readonly onQuestion: QuestionHandler | undefined;
			/** Called when the host has connected the client anew. */
			readonly onConnected: () => void;
		},
	) {
		this.client = client;
		this.#clock = options.clock;
		this.#rpcTimeoutMs = options.rpcTimeoutMs;
		this.#legacyTtlMs = options.legacyTtlMs;
		this.#onNotification = options.onNotification;
		this.#onRoute = options.onRoute;
		this.#onQuestion = options.onQuestion;
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

	/**
	 * Makes a `tools/call` that may be answered with a task: as the server likes on 2026-07-28 (T03), by asking for one
	 * on 2025-11-25 (L02). On any other version, and for any other tool, it is the SDK's call.
	 *
	 * @throws what `callTool` of the SDK throws; OUTCOME_UNKNOWN
	 */
	async call(params: CallToolParams, options?: CallToolRequestOptions): Promise<CallAnswer> {
		const shim = this.#attached();
		const announcement = readAnnouncement(this.client.getServerCapabilities());
		const signal = options?.signal ?? new AbortController().signal;
		const route = await chooseRoute(params.name, this.#version, announcement, () =>
			this.#tools.supportOf(params.name, (page) => this.#send('tools/list', page, ANY_RESULT, signal)),
		);
		this.#onRoute(route);
		if (route.kind !== 'legacy_task') return this.#call(shim.beginCall(), params, options);
		try {
			return await this.#call(
				shim.beginCall({ ttl: this.#legacyTtlMs }, options?.onprogress),
				params,
				options,
			);
		} catch (error) {
			if (announcement === 'full' || !isRefusalOfTasks(error)) throw error;
			const why = `the server would not make a task of it: ${error.message}`;
			this.#onRoute({ tool: params.name, kind: 'plain', why });
			return this.#call(shim.beginCall(), params, options);
		}
	}

	/**
	 * The wire of the tasks of this connection.
	 *
	 * @throws SdkError when the client is not connected, INVALID_RESPONSE when it speaks a version without Tasks now.
	 */
	wire(): TaskWire {
		this.#attached();
		if (this.#version === TASKS_PROTOCOL_VERSION) return extensionWire(TASKS_PROTOCOL_VERSION, this.#send);
		if (this.#version === LEGACY_TASKS_VERSION) return legacyWire(this.#send, this.#sendLong);
		throw new HoldfastError('INVALID_RESPONSE', `The server now speaks ${this.#version}, which has no Tasks`);
	}

	/** Opens a stream of task notifications (T50). */
	async listen(taskIds: readonly string[], signal: AbortSignal): Promise<OpenListen> {
		const shim = this.#attached();
		if (this.#version !== TASKS_PROTOCOL_VERSION)
			throw new HoldfastError('INVALID_RESPONSE', `${this.#version} has no streams of task notifications`);
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
		if (!this.client.transport) return result as unknown as CallToolResult;
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
			const tools = new LegacyTools();
			const stops = [shim.onTask(this.#onNotification), shim.onTools(() => tools.forget())];
			if (this.#onQuestion) stops.push(shim.questions.offerTo(this.#onQuestion));
			this.#stopListening = () => {
				for (const stop of stops) stop();
			};
			this.#tools = tools;
			this.#shim = shim;
		}
		return shim;
	}

	get #version(): string | undefined {
		return this.client.getNegotiatedProtocolVersion();
	}

	async #call(
		call: PendingCall,
		params: CallToolParams,
		options: CallToolRequestOptions | undefined,
	): Promise<CallAnswer> {
		const shim = this.#attached();
		const isLegacy = this.#version !== TASKS_PROTOCOL_VERSION;
		try {
			const marked = { ...params, _meta: { ...params._meta, [CALL_META]: call.id } };
			const result = await this.client.callTool(marked, options);
			if (!call.task) return { kind: 'result', result };
			return {
				kind: 'task',
				task: call.asksTask ? readLegacyTask(call.task) : readCreatedTask(call.task),
				protocolVersion: call.asksTask ? LEGACY_TASKS_VERSION : TASKS_PROTOCOL_VERSION,
				endProgress: () => shim.endProgress(call),
			};
		} catch (error) {
			throw isLegacy ? outcomeUnknown(params.name, error, call.isCutOff) : error;
		} finally {
			shim.endCall(call);
		}
	}

	readonly #send: SendRequest = (method, params, schema, signal) =>
		this.#withTimeout(method, signal, this.#rpcTimeoutMs, (options) =>
			this.client.request({ method, params: { ...params } }, schema, options),
		);

	readonly #sendLong: SendRequest = (method, params, schema, signal) =>
		this.#withTimeout(method, signal, ATTEND_MS, (options) =>
			this.client.request({ method, params: { ...params } }, schema, options),
		);

	/** One request under its own limit, on the client's clock; the SDK's timers are kept out of it. */
	async #withTimeout<T>(
		method: string,
		signal: AbortSignal,
		limitMs: number,
		send: (options: { signal: AbortSignal; timeout: typeof MAX_TIMER_MS }) => Promise<T>,
	): Promise<T> {
		const late = new AbortController();
		const cancelTimer = this.#clock.after(limitMs, () =>
			late.abort(new SdkError(SdkErrorCode.RequestTimeout, `${method} took longer than ${limitMs} ms`)),
		);
		try {
			return await send({ signal: AbortSignal.any([signal, late.signal]), timeout: MAX_TIMER_MS });
		} finally {
			cancelTimer();
		}
	}
}

/** Whether a server refused to make a task of a call, which it then has not begun. */
function isRefusalOfTasks(error: unknown): error is ProtocolError {
	if (!(error instanceof ProtocolError)) return false;
	return error.code === WIRE_CODES.methodNotFound || /task creation/i.test(error.message);
}
