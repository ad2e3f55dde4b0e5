/**
 * A strict Tasks server that holdfast did not write: it holds every request against the published schemas of the
 * extension and answers with whatever a test scripts, legal or not. In memory, and in step with a fake clock.
 */
import {
	CancelTaskRequestV2Schema,
	ClientTaskCapabilityEnvelopeV2Schema,
	GetTaskRequestV2Schema,
	UpdateTaskRequestV2Schema,
} from '@modelcontextprotocol/ext-tasks/core/v2';
import {
	Client,
	type ClientOptions,
	type JSONRPCMessage,
	type Transport,
} from '@modelcontextprotocol/client';
import { TaskClient } from '../../src/client/task-client.ts';
import type { TaskClientOptions } from '../../src/client/task-client-options.ts';
import { FakeClock } from '../../src/testing/index.ts';

type Json = Record<string, unknown>;

/** A request as the server saw it. */
export interface Seen {
	readonly method: string;
	readonly params: Json;
	readonly atMs: number;
}

/** A JSON-RPC error to answer with. */
export class Refusal extends Error {
	readonly code: number;

	constructor(code: number, message = 'Refused') {
		super(message);
		this.code = code;
	}
}

/** Answers nothing at all. */
export const SILENCE = Symbol('silence');

/** Fails as a connection does. */
export const DROP = Symbol('drop');

const VERSION = '2026-07-28';

const DISCOVER = {
	resultType: 'complete',
	supportedVersions: [VERSION],
	capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
	ttlMs: 0,
	cacheScope: 'private',
	_meta: { 'io.modelcontextprotocol/serverInfo': { name: 'fake', version: '1' } },
};

const SCHEMAS = {
	'tasks/get': GetTaskRequestV2Schema,
	'tasks/update': UpdateTaskRequestV2Schema,
	'tasks/cancel': CancelTaskRequestV2Schema,
} as const;

/** The task of a script, with every required field. */
export function task(fields: Json = {}): Json {
	return {
		...{ taskId: 't1', status: 'working', ttlMs: 600_000, pollIntervalMs: 1_000 },
		...{ createdAt: '2026-07-28T00:00:00.000Z', lastUpdatedAt: '2026-07-28T00:00:00.000Z' },
		...fields,
	};
}

/** An input request in form mode. */
export function form(message = 'Sure?', properties: Json = { ok: { type: 'boolean' } }): Json {
	return {
		method: 'elicitation/create',
		params: { mode: 'form', message, requestedSchema: { type: 'object', properties } },
	};
}

/** A completed task with this text. */
export function done(words: string, fields: Json = {}): Json {
	const result = { resultType: 'complete', content: [{ type: 'text', text: words }] };
	return task({ status: 'completed', result, ...fields });
}

export class FakeServer {
	readonly clock: FakeClock;
	readonly seen: Seen[] = [];
	/** What the client did that the specification forbids. */
	readonly violations: string[] = [];
	/** What `tools/list` lists. */
	tools: readonly Json[] = [];
	/** The fields of `tools/call` results, by default a new task. */
	call: (params: Json) => unknown = () => ({ resultType: 'task', ...task() });
	/** The task that the `n`th `tasks/get` of this id is answered with, from 1. */
	get: (n: number, taskId: string) => unknown = () => done('done');
	update: (params: Json) => unknown = () => ({});
	cancel: (params: Json) => unknown = () => ({});
	/** The ids that a listen request is honoured for; a Refusal where listening is not offered. */
	listen: (taskIds: readonly string[], id: string) => readonly string[] | Refusal = () => new Refusal(-32601);
	readonly listenIds: string[] = [];
	#transport: FakeTransport | undefined;
	readonly #polls = new Map<string, number>();

	constructor(clock: FakeClock = new FakeClock()) {
		this.clock = clock;
	}

	/** Connects an SDK client. */
	async connect(options: ClientOptions = {}): Promise<Client> {
		const client = new Client(
			{ name: 'host', version: '1' },
			{ versionNegotiation: { mode: { pin: VERSION } }, ...options },
		);
		await this.reconnect(client);
		return client;
	}

	/** Gives a client a new connection. */
	async reconnect(client: Client): Promise<void> {
		this.#transport = new FakeTransport((message, transport) => this.#receive(message, transport));
		await client.connect(this.#transport);
	}

	/** Connects an SDK client with a task client around it. */
	async taskClient(options: TaskClientOptions = {}, clientOptions: ClientOptions = {}): Promise<TaskClient> {
		const client = await this.connect(clientOptions);
		return new TaskClient(client, { clock: this.clock, random: () => 0, ...options });
	}

	/** Sends `notifications/tasks` on an open stream. */
	notify(params: Json, listenId = this.listenIds.at(-1) ?? 'listen:0'): void {
		const meta = { 'io.modelcontextprotocol/subscriptionId': listenId };
		this.push({ jsonrpc: '2.0', method: 'notifications/tasks', params: { ...params, _meta: meta } });
	}

	/** Ends a stream: with its result, or as if the connection broke. */
	endListen(how: 'graceful' | 'remote', listenId = this.listenIds.at(-1) ?? ''): void {
		if (how === 'graceful') this.push({ jsonrpc: '2.0', id: listenId, result: { resultType: 'complete' } });
		else this.#transport?.endStream(listenId);
	}

	push(message: Json, transport = this.#transport): void {
		transport?.onmessage?.(message as unknown as JSONRPCMessage);
	}

	/** The requests of one method. */
	of(method: string): Seen[] {
		return this.seen.filter((seen) => seen.method === method);
	}

	/** When each `tasks/get` came, in milliseconds after the first `tools/call`. */
	pollTimes(): number[] {
		const startMs = this.of('tools/call')[0]?.atMs ?? 0;
		return this.of('tasks/get').map(({ atMs }) => Math.round(atMs - startMs));
	}

	async #receive(message: JSONRPCMessage, from: FakeTransport): Promise<void> {
		if (!('method' in message)) return;
		const { method } = message;
		const params = (message.params ?? {}) as Json;
		this.seen.push({ method, params, atMs: this.clock.nowMs() });
		if (!('id' in message) || message.id === undefined) return;
		this.#check(message, method, params);
		const { id } = message;
		const answer = await this.#answer(method, params, String(id));
		if (answer === SILENCE) return;
		if (answer === DROP) throw new TypeError('fetch failed');
		if (answer instanceof Refusal)
			return this.push({ jsonrpc: '2.0', id, error: { code: answer.code, message: answer.message } }, from);
		this.push({ jsonrpc: '2.0', id, result: answer }, from);
	}

	#answer(method: string, params: Json, id: string): unknown {
		const taskId = String(params['taskId']);
		switch (method) {
			case 'server/discover':
				return DISCOVER;
			case 'tools/list':
				return { resultType: 'complete', tools: this.tools, ttlMs: 0, cacheScope: 'private' };
			case 'tools/call':
				return this.call(params);
			case 'tasks/get': {
				const n = (this.#polls.get(taskId) ?? 0) + 1;
				this.#polls.set(taskId, n);
				return completed(this.get(n, taskId));
			}
			case 'tasks/update':
				return completed(this.update(params));
			case 'tasks/cancel':
				return completed(this.cancel(params));
			case 'subscriptions/listen':
				return this.#listen(params, id);
			default:
				return new Refusal(-32601, `No ${method}`);
		}
	}

	#listen(params: Json, id: string): unknown {
		const { taskIds } = params['notifications'] as { taskIds: string[] };
		const honoured = this.listen(taskIds, id);
		if (honoured instanceof Refusal) return honoured;
		this.listenIds.push(id);
		this.push({
			jsonrpc: '2.0',
			method: 'notifications/subscriptions/acknowledged',
			params: {
				notifications: { taskIds: honoured },
				_meta: { 'io.modelcontextprotocol/subscriptionId': id },
			},
		});
		return SILENCE;
	}

	#check(message: Json, method: string, params: Json): void {
		const fail = (what: string): void => void this.violations.push(`${method}: ${what}`);
		const meta = (params['_meta'] ?? {}) as Json;
		if (method === 'server/discover') return;
		if (meta['io.modelcontextprotocol/protocolVersion'] !== VERSION) fail('no protocol version');
		const capabilities = meta['io.modelcontextprotocol/clientCapabilities'];
		if (!ClientTaskCapabilityEnvelopeV2Schema.safeParse(capabilities).success) fail('does not declare Tasks');
		for (const key of Object.keys(meta)) if (key.startsWith('holdfast/')) fail(`leaks ${key}`);
		if (method in SCHEMAS) {
			const parsed = SCHEMAS[method as keyof typeof SCHEMAS].safeParse(message);
			if (!parsed.success) fail(JSON.stringify(parsed.error.issues));
		}
	}
}

class FakeTransport implements Transport {
	onmessage?: NonNullable<Transport['onmessage']>;
	onclose?: NonNullable<Transport['onclose']>;
	onerror?: NonNullable<Transport['onerror']>;
	readonly #receive: (message: JSONRPCMessage, from: FakeTransport) => Promise<void>;
	readonly #streamEnds = new Map<string, () => void>();

	constructor(receive: (message: JSONRPCMessage, from: FakeTransport) => Promise<void>) {
		this.#receive = receive;
	}

	async start(): Promise<void> {}

	async send(message: JSONRPCMessage, options?: Parameters<Transport['send']>[1]): Promise<void> {
		// Through JSON, as a wire does.
		const copy = JSON.parse(JSON.stringify(message)) as JSONRPCMessage;
		if ('id' in message && options?.onRequestStreamEnd)
			this.#streamEnds.set(String(message.id), options.onRequestStreamEnd);
		await Promise.resolve();
		await this.#receive(copy, this);
	}

	endStream(id: string): void {
		this.#streamEnds.get(id)?.();
	}

	async close(): Promise<void> {
		this.onclose?.();
	}
}

function completed(answer: unknown): unknown {
	if (answer === SILENCE || answer === DROP || answer instanceof Refusal) return answer;
	return { resultType: 'complete', ...(answer as Json) };
}
