import pLimit, { type LimitFunction } from 'p-limit';
import {
	Client,
	ProtocolError,
	SdkHttpError,
	SSEClientTransport,
	StreamableHTTPClientTransport,
	type Transport,
} from '../client/sdk.ts';
import { systemClock } from '../client/clock.ts';
import { TaskClient } from '../client/task-client.ts';
import type { Log } from '../engine/options.ts';
import { HoldfastError, isHoldfastError, messageOf } from '../errors.ts';
import type { JsonObject } from '../protocol/json.ts';
import { CLIENT_CAPABILITIES_META, TASKS_PROTOCOL_VERSION, WIRE_CODES } from '../protocol/names.ts';
import type { InputRequest, InputResponse } from '../protocol/task.ts';
import { callScope, CallScopes } from './call-scope.ts';
import { ChildTransport } from './child-transport.ts';
import { upstreamFetch } from './upstream-fetch.ts';
import { ResourceWatch } from './resource-watch.ts';
import type { ListName } from './upstream-lists.ts';
import type { UpstreamOptions } from './upstream-options.ts';

/** First and longest pause between two attempts to start an upstream that fails, in milliseconds. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** How long a call waits for the next attempt instead of being refused, in milliseconds. */
const PATIENCE_MS = 2_000;

/** How long a connection must have lived for its end not to count as a failed start, in milliseconds. */
const STABLE_MS = 10_000;

/** How long the requests of a lost session have to be refused, in milliseconds. */
const REFUSALS_MS = 250;

/** What an upstream is told about the gateway. */
const SELF = { name: 'holdfast-gateway', version: '1' };

/** What an upstream needs of the gateway around it. */
export interface UpstreamDeps {
	readonly log: Log;
	/** Hears that one of its lists is not what it was. */
	readonly onListChanged: (upstream: Upstream, name: ListName) => void;
	readonly onResourceUpdated: (uri: string) => void;
	/** Takes a log message that belongs to no call. */
	readonly onLogged: (params: object) => void;
}

/** One server behind the gateway: connected when it is first needed, and again when it has gone. */
export class Upstream {
	readonly options: UpstreamOptions;
	/** Makes and drives calls, over whatever connection there is at the moment. */
	readonly tasks: TaskClient;
	readonly client: Client;
	/** The calls that it works on. */
	readonly scopes = new CallScopes();
	/** The resources that hosts want to hear of. */
	readonly resources: ResourceWatch;
	/** Keeps the number of calls in flight within bounds. */
	readonly limit: LimitFunction;
	readonly #log: Log;
	#connecting: Promise<void> | undefined;
	#leaving: Promise<void> | undefined;
	#connectedAtMs: number | undefined;
	#failures = 0;
	#retryAtMs = 0;
	#lastError = '';
	#isClosed = false;

	constructor(options: UpstreamOptions, deps: UpstreamDeps) {
		const { log } = deps;
		this.options = options;
		this.limit = pLimit(options.maxConcurrentCalls);
		this.#log = log;
		this.client = new Client(SELF, {
			capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
			listChanged: {
				tools: { autoRefresh: false, onChanged: () => deps.onListChanged(this, 'tools') },
				prompts: { autoRefresh: false, onChanged: () => deps.onListChanged(this, 'prompts') },
				resources: { autoRefresh: false, onChanged: () => deps.onListChanged(this, 'resources') },
			},
			versionNegotiation: { mode: 'auto', probe: { timeoutMs: Math.min(5_000, options.startTimeoutMs) } },
		});
		this.resources = new ResourceWatch(this.client);
		for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list'] as const)
			this.client.setRequestHandler(method, async (request) => {
				const answer = await this.#ask({ method, params: request.params } as InputRequest);
				return answer as never;
			});
		this.client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
			deps.onResourceUpdated(params.uri),
		);
		this.client.setNotificationHandler('notifications/message', ({ params }) => {
			const scope = callScope.getStore();
			if (scope) scope.log(params);
			else deps.onLogged(params);
		});
		this.client.onclose = () => this.#disconnected();
		this.tasks = new TaskClient(this.client, {
			server: options.name,
			applyDefaults: false,
			onInput: async (request, { taskId, key }) => (await this.scopes.ofTask(taskId)).ask(request, key),
			onProblem: (error) =>
				log.warn({ upstream: options.name, error: messageOf(error) }, 'an upstream is in trouble'),
		});
	}

	/** Whether there is a connection now. */
	get isConnected(): boolean {
		return this.#connectedAtMs !== undefined;
	}

	/**
	 * `_meta` that tells the upstream what the host of one call can be asked for, where the protocol version says that
	 * with each request. On earlier ones the gateway has declared everything, and answers for hosts that cannot.
	 */
	capabilitiesMeta(capabilities: JsonObject | null): JsonObject {
		const isModern = this.client.getNegotiatedProtocolVersion() === TASKS_PROTOCOL_VERSION;
		return isModern && capabilities !== null ? { [CLIENT_CAPABILITIES_META]: capabilities } : {};
	}

	/**
	 * Connects, if need be. Attempts that fail are spaced out ever more, up to 30 s.
	 *
	 * @throws UPSTREAM_UNAVAILABLE with the reason, and when the next attempt is due.
	 */
	connect(): Promise<void> {
		if (this.#isClosed) return Promise.reject(new HoldfastError('CLOSED', 'The gateway is closed'));
		if (this.isConnected) return Promise.resolve();
		this.#connecting ??= this.#connect().finally(() => {
			this.#connecting = undefined;
		});
		return this.#connecting;
	}

	/**
	 * Does something over the connection, made first if need be. When the server says that it does not know the
	 * session any more it has not accepted the request: one new session is begun for all that find out, and the work
	 * is done again.
	 *
	 * @throws UPSTREAM_UNAVAILABLE when nothing can have reached the server, and what `work` throws.
	 */
	async use<T>(work: () => Promise<T>): Promise<T> {
		await this.connect();
		const { transport } = this.client;
		try {
			return await work();
		} catch (error) {
			if (isUnreachable(error)) throw this.#unavailable(reasonOf(error), error);
			if (!(error instanceof SdkHttpError) || error.status !== 404 || transport?.sessionId === undefined)
				throw error;
			if (this.client.transport === transport) await (this.#leaving ??= this.#leaveSession());
			await this.connect();
			return work();
		}
	}

	/** Ends the connection, and a child process with everything that it started. */
	async close(): Promise<void> {
		this.#isClosed = true;
		this.tasks.close();
		await this.#connecting?.catch(() => {});
		await this.client.close().catch(() => {});
	}

	async #connect(): Promise<void> {
		const { name, startTimeoutMs } = this.options;
		const waitMs = this.#retryAtMs - systemClock.nowMs();
		if (waitMs > PATIENCE_MS)
			throw new HoldfastError(
				'UPSTREAM_UNAVAILABLE',
				`The server "${name}" is not available: ${this.#lastError}. The next attempt is due in ${Math.ceil(waitMs / 1_000)} s`,
			);
		if (waitMs > 0) await new Promise<void>((resolve) => systemClock.after(waitMs, resolve));
		let transport: Transport | undefined;
		let cancelTimer = (): void => {};
		try {
			transport = await this.#transport();
			const late = new Promise<never>((_resolve, reject) => {
				cancelTimer = systemClock.after(startTimeoutMs, () =>
					reject(
						new HoldfastError(
							'UPSTREAM_UNAVAILABLE',
							`it did not answer the handshake within ${startTimeoutMs} ms`,
						),
					),
				);
			});
			await Promise.race([this.client.connect(transport, { timeout: startTimeoutMs }), late]);
			this.#connectedAtMs = systemClock.nowMs();
			// An upstream that does not take them up again is still worth having.
			this.resources
				.resume()
				.catch((error: unknown) =>
					this.#log.warn({ upstream: name, error: messageOf(error) }, 'no news of its resources'),
				);
			this.#log.info(
				{ upstream: name, protocolVersion: this.client.getNegotiatedProtocolVersion() },
				'connected',
			);
		} catch (error) {
			await transport?.close().catch(() => {});
			// What the SDK says of a process that ended is how it found out, not what happened.
			const ending = transport instanceof ChildTransport ? transport.ending : undefined;
			const reason = isHoldfastError(error) ? error.message : (ending ?? reasonOf(error));
			this.#failed(reason);
			throw this.#unavailable(reason, error);
		} finally {
			cancelTimer();
		}
	}

	/** Ends a session that the server does not know any more. */
	async #leaveSession(): Promise<void> {
		this.#log.warn({ upstream: this.options.name }, 'the server has lost the session');
		// Other requests are being refused in the same way; ended now, nobody could tell that of them.
		await new Promise<void>((resolve) => systemClock.after(REFUSALS_MS, resolve));
		this.#connectedAtMs = undefined;
		await this.client.close().catch(() => {});
		this.#leaving = undefined;
	}

	async #transport(): Promise<Transport> {
		const { name, target } = this.options;
		if (target.kind === 'command')
			return new ChildTransport(target, (text) => this.#log.info({ upstream: name }, text.trimEnd()));
		const options = { fetch: await upstreamFetch(), requestInit: { headers: { ...target.headers } } };
		return target.kind === 'http'
			? new StreamableHTTPClientTransport(new URL(target.url), options)
			: new SSEClientTransport(new URL(target.url), options);
	}

	#disconnected(): void {
		const sinceMs = this.#connectedAtMs;
		this.#connectedAtMs = undefined;
		if (sinceMs === undefined || this.#isClosed) return;
		this.#log.warn({ upstream: this.options.name }, 'the connection ended');
		if (systemClock.nowMs() - sinceMs < STABLE_MS) this.#failed('it ended soon after it was started');
		else this.#failures = 0;
		// Tasks of the upstream are still waited for, and calls will come.
		if (this.tasks.watching > 0) this.connect().catch(() => {});
	}

	#failed(reason: string): void {
		this.#lastError = reason;
		this.#retryAtMs = systemClock.nowMs() + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
		this.#failures += 1;
	}

	#unavailable(reason: string, cause: unknown): HoldfastError {
		const words = `The server "${this.options.name}" is not available: ${reason}`;
		return new HoldfastError('UPSTREAM_UNAVAILABLE', words, { cause });
	}

	async #ask(request: InputRequest): Promise<InputResponse> {
		const scope = this.scopes.current();
		if (scope) return scope.ask(request, undefined);
		if (request.method === 'roots/list') return { roots: [] };
		throw new ProtocolError(WIRE_CODES.invalidRequest, 'No call is open that this question could belong to');
	}
}

/** Errors of the system after which no byte has reached the server. */
const UNREACHABLE = [
	'ECONNREFUSED',
	'ENOTFOUND',
	'EAI_AGAIN',
	'EHOSTUNREACH',
	'ENETUNREACH',
	'UND_ERR_CONNECT_TIMEOUT',
];

function isUnreachable(error: unknown): boolean {
	return causesOf(error).some((cause) => {
		const code: unknown = Reflect.get(cause, 'code');
		return typeof code === 'string' && UNREACHABLE.includes(code);
	});
}

/** What went wrong; the SDK and `fetch` say it in the cause only, and for several addresses in its code only. */
function reasonOf(error: unknown): string {
	const cause = causesOf(error).at(-1) ?? error;
	const message = messageOf(cause);
	return message === '' && cause instanceof Error
		? String(Reflect.get(cause, 'code') ?? cause.name)
		: message;
}

/** An error and what caused it, down to the first cause. */
function causesOf(error: unknown): readonly Error[] {
	return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}
