import { randomUUID } from 'node:crypto';
import type { TaskDetails } from '../backend/record.ts';
import type { Engine } from '../engine/engine.ts';
import type { HandlerEnd } from '../engine/outcome.ts';
import type { Run } from '../engine/run.ts';
import type { TaskContext } from '../engine/task-context.ts';
import { HoldfastError } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import {
	CLIENT_CAPABILITIES_META,
	CLIENT_INFO_META,
	PROTOCOL_VERSION_META,
	TASKS_EXTENSION,
	TASKS_PROTOCOL_VERSION,
} from '../protocol/names.ts';
import { answerCall } from './answer-call.ts';
import type { CallSite } from './call-site.ts';
import { Exchange } from './exchange.ts';
import { registerLegacyMethods } from './legacy-methods.ts';
import { localPrincipal, type PrincipalOf } from './principal.ts';
import { QuestionDesk } from './question-desk.ts';
import {
	type AuthInfo,
	type CallToolResult,
	createMcpHandler,
	McpServer,
	type McpRequestContext,
} from './sdk.ts';
import { registerTaskMethods } from './task-methods.ts';
import { Tasks } from './tasks.ts';

/**
 * Builds one SDK server with its tools. It is called for every request, for every session of an earlier protocol
 * version and for every run of a handler, as the SDK does, so keep it cheap and open connections outside of it. Tools that run as tasks must be
 * registered whoever asks: a run after a restart has no request.
 */
export type TaskServerFactory = (tasks: Tasks, context: McpRequestContext) => McpServer | Promise<McpServer>;

/**
 * Runs the handler of a tool; undefined where there is no such tool. For a server that validates neither arguments
 * nor output, because somebody behind it does.
 */
export type DirectEntrance = (
	tool: string,
	args: JsonObject,
	task: TaskContext,
) => Promise<CallToolResult | undefined>;

/** A handler that is being entered through the SDK. */
interface Entry {
	readonly run: Run;
	entered: boolean;
	thrown: { readonly error: unknown } | undefined;
}

/** `_meta` key of the requests with which holdfast enters a handler; the value is used once. */
const ENTRY_META = 'holdfast/entry';

const SELF = { name: 'holdfast', version: '1' };

/** Connects SDK servers to an engine, in both directions. */
export class TaskRuntime {
	readonly engine: () => Engine;
	/** Resolves when the engine can be asked; discovery does not wait for it. */
	readonly ready: () => Promise<void>;
	/** Where clients of earlier protocol versions are asked what tasks ask. */
	readonly questions = new QuestionDesk();
	readonly #principalOf: PrincipalOf;
	readonly #build: TaskServerFactory;
	readonly #enter: DirectEntrance | undefined;
	readonly #entries = new Map<string, Entry>();
	readonly #exchanges = new WeakMap<McpServer, Exchange>();
	readonly #inner: {
		fetch(request: Request, options?: { parsedBody?: unknown }): Promise<Response>;
		close(): Promise<void>;
	};
	#repeatable: Promise<ReadonlySet<string>> | undefined;

	constructor(options: {
		readonly build: TaskServerFactory;
		readonly enter: DirectEntrance | undefined;
		readonly engine: () => Engine;
		readonly principalOf: PrincipalOf;
		readonly ready: () => Promise<void>;
		readonly onError: (error: Error) => void;
	}) {
		this.engine = options.engine;
		this.ready = options.ready;
		this.#principalOf = options.principalOf;
		this.#build = options.build;
		this.#enter = options.enter;
		this.#inner = createMcpHandler((context) => this.build(context, true), {
			legacy: 'reject',
			onerror: options.onError,
		});
	}

	/** A server for the SDK, with Tasks on it. One that is only to enter a handler needs no methods for clients. */
	async build(context: McpRequestContext, isEntry = false): Promise<McpServer> {
		let exchange: Exchange | undefined;
		const tasks = new Tasks(this, () => {
			if (!exchange)
				throw new HoldfastError('NOT_STARTED', 'The server that holds this tool is not connected');
			return exchange;
		});
		const server = await this.#build(tasks, context);
		if (!(server instanceof McpServer))
			throw new HoldfastError('INVALID_OPTION', 'The server function must return an McpServer');
		exchange = new Exchange(server, context.era);
		this.#exchanges.set(server, exchange);
		if (context.era === 'modern' && !isEntry) {
			server.server.registerCapabilities({ extensions: { [TASKS_EXTENSION]: {} } });
			registerTaskMethods(server, exchange, this);
		} else if (!isEntry) registerLegacyMethods(server, exchange, this);
		return server;
	}

	/** Takes the client of a server that was built here for gone. */
	giveUp(server: McpServer): void {
		this.#exchanges.get(server)?.giveUp();
	}

	/** Who a request belongs to: over HTTP the token says it, over stdio it is the local user. */
	principal(http: { readonly authInfo?: AuthInfo | undefined } | undefined): string {
		return http === undefined ? localPrincipal() : this.#principalOf(http.authInfo);
	}

	/** Answers a tool callback: a client's call, or an entry by this runtime itself. */
	async answer<Args>(site: CallSite<Args>): Promise<CallToolResult> {
		const raw = site.exchange.callOf(site.ctx);
		if (!raw)
			throw new HoldfastError('NOT_STARTED', 'A task tool was called outside of a tools/call request');
		await this.ready();
		const entryId = raw.meta[ENTRY_META];
		const entry = typeof entryId === 'string' ? this.#entries.get(entryId) : undefined;
		if (!entry) return answerCall(this, site, raw);
		entry.entered = true;
		try {
			return await site.handler(site.args, entry.run);
		} catch (error) {
			entry.thrown = { error };
			return { content: [], isError: true };
		}
	}

	/** Whether a tool says of itself that a second run does no harm. */
	async isRepeatable(tool: string): Promise<boolean> {
		this.#repeatable ??= this.#readHints().catch((error: unknown) => {
			this.#repeatable = undefined;
			throw error;
		});
		return (await this.#repeatable).has(tool);
	}

	/** Enters a tool's handler through the SDK, which validates arguments and output as for any call. */
	readonly execute = async (details: TaskDetails, run: Run): Promise<HandlerEnd> => {
		if (this.#enter) return enterDirectly(this.#enter, details, run);
		const entryId = randomUUID();
		const entry: Entry = { run, entered: false, thrown: undefined };
		this.#entries.set(entryId, entry);
		const left = new AbortController();
		void run.exit.then(() => left.abort());
		try {
			const params = { name: details.record.tool, arguments: details.arguments };
			const answer = await this.#request('tools/call', params, { [ENTRY_META]: entryId }, left.signal);
			if (entry.thrown) return { kind: 'threw', error: entry.thrown.error };
			if (isJsonObject(answer['result'])) return { kind: 'returned', result: withoutSelf(answer['result']) };
			if (!entry.entered) return { kind: 'unknown_tool' };
			const error = answer['error'];
			const message =
				isJsonObject(error) && typeof error['message'] === 'string' ? error['message'] : 'no result';
			return { kind: 'threw', error: new Error(message) };
		} finally {
			this.#entries.delete(entryId);
		}
	};

	close(): Promise<void> {
		return this.#inner.close();
	}

	async #readHints(): Promise<ReadonlySet<string>> {
		const answer = await this.#request('tools/list', {}, {});
		const tools = isJsonObject(answer['result']) ? answer['result']['tools'] : undefined;
		const repeatable = new Set<string>();
		for (const tool of Array.isArray(tools) ? (tools as readonly JsonObject[]) : []) {
			const hints = tool['annotations'];
			if (isJsonObject(hints) && (hints['idempotentHint'] === true || hints['readOnlyHint'] === true))
				repeatable.add(tool['name'] as string);
		}
		return repeatable;
	}

	async #request(
		method: string,
		params: JsonObject,
		meta: JsonObject,
		signal?: AbortSignal,
	): Promise<JsonObject> {
		const body = {
			jsonrpc: '2.0',
			id: 1,
			method,
			params: {
				...params,
				_meta: {
					[PROTOCOL_VERSION_META]: TASKS_PROTOCOL_VERSION,
					[CLIENT_INFO_META]: SELF,
					[CLIENT_CAPABILITIES_META]: {},
					...meta,
				},
			},
		};
		const headers = new Headers({
			'content-type': 'application/json',
			accept: 'application/json, text/event-stream',
			'mcp-protocol-version': TASKS_PROTOCOL_VERSION,
			'mcp-method': method,
			...(typeof params['name'] === 'string' && { 'mcp-name': headerValue(params['name']) }),
		});
		const request = new Request('http://holdfast.invalid/', {
			method: 'POST',
			headers,
			...(signal && { signal }),
		});
		const response = await this.#inner.fetch(request, { parsedBody: body });
		const text = await response.text();
		const answer: unknown = text === '' ? {} : JSON.parse(text);
		return isJsonObject(answer) ? answer : {};
	}
}

async function enterDirectly(
	enter: DirectEntrance,
	{ record, arguments: args }: TaskDetails,
	run: Run,
): Promise<HandlerEnd> {
	try {
		const result = await enter(record.tool, args, run);
		return result ? { kind: 'returned', result } : { kind: 'unknown_tool' };
	} catch (error) {
		return { kind: 'threw', error };
	}
}

/** A name in a header: as it is, or in the base64 form that the SDK decodes. */
function headerValue(name: string): string {
	return /^[\x21-\x7e]+$/.test(name) && !name.startsWith('=?')
		? name
		: `=?base64?${Buffer.from(name, 'utf8').toString('base64')}?=`;
}

/** The result without what the SDK says about the inner exchange; the outer one says it again. */
function withoutSelf(result: JsonObject): JsonObject {
	const { _meta: meta, ...rest } = result;
	if (!isJsonObject(meta)) return result;
	const others = Object.entries(meta).filter(([key]) => key !== 'io.modelcontextprotocol/serverInfo');
	return { ...rest, ...(others.length > 0 && { _meta: Object.fromEntries(others) }) };
}
