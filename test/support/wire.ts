/**
 * Raw MCP on the wire, written by hand: what goes out is what a test says and what comes back is what was sent,
 * with no library in between that would mend either. The same face for Streamable HTTP and for stdio.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';

export const TASKS = 'io.modelcontextprotocol/tasks';
export const VERSION = '2026-07-28';
export const META = {
	version: 'io.modelcontextprotocol/protocolVersion',
	client: 'io.modelcontextprotocol/clientInfo',
	capabilities: 'io.modelcontextprotocol/clientCapabilities',
	subscription: 'io.modelcontextprotocol/subscriptionId',
} as const;

/** What a client that can be asked anything declares beside the extension. */
export const ASKABLE: JsonObject = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

export interface WireOptions {
	/** Whether the request declares the extension. Default true. */
	readonly declare?: boolean;
	/** Further `_meta` entries; undefined takes one out. */
	readonly meta?: Readonly<Record<string, unknown>>;
	/** HTTP headers that differ from the right ones; undefined takes one out. */
	readonly headers?: Readonly<Record<string, string | undefined>>;
	readonly id?: string | number;
}

/** An answer, and over HTTP its status. */
export interface WireAnswer {
	readonly status: number | undefined;
	readonly id: unknown;
	readonly result: JsonObject | undefined;
	readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } | undefined;
	/** What came before the answer on the same stream. */
	readonly notes: readonly JsonObject[];
}

/** The stream of one `subscriptions/listen`. */
export interface WireStream {
	/** Everything that came, in order. */
	readonly messages: readonly JsonObject[];
	/** The first message from here on that is as `wanted` says; those before it are passed over. */
	next(wanted?: (message: JsonObject) => boolean): Promise<JsonObject>;
	/** The ids that the acknowledgement honours; waits for it. */
	honoured(): Promise<readonly string[]>;
	/** The next notification for a task in this status. */
	task(taskId: string, status?: string): Promise<JsonObject>;
	/** Resolves when the server ended the stream. */
	readonly ended: Promise<void>;
	/** The client goes away: closes the connection, or over stdio cancels the request. */
	close(): Promise<void>;
}

export interface Wire {
	readonly kind: 'http' | 'stdio';
	request(method: string, params?: JsonObject, options?: WireOptions): Promise<WireAnswer>;
	notify(method: string, params?: JsonObject): Promise<void>;
	listen(taskIds: readonly unknown[], options?: WireOptions, filter?: JsonObject): Promise<WireStream>;
	/** The client goes away with all that it has open. */
	close(): Promise<void>;
}

let serial = 0;

/** A message as the specification wants it, with the envelope in it. */
export function envelope(method: string, params: JsonObject, options: WireOptions): JsonObject {
	const meta: Record<string, unknown> = {
		[META.version]: VERSION,
		[META.client]: { name: 'wire', version: '1' },
		[META.capabilities]: { ...ASKABLE, ...(options.declare !== false && { extensions: { [TASKS]: {} } }) },
		...options.meta,
	};
	for (const [name, value] of Object.entries(meta)) if (value === undefined) delete meta[name];
	const whole = { ...params, _meta: meta };
	return { jsonrpc: '2.0', id: options.id ?? ++serial, method, params: whole } as unknown as JsonObject;
}

/** The headers that belong to a message. */
export function headersFor(message: JsonObject, options: WireOptions): Headers {
	const params = isJsonObject(message['params']) ? message['params'] : {};
	const name = params['name'] ?? params['taskId'];
	const headers = new Headers({
		'content-type': 'application/json',
		accept: 'application/json, text/event-stream',
		'mcp-protocol-version': VERSION,
		...(typeof message['method'] === 'string' && { 'mcp-method': message['method'] }),
		...(typeof name === 'string' && { 'mcp-name': name }),
	});
	for (const [key, value] of Object.entries(options.headers ?? {})) {
		if (value === undefined) headers.delete(key);
		else headers.set(key, value);
	}
	return headers;
}

export type Fetch = (request: Request) => Promise<Response>;

/** A client of an HTTP endpoint, or directly of a web-standard handler. */
export function httpWire(url: string, fetcher: Fetch = fetch): Wire {
	const gone = new AbortController();
	const post = (message: JsonObject, options: WireOptions, signal = gone.signal): Promise<Response> =>
		fetcher(
			new Request(url, {
				method: 'POST',
				headers: headersFor(message, options),
				body: JSON.stringify(message),
				signal,
			}),
		);
	return {
		kind: 'http',
		request: async (method, params = {}, options = {}) => {
			const response = await post(envelope(method, params, options), options);
			const messages = await readAll(response);
			return toAnswer(messages, response.status);
		},
		notify: async (method, params = {}) => {
			const message = { jsonrpc: '2.0', method, params };
			const response = await post(message, {});
			await response.body?.cancel();
		},
		listen: async (taskIds, options = {}, filter = {}) => {
			const leave = new AbortController();
			const params = { notifications: { ...filter, taskIds } } as unknown as JsonObject;
			const message = envelope('subscriptions/listen', params, options);
			const response = await post(message, options, AbortSignal.any([gone.signal, leave.signal]));
			if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
				throw new WireRefusal(toAnswer(await readAll(response), response.status));
			const inbox = new Inbox();
			void pump(response, inbox);
			return streamOf(inbox, async () => leave.abort());
		},
		close: async () => gone.abort(),
	};
}

/** A listen request that was answered with an error instead of a stream. */
export class WireRefusal extends Error {
	readonly answer: WireAnswer;

	constructor(answer: WireAnswer) {
		super(`refused: ${JSON.stringify(answer)}`);
		this.answer = answer;
	}
}

async function readAll(response: Response): Promise<JsonObject[]> {
	if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
		const inbox = new Inbox();
		await pump(response, inbox);
		return [...inbox.messages];
	}
	const text = await response.text();
	return text === '' ? [] : [JSON.parse(text) as JsonObject];
}

async function pump(response: Response, inbox: Inbox): Promise<void> {
	const decoder = new TextDecoder();
	let rest = '';
	try {
		for await (const chunk of response.body ?? []) {
			rest += decoder.decode(chunk as Uint8Array, { stream: true });
			const frames = rest.split(/\r?\n\r?\n/);
			rest = frames.pop() ?? '';
			for (const frame of frames) {
				const data = frame
					.split(/\r?\n/)
					.filter((line) => line.startsWith('data:'))
					.map((line) => line.slice(5).trimStart());
				// The event that opens a resumable stream has an id and no message.
				if (data.join('') !== '') inbox.put(JSON.parse(data.join('\n')) as JsonObject);
			}
		}
	} catch {
		// The connection ended under the reader.
	}
	inbox.end();
}

/** The client's end of an in-memory stdio connection. */
export interface StdioPair {
	readonly server: Transport;
	readonly wire: Wire;
	/** Everything that the server wrote, in order. */
	readonly received: readonly JsonObject[];
}

/** A stdio connection without a process: what is written at one end is read at the other, as JSON text. */
export function stdioPair(): StdioPair {
	const received: JsonObject[] = [];
	const inboxes = new Map<unknown, Inbox>();
	const waiting = new Map<unknown, (message: JsonObject) => void>();
	const notes: JsonObject[] = [];
	let closed = false;
	const server: Transport = {
		start: async () => {},
		send: async (message) => {
			if (closed) throw new Error('the connection is closed');
			receive(JSON.parse(JSON.stringify(message)) as JsonObject);
		},
		close: async () => {
			if (closed) return;
			closed = true;
			for (const inbox of inboxes.values()) inbox.end();
			server.onclose?.();
		},
	};
	const receive = (message: JsonObject): void => {
		received.push(message);
		const params = isJsonObject(message['params']) ? message['params'] : {};
		const meta = isJsonObject(params['_meta']) ? params['_meta'] : {};
		const inbox = inboxes.get(meta[META.subscription]) ?? inboxes.get(message['id']);
		if (inbox) {
			inbox.put(message);
			if (message['id'] !== undefined) inbox.end();
		} else if (message['id'] !== undefined && message['method'] === undefined) {
			waiting.get(message['id'])?.(message);
			waiting.delete(message['id']);
		} else notes.push(message);
	};
	const write = (message: JsonObject): void =>
		server.onmessage?.(JSON.parse(JSON.stringify(message)) as JSONRPCMessage);
	const wire: Wire = {
		kind: 'stdio',
		request: (method, params = {}, options = {}) =>
			new Promise((resolve) => {
				const message = envelope(method, params, options);
				const from = notes.length;
				waiting.set(message['id'], (answer) => resolve(toAnswer([...notes.slice(from), answer], undefined)));
				write(message);
			}),
		notify: async (method, params = {}) => write({ jsonrpc: '2.0', method, params }),
		listen: async (taskIds, options = {}, filter = {}) => {
			const params = { notifications: { ...filter, taskIds } } as unknown as JsonObject;
			const message = envelope('subscriptions/listen', params, options);
			const inbox = new Inbox();
			inboxes.set(message['id'], inbox);
			write(message);
			const first = await inbox.next(0);
			if (first['error'] !== undefined) throw new WireRefusal(toAnswer([first], undefined));
			return streamOf(inbox, async () => {
				inboxes.delete(message['id']);
				write({
					jsonrpc: '2.0',
					method: 'notifications/cancelled',
					params: { requestId: message['id'] ?? 0 },
				});
			});
		},
		close: () => server.close(),
	};
	return { server, wire, received };
}

function toAnswer(messages: readonly JsonObject[], status: number | undefined): WireAnswer {
	const last = messages.at(-1) ?? {};
	return {
		status,
		id: last['id'],
		result: last['result'] as JsonObject | undefined,
		error: last['error'] as WireAnswer['error'],
		notes: messages.slice(0, -1),
	};
}

/** What has come so far, and whoever waits for more. */
class Inbox {
	readonly messages: JsonObject[] = [];
	readonly ended: Promise<void>;
	readonly #wake = new Set<() => void>();
	#end: () => void;
	#over = false;

	constructor() {
		const { promise, resolve } = Promise.withResolvers<void>();
		this.ended = promise;
		this.#end = resolve;
	}

	put(message: JsonObject): void {
		this.messages.push(message);
		for (const wake of [...this.#wake]) wake();
	}

	end(): void {
		this.#over = true;
		this.#end();
		for (const wake of [...this.#wake]) wake();
	}

	async next(index: number): Promise<JsonObject> {
		for (;;) {
			const message = this.messages[index];
			if (message) return message;
			if (this.#over) throw new Error(`the stream ended after ${JSON.stringify(this.messages)}`);
			await new Promise<void>((resolve) => {
				const wake = (): void => {
					this.#wake.delete(wake);
					resolve();
				};
				this.#wake.add(wake);
			});
		}
	}
}

function streamOf(inbox: Inbox, close: () => Promise<void>): WireStream {
	let read = 0;
	const next = async (wanted: (message: JsonObject) => boolean = () => true): Promise<JsonObject> => {
		for (;;) {
			const message = await inbox.next(read++);
			if (wanted(message)) return message;
		}
	};
	return {
		messages: inbox.messages,
		next,
		honoured: async () => {
			const acknowledged = await inbox.next(0);
			const params = isJsonObject(acknowledged['params']) ? acknowledged['params'] : {};
			const notifications = isJsonObject(params['notifications']) ? params['notifications'] : {};
			return notifications['taskIds'] as readonly string[];
		},
		task: (taskId, status) =>
			next((message) => {
				const params = isJsonObject(message['params']) ? message['params'] : {};
				return (
					message['method'] === 'notifications/tasks' &&
					params['taskId'] === taskId &&
					(status === undefined || params['status'] === status)
				);
			}),
		ended: inbox.ended,
		close,
	};
}

/** Looks until something holds, at most as long as the deadline; the last failure speaks. */
export async function eventually<T>(look: () => Promise<T> | T, deadlineMs = 10_000): Promise<T> {
	const until = performance.now() + deadlineMs;
	for (;;) {
		try {
			return await look();
		} catch (error) {
			if (performance.now() > until) throw error;
		}
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
}
