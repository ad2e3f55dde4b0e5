/**
 * Raw MCP of the versions before 2026-07-28, written by hand: a session over HTTP or a connection over stdio,
 * whose client answers what it is asked on any stream.
 */
import type { JSONRPCMessage } from '@modelcontextprotocol/server';
import type { JsonObject } from '../../src/protocol/json.ts';
import type { StdioPair } from './wire.ts';

/** What a client that can be asked anything declares. */
export const ASKABLE: JsonObject = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** Answers a request of the server; undefined leaves it open. */
export type Answer = (request: JsonObject) => JsonObject | undefined;

export interface LegacyOptions {
	/** Default 2025-11-25. */
	readonly version?: string;
	readonly capabilities?: JsonObject;
	readonly token?: string;
	/** Default: accepts every question with `{ said: <its message> }`. */
	readonly answer?: Answer;
}

export interface LegacyAnswer {
	readonly result: JsonObject;
	readonly error: { readonly code: number; readonly message: string } | undefined;
}

/** Accepts with the words of the question. */
export const agree: Answer = (request) => ({
	result: { action: 'accept', content: { said: field(request, 'params', 'message') as string } },
});

export function field(value: unknown, ...path: readonly string[]): unknown {
	return path.reduce<unknown>(
		(inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
		value,
	);
}

let serial = 0;

/** What both transports have in common. */
export abstract class LegacyWire {
	/** Everything that came, in order and on whatever stream. */
	readonly received: JsonObject[] = [];
	readonly #wake = new Set<() => void>();
	readonly options: LegacyOptions;

	constructor(options: LegacyOptions) {
		this.options = options;
	}

	/** Requests that the server sent. */
	get asked(): readonly JsonObject[] {
		return this.received.filter((message) => 'method' in message && 'id' in message);
	}

	/** Notifications of one method. */
	notes(method: string): readonly JsonObject[] {
		return this.received.filter((message) => message['method'] === method);
	}

	async hello(): Promise<JsonObject> {
		const { result } = await this.request('initialize', {
			protocolVersion: this.options.version ?? '2025-11-25',
			capabilities: this.options.capabilities ?? ASKABLE,
			clientInfo: { name: 'legacy-wire', version: '1' },
		});
		await this.notify('notifications/initialized');
		return result;
	}

	/** Sends a request and waits for its answer. */
	async request(
		method: string,
		params: JsonObject = {},
		id: string | number = ++serial,
	): Promise<LegacyAnswer> {
		await this.write({ jsonrpc: '2.0', id, method, params });
		const answer = await this.until((message) => message['id'] === id && !('method' in message));
		return {
			result: (answer['result'] ?? {}) as JsonObject,
			error: answer['error'] as LegacyAnswer['error'],
		};
	}

	call(name: string, args: JsonObject = {}, more: JsonObject = {}): Promise<LegacyAnswer> {
		return this.request('tools/call', { name, arguments: args, ...more });
	}

	/** Calls a tool as a task; answers the task. */
	async start(
		name: string,
		args: JsonObject = {},
		more: JsonObject = {},
	): Promise<JsonObject & { taskId: string }> {
		const { result, error } = await this.call(name, args, { task: {}, ...more });
		if (error) throw new Error(error.message);
		return result['task'] as JsonObject & { taskId: string };
	}

	async get(taskId: string): Promise<JsonObject> {
		return (await this.request('tasks/get', { taskId })).result;
	}

	notify(method: string, params: JsonObject = {}): Promise<void> {
		return this.write({ jsonrpc: '2.0', method, params });
	}

	/** The first message that is as `wanted` says, there already or still to come. */
	async until(wanted: (message: JsonObject) => boolean): Promise<JsonObject> {
		for (;;) {
			const found = this.received.find(wanted);
			if (found) return found;
			await new Promise<void>((resolve) => this.#wake.add(resolve));
		}
	}

	protected take(message: JsonObject): void {
		this.received.push(message);
		for (const wake of this.#wake) wake();
		this.#wake.clear();
		if (!('method' in message) || !('id' in message)) return;
		const answer = (this.options.answer ?? agree)(message);
		// The session may be over by now.
		if (answer) this.write({ jsonrpc: '2.0', id: message['id'] ?? 0, ...answer }).catch(() => {});
	}

	abstract write(message: JsonObject): Promise<void>;
}

/** A stream of a session. */
export interface LegacyStream {
	readonly status: number;
	readonly body: string;
	/** The last event id that came on it. */
	readonly lastEventId: () => string | undefined;
	readonly ended: Promise<void>;
	cut(): void;
}

/** A session over Streamable HTTP. */
export class HttpSession extends LegacyWire {
	readonly url: string;
	sessionId: string | undefined;
	readonly streams: LegacyStream[] = [];
	readonly #gone = new AbortController();

	private constructor(url: string, options: LegacyOptions) {
		super(options);
		this.url = url;
	}

	static async open(url: string, options: LegacyOptions = {}): Promise<HttpSession> {
		const session = new HttpSession(url, options);
		await session.hello();
		return session;
	}

	headers(more: Readonly<Record<string, string>> = {}): Record<string, string> {
		const { version = '2025-11-25', token } = this.options;
		return {
			'content-type': 'application/json',
			accept: 'application/json, text/event-stream',
			...(this.sessionId !== undefined && {
				'mcp-session-id': this.sessionId,
				'mcp-protocol-version': version,
			}),
			...(token !== undefined && { authorization: `Bearer ${token}` }),
			...more,
		};
	}

	async write(message: JsonObject): Promise<void> {
		const { status, body } = await this.open(message);
		if (status >= 400) throw new Error(`HTTP ${status}: ${body}`);
	}

	/** Posts a message; what comes back on its stream is taken as it comes. */
	async open(message: JsonObject): Promise<LegacyStream> {
		const cut = new AbortController();
		const response = await fetch(this.url, {
			method: 'POST',
			headers: this.headers(),
			body: JSON.stringify(message),
			signal: AbortSignal.any([cut.signal, this.#gone.signal]),
		});
		this.sessionId ??= response.headers.get('mcp-session-id') ?? undefined;
		return this.#read(response, cut);
	}

	/** Opens the stream that belongs to no request, or goes on with one. */
	async listen(lastEventId?: string): Promise<LegacyStream> {
		const cut = new AbortController();
		const response = await fetch(this.url, {
			headers: this.headers({
				accept: 'text/event-stream',
				...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
			}),
			signal: AbortSignal.any([cut.signal, this.#gone.signal]),
		});
		return this.#read(response, cut);
	}

	delete(): Promise<Response> {
		return fetch(this.url, { method: 'DELETE', headers: this.headers() });
	}

	/** The client goes away with all that it has open. */
	close(): void {
		this.#gone.abort();
	}

	async #read(response: Response, cut: AbortController): Promise<LegacyStream> {
		const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
		const body = isStream ? '' : await response.text();
		if (!isStream && body !== '') this.take(JSON.parse(body) as JsonObject);
		let lastEventId: string | undefined;
		const pump = async (): Promise<void> => {
			const decoder = new TextDecoder();
			let rest = '';
			for await (const chunk of response.body ?? []) {
				rest += decoder.decode(chunk as Uint8Array, { stream: true });
				const frames = rest.split('\n\n');
				rest = frames.pop() ?? '';
				for (const frame of frames) {
					lastEventId = /^id: ?(.*)$/m.exec(frame)?.[1] ?? lastEventId;
					const data = /^data: ?(.+)$/m.exec(frame)?.[1];
					if (data !== undefined && data.trim() !== '') this.take(JSON.parse(data) as JsonObject);
				}
			}
		};
		const stream: LegacyStream = {
			status: response.status,
			body,
			lastEventId: () => lastEventId,
			// A stream that was cut has ended.
			ended: isStream ? pump().catch(() => {}) : Promise.resolve(),
			cut: () => cut.abort(),
		};
		this.streams.push(stream);
		return stream;
	}
}

/** A connection over stdio. */
export class StdioConnection extends LegacyWire {
	readonly #pair: StdioPair;

	private constructor(pair: StdioPair, options: LegacyOptions) {
		super(options);
		this.#pair = pair;
		const send = pair.server.send.bind(pair.server);
		pair.server.send = async (message, sendOptions) => {
			await send(message, sendOptions);
			this.take(JSON.parse(JSON.stringify(message)) as JsonObject);
		};
	}

	static async open(pair: StdioPair, options: LegacyOptions = {}): Promise<StdioConnection> {
		const connection = new StdioConnection(pair, options);
		await connection.hello();
		return connection;
	}

	async write(message: JsonObject): Promise<void> {
		this.#pair.server.onmessage?.(JSON.parse(JSON.stringify(message)) as JSONRPCMessage);
	}
}
