import { randomUUID } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import type { WireError } from '../protocol/task.ts';
import { KnownTasks } from './known-tasks.ts';
import { inLegacyForm, mendedHello, refuseLegacyCall } from './legacy-form.ts';
import { type LegacyClient, legacyClient } from './legacy-client.ts';
import {
	type CallToolResult,
	isJSONRPCRequest,
	type JSONRPCMessage,
	type McpRequestContext,
	type McpServer,
	type MessageExtraInfo,
	type ServerContext,
	type Transport,
} from './sdk.ts';

/** What a request is to be answered with instead of what the SDK makes of it. */
export type WireAnswer =
	| { readonly kind: 'result'; readonly result: JsonObject }
	| { readonly kind: 'error'; readonly error: WireError };

/** A `tools/call` as it came over the wire. */
export interface RawCall {
	readonly name: string;
	readonly arguments: JsonObject;
	readonly meta: JsonObject;
	/** Answers to a multi-round-trip question, unfiltered. */
	readonly inputResponses: JsonObject;
	/** holdfast's own request state, without its prefix; undefined when it is another's or none. */
	readonly heldTaskId: string | undefined;
	/** The request state of another: of what the tool itself asked in an earlier round. */
	readonly requestState: string | undefined;
	/** Whether it has the `task` parameter, with which a client of 2025-11-25 asks for one (L02). */
	readonly asksForTask: boolean;
}

/** A request between its arrival and its answer. */
interface Pending {
	readonly method: string;
	/** The protocol version that its HTTP header names. */
	readonly versionHeader: string | undefined;
	readonly call?: RawCall;
	readonly responses?: unknown;
	/** Known once the tool was called. */
	signal?: AbortSignal;
	answer?: WireAnswer;
}

const ANSWER_META = 'holdfast/answer';

/** Marks a request state as holdfast's own; the rest is the id of the held task, which is unguessable. */
const STATE_PREFIX = 'holdfast:';

/**
 * The seam to one SDK server: sees requests before the SDK parses them, and replaces answers after the SDK
 * validated them. The SDK would add `content: []` to a task handle, and cannot send a JSON-RPC error from a
 * tool.
 */
export class Exchange {
	/** Tells our own placeholder results from a tool's. */
	readonly #secret = randomUUID();
	/** Requests that were received and not answered yet. */
	readonly #pending = new Map<string | number, Pending>();
	/** The signals of requests that their client cancelled. */
	readonly #cancelled = new WeakSet<AbortSignal>();
	readonly #server: McpServer;
	readonly #isLegacy: boolean;
	readonly #closed = new AbortController();
	#gone = new AbortController();
	/** The tasks that the client of this connection knows. */
	readonly knownTasks = new KnownTasks();

	/** Installs the seam; the server must not be connected yet. */
	constructor(server: McpServer, era: McpRequestContext['era']) {
		this.#server = server;
		this.#isLegacy = era === 'legacy';
		const connect = server.connect.bind(server);
		server.connect = async (transport: Transport): Promise<void> => {
			const send = transport.send.bind(transport);
			transport.send = (message, options) => send(this.#outbound(message), options);
			const { onclose } = transport;
			transport.onclose = () => {
				this.#closed.abort();
				onclose?.();
			};
			await connect(transport);
			const { onmessage } = transport;
			transport.onmessage = (message, extra) => {
				const received = this.#inbound(message, extra);
				const refusal = this.#refusal(received);
				// The SDK would run a tool that is no task tool, whatever the client asked for.
				if (refusal) transport.send(refusal).catch(() => {});
				else onmessage?.(received as typeof message, extra);
			};
		};
	}

	/** Fires when the connection has ended, whoever ended it. */
	get closed(): AbortSignal {
		return this.#closed.signal;
	}

	/** Fires when nothing has been heard of the client for so long that it is taken for gone. */
	get gone(): AbortSignal {
		return this.#gone.signal;
	}

	/** Takes the client for gone; one that comes back after all is there again. */
	giveUp(): void {
		this.#gone.abort();
		this.#gone = new AbortController();
	}

	/** The client of a request; undefined on 2026-07-28, where the request itself says everything. */
	legacyClientOf(ctx: ServerContext): LegacyClient | undefined {
		return this.#legacyClient(this.#pending.get(ctx.mcpReq.id));
	}

	/** Sends a notification that belongs to no request; rejects where the connection is gone. */
	async notify(method: string, params: JsonObject): Promise<void> {
		await this.#server.server.notification({ method, params });
	}

	/** The raw call that a tool callback answers. */
	callOf(ctx: ServerContext): RawCall | undefined {
		const pending = this.#pending.get(ctx.mcpReq.id);
		if (pending) pending.signal = ctx.mcpReq.signal;
		return pending?.call;
	}

	/** The responses of a `tasks/update`, as they came. */
	responsesOf(ctx: ServerContext): unknown {
		return this.#pending.get(ctx.mcpReq.id)?.responses;
	}

	/** Whether the client itself cancelled the request, as opposed to a connection that went away. */
	wasCancelled(ctx: ServerContext): boolean {
		return this.#cancelled.has(ctx.mcpReq.signal);
	}

	/**
	 * A result for the SDK that reaches the client as `answer`. It says `isError`, so that the SDK does not
	 * hold it against the tool's output schema.
	 */
	answer(ctx: ServerContext, answer: WireAnswer): CallToolResult {
		// A request that was cancelled is not pending any more, and the SDK sends nothing for it.
		const pending = this.#pending.get(ctx.mcpReq.id);
		if (pending) pending.answer = answer;
		return { content: [], isError: true, _meta: { [ANSWER_META]: this.#secret } };
	}

	#legacyClient(pending: Pending | undefined): LegacyClient | undefined {
		return this.#isLegacy ? legacyClient(this.#server, pending?.versionHeader) : undefined;
	}

	#refusal(message: JSONRPCMessage): JSONRPCMessage | undefined {
		if (!isJSONRPCRequest(message)) return undefined;
		const pending = this.#pending.get(message.id);
		const client = this.#legacyClient(pending);
		const error = client && pending?.call && refuseLegacyCall(this.#server, client, pending.call);
		return error && { jsonrpc: '2.0', id: message.id, error };
	}

	#inbound(message: JSONRPCMessage, extra: MessageExtraInfo | undefined): JSONRPCMessage {
		this.#forgetCancelled(message);
		if (!isJSONRPCRequest(message)) return message;
		const versionHeader = extra?.request?.headers.get('mcp-protocol-version') ?? undefined;
		const pending = { method: message.method, versionHeader };
		const params: unknown = message.params;
		if (this.#isLegacy) this.#pending.set(message.id, pending);
		if (this.#isLegacy && message.method === 'initialize') return mendedHello(message) as JSONRPCMessage;
		if (!isJsonObject(params)) return message;
		if (message.method === 'tasks/update')
			this.#pending.set(message.id, { ...pending, responses: params['inputResponses'] });
		if (message.method !== 'tools/call') return message;
		const { requestState, ...rest } = params;
		const ours = typeof requestState === 'string' && requestState.startsWith(STATE_PREFIX);
		const call: RawCall = {
			name: typeof params['name'] === 'string' ? params['name'] : '',
			arguments: objectOf(params['arguments']),
			meta: objectOf(params['_meta']),
			inputResponses: objectOf(params['inputResponses']),
			heldTaskId: ours ? requestState.slice(STATE_PREFIX.length) : undefined,
			requestState: typeof requestState === 'string' && !ours ? requestState : undefined,
			asksForTask: isJsonObject(params['task']),
		};
		this.#pending.set(message.id, { ...pending, call });
		// A server with its own request state would refuse ours.
		return ours ? { ...message, params: rest } : message;
	}

	#forgetCancelled(message: JSONRPCMessage): void {
		if (!('method' in message) || message.method !== 'notifications/cancelled') return;
		const requestId: unknown = message.params?.['requestId'];
		if (typeof requestId !== 'string' && typeof requestId !== 'number') return;
		const signal = this.#pending.get(requestId)?.signal;
		if (signal) this.#cancelled.add(signal);
		this.#pending.delete(requestId);
	}

	#outbound(message: JSONRPCMessage): JSONRPCMessage {
		if (!('id' in message) || message.id === undefined || 'method' in message) return message;
		const pending = this.#pending.get(message.id);
		const client = this.#legacyClient(pending);
		const result: unknown = 'result' in message ? message.result : undefined;
		const meta = isJsonObject(result) ? objectOf(result['_meta']) : {};
		const { [ANSWER_META]: secret, ...otherMeta } = meta;
		const answer = pending?.answer;
		this.#pending.delete(message.id);
		if (pending && client && isJsonObject(result) && !answer)
			return { jsonrpc: '2.0', id: message.id, result: inLegacyForm(this.#server, client, pending, result) };
		if (!answer || secret !== this.#secret) return message;
		if (answer.kind === 'error') return { jsonrpc: '2.0', id: message.id, error: answer.error };
		const mergedMeta = { ...otherMeta, ...objectOf(answer.result['_meta']) };
		return {
			jsonrpc: '2.0',
			id: message.id,
			result: { ...answer.result, ...(Object.keys(mergedMeta).length > 0 && { _meta: mergedMeta }) },
		};
	}
}

/** The request state that brings a client's answers back to a held task. */
export function heldState(taskId: string): string {
	return STATE_PREFIX + taskId;
}

function objectOf(value: unknown): JsonObject {
	return isJsonObject(value) ? value : {};
}
