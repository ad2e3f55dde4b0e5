/** A bare client of one MCP endpoint over HTTP: sees exactly what is on the wire, and can break off anywhere. */
import {
	Agent,
	type ClientRequest,
	type IncomingHttpHeaders,
	type IncomingMessage,
	request,
} from 'node:http';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/protocol/json.ts';
import {
	CLIENT_CAPABILITIES_META,
	CLIENT_INFO_META,
	IDEMPOTENCY_KEY_META,
	PROTOCOL_VERSION_META,
	TASKS_EXTENSION,
	TASKS_PROTOCOL_VERSION,
} from '../../src/protocol/names.ts';
import type { DetailedTask, WireError } from '../../src/protocol/task.ts';

/** What came back for one request. */
export interface Reply {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	/** The whole body as it came. */
	readonly text: string;
	/** The last JSON-RPC message of the body: the answer. */
	readonly message: JsonObject;
	/** Every message before it. */
	readonly notes: readonly JsonObject[];
	/** Milliseconds until the headers came, and between any two pieces of the body at most. */
	readonly headersAfterMs: number;
	readonly longestSilenceMs: number;
}

/** A request that is under way. */
export interface Pending {
	readonly reply: Promise<Reply>;
	/** Resolves with the headers; rejects when there will be none. */
	readonly begun: Promise<IncomingHttpHeaders>;
	/** Messages as they arrive. */
	readonly messages: readonly JsonObject[];
	/** Destroys the socket without a word. */
	cut(): void;
}

export interface WireOptions {
	readonly token?: string;
	/** What the client declares; by default Tasks and every kind of input. */
	readonly capabilities?: JsonObject;
}

export interface CallOptions {
	readonly key?: JsonValue;
	readonly progressToken?: string | number;
	readonly inputResponses?: JsonObject;
	readonly requestState?: string;
}

export const DECLARES_TASKS: JsonObject = {
	elicitation: { form: {}, url: {} },
	sampling: {},
	roots: {},
	extensions: { [TASKS_EXTENSION]: {} },
};

/** The `_meta` of every request on 2026-07-28. */
export function envelope(capabilities: JsonObject = DECLARES_TASKS): JsonObject {
	return {
		[PROTOCOL_VERSION_META]: TASKS_PROTOCOL_VERSION,
		[CLIENT_INFO_META]: { name: 'wire', version: '1' },
		[CLIENT_CAPABILITIES_META]: capabilities,
	};
}

/** The parameters of a `tools/call`. */
export function callParams(
	name: string,
	args: JsonObject,
	capabilities: JsonObject,
	options: CallOptions,
): JsonObject {
	const { key, progressToken, ...rest } = options;
	const meta = {
		...envelope(capabilities),
		...(key !== undefined && { [IDEMPOTENCY_KEY_META]: key }),
		...(progressToken !== undefined && { progressToken }),
	};
	return { name, arguments: args, ...rest, _meta: meta };
}

export class Wire {
	readonly url: string;
	readonly #options: WireOptions;
	readonly #agent = new Agent({ keepAlive: true, maxSockets: Infinity });
	#lastId = 0;

	constructor(url: string, options: WireOptions = {}) {
		this.url = url;
		this.#options = options;
	}

	get capabilities(): JsonObject {
		return this.#options.capabilities ?? DECLARES_TASKS;
	}

	close(): void {
		this.#agent.destroy();
	}

	/** Sends any bytes; headers given replace the usual ones, and undefined leaves one out. */
	raw(body: string | Buffer, headers: Readonly<Record<string, string | undefined>> = {}): Pending {
		const all = {
			'content-type': 'application/json',
			accept: 'application/json, text/event-stream',
			'mcp-protocol-version': TASKS_PROTOCOL_VERSION,
			...(this.#options.token !== undefined && { authorization: `Bearer ${this.#options.token}` }),
			...headers,
		};
		const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
		return post(this.url, this.#agent, Object.fromEntries(sent), body);
	}

	send(
		method: string,
		params: JsonObject,
		headers: Readonly<Record<string, string | undefined>> = {},
	): Pending {
		const id = ++this.#lastId;
		const name = params['taskId'] ?? params['name'];
		return this.raw(JSON.stringify({ jsonrpc: '2.0', id, method, params }), {
			'mcp-method': method,
			...(typeof name === 'string' && { 'mcp-name': headerValue(name) }),
			...headers,
		});
	}

	request(method: string, params: JsonObject = {}): Promise<Reply> {
		return this.send(method, { _meta: envelope(this.capabilities), ...params }).reply;
	}

	beginCall(name: string, args: JsonObject = {}, options: CallOptions = {}): Pending {
		return this.send('tools/call', callParams(name, args, this.capabilities, options));
	}

	/** Calls a tool and answers its result, a task among them; throws on an error. */
	async call(name: string, args: JsonObject = {}, options: CallOptions = {}): Promise<JsonObject> {
		return resultOf(await this.beginCall(name, args, options).reply);
	}

	/** Calls a tool that is to become a task, and answers its id. */
	async start(name: string, args: JsonObject = {}, options: CallOptions = {}): Promise<string> {
		const result = await this.call(name, args, options);
		if (result['resultType'] !== 'task' || typeof result['taskId'] !== 'string')
			throw new Error(`No task came of it: ${JSON.stringify(result)}`);
		return result['taskId'];
	}

	async get(taskId: string): Promise<DetailedTask> {
		return resultOf(await this.request('tasks/get', { taskId })) as unknown as DetailedTask;
	}

	async update(taskId: string, inputResponses: JsonObject): Promise<JsonObject> {
		return resultOf(await this.request('tasks/update', { taskId, inputResponses }));
	}

	async cancel(taskId: string): Promise<JsonObject> {
		return resultOf(await this.request('tasks/cancel', { taskId }));
	}

	/** A stream of changes of these tasks. */
	listen(taskIds: readonly string[]): Pending {
		return this.send('subscriptions/listen', {
			notifications: { taskIds },
			_meta: envelope(this.capabilities),
		});
	}
}

/** The result of a reply; throws its error. */
export function resultOf({ message, status, text }: Reply): JsonObject {
	if (isJsonObject(message['result'])) return message['result'];
	throw new Error(`HTTP ${status}: ${text.slice(0, 500)}`);
}

/** The error of a reply; throws when there is none. */
export function errorOf({ message, text }: Reply): WireError {
	if (isJsonObject(message['error'])) return message['error'] as unknown as WireError;
	throw new Error(`There is no error: ${text.slice(0, 500)}`);
}

/** A header value as the specification sends one that is not plain text. */
export function headerValue(value: string): string {
	return /^[\x21-\x7e]+$/.test(value) && !value.startsWith('=?')
		? value
		: `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}

/** A value that is to be a string. */
export function stringOf(value: unknown): string {
	if (typeof value !== 'string') throw new Error(`A string was expected: ${JSON.stringify(value)}`);
	return value;
}

/** The text of a tool result's first content block. */
export function textOf(result: unknown): string {
	const content = isJsonObject(result) ? result['content'] : undefined;
	const [first] = Array.isArray(content) ? (content as readonly JsonValue[]) : [];
	return isJsonObject(first) && typeof first['text'] === 'string' ? first['text'] : '';
}

function post(url: string, agent: Agent, headers: Record<string, string>, body: string | Buffer): Pending {
	const startedAtMs = performance.now();
	const messages: JsonObject[] = [];
	const begun = Promise.withResolvers<IncomingHttpHeaders>();
	const reply = Promise.withResolvers<Reply>();
	begun.promise.catch(() => {});
	reply.promise.catch(() => {});
	const fail = (error: Error): void => {
		begun.reject(error);
		reply.reject(error);
	};
	let outgoing: ClientRequest;
	const attempt = (isSecond: boolean): void => {
		outgoing = request(url, {
			method: 'POST',
			agent,
			headers: { ...headers, 'content-length': Buffer.byteLength(body) },
		});
		outgoing.on('error', (error) => {
			// A kept connection that the server let go of in this moment: it has not read anything.
			const isStale = outgoing.reusedSocket && 'code' in error && error.code === 'ECONNRESET';
			if (isStale && !isSecond && !isCut) attempt(true);
			else fail(error);
		});
		outgoing.on('response', (incoming) => {
			begun.resolve(incoming.headers);
			const headersAfterMs = performance.now() - startedAtMs;
			read(incoming, messages).then(
				(rest) =>
					reply.resolve({
						status: incoming.statusCode ?? 0,
						headers: incoming.headers,
						headersAfterMs,
						...rest,
					}),
				fail,
			);
		});
		outgoing.end(body);
	};
	let isCut = false;
	attempt(false);
	return {
		reply: reply.promise,
		begun: begun.promise,
		messages,
		cut: () => {
			isCut = true;
			outgoing.destroy();
		},
	};
}

async function read(
	incoming: IncomingMessage,
	messages: JsonObject[],
): Promise<Pick<Reply, 'text' | 'message' | 'notes' | 'longestSilenceMs'>> {
	const isStream = (incoming.headers['content-type'] ?? '').startsWith('text/event-stream');
	const decoder = new TextDecoder();
	let text = '';
	let parsedTo = 0;
	let lastAtMs = performance.now();
	let longestSilenceMs = 0;
	for await (const chunk of incoming as AsyncIterable<Buffer>) {
		longestSilenceMs = Math.max(longestSilenceMs, performance.now() - lastAtMs);
		lastAtMs = performance.now();
		text += decoder.decode(chunk, { stream: true });
		if (isStream) parsedTo = readFrames(text, parsedTo, messages);
	}
	if (!isStream) messages.push(parsed(text));
	return { text, message: messages.at(-1) ?? {}, notes: messages.slice(0, -1), longestSilenceMs };
}

/** Reads the events that are complete; answers up to where. */
function readFrames(text: string, from: number, messages: JsonObject[]): number {
	for (;;) {
		const end = text.indexOf('\n\n', from);
		if (end < 0) return from;
		const lines = text.slice(from, end).split('\n');
		const data = lines.find((line) => line.startsWith('data:'));
		if (data !== undefined) messages.push(JSON.parse(data.slice(5)) as JsonObject);
		from = end + 2;
	}
}

function parsed(text: string): JsonObject {
	try {
		return JSON.parse(text) as JsonObject;
	} catch {
		return {};
	}
}
