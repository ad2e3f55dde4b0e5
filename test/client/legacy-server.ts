/**
 * A server of 2025-11-25 that holdfast did not write: the official SDK 1.x with its experimental tasks, over HTTP with
 * sessions or, when run as a program, over stdio.
 */
import { randomUUID } from 'node:crypto';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import {
	InMemoryTaskMessageQueue,
	InMemoryTaskStore,
	type TaskStore,
} from '@modelcontextprotocol/sdk/experimental/tasks';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
	CreateMessageResultSchema,
	ElicitResultSchema,
	isInitializeRequest,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

/** What happened in the server. */
export interface LegacyEvents {
	/** Work that was begun, by tool. */
	readonly starts: string[];
	/** Answers that questions got. */
	readonly answers: string[];
}

/** What a test decides about the server. */
export interface LegacyServerOptions {
	/** `capabilities.tasks`; default the full form. */
	readonly tasksCapability?: Record<string, unknown> | null;
	readonly store?: TaskStore;
	readonly events?: LegacyEvents;
}

const FULL = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const POLL_MS = 50;
const words = (text: string) => ({ content: [{ type: 'text' as const, text }] });

/** A server of the SDK 1.x with a tool for each way that a task can go. */
export function legacyServer(options: LegacyServerOptions = {}): McpServer {
	const { tasksCapability = FULL, events = { starts: [], answers: [] } } = options;
	const server = new McpServer(
		{ name: 'legacy', version: '1.0.0' },
		{
			capabilities: { tools: { listChanged: true }, ...(tasksCapability && { tasks: tasksCapability }) },
			taskStore: options.store ?? new InMemoryTaskStore(),
			taskMessageQueue: new InMemoryTaskMessageQueue(),
		},
	);
	type Work = Parameters<typeof server.experimental.tasks.registerToolTask>[2];
	type Extra = Parameters<Extract<Work, { createTask: unknown }>['createTask']>[1];
	type Store = NonNullable<Extra['taskStore']>;
	/** Sends a request through the task's queue; the SDK's type of the options forgets this member. */
	const related = (taskId: string): Parameters<Extra['sendRequest']>[2] =>
		Object.assign<object, object>({}, { relatedTask: { taskId } });
	type End = { status: 'completed' | 'failed'; result: Record<string, unknown> } | undefined;

	const taskTool = (
		name: string,
		taskSupport: 'optional' | 'required',
		work: (taskId: string, store: Store, extra: Extra, args: { readonly index?: number }) => Promise<End>,
	) =>
		server.experimental.tasks.registerToolTask(
			name,
			{ inputSchema: { index: z.number().optional() }, execution: { taskSupport } },
			{
				createTask: async (args: { readonly index?: number }, extra: Extra) => {
					events.starts.push(name);
					const store = extra.taskStore;
					const ttl = extra.taskRequestedTtl ?? null;
					const task = await store.createTask({ ttl, pollInterval: POLL_MS });
					void work(task.taskId, store, extra, args)
						.then((end) => end && store.storeTaskResult(task.taskId, end.status, end.result))
						.catch(() => {});
					return { task };
				},
				getTask: (_args: unknown, extra: { taskId: string; taskStore: Store }) =>
					extra.taskStore.getTask(extra.taskId),
				getTaskResult: (_args: unknown, extra: { taskId: string; taskStore: Store }) =>
					extra.taskStore.getTaskResult(extra.taskId),
			} as unknown as Work,
		);

	taskTool('delay', 'optional', async () => {
		await pause(120);
		return { status: 'completed', result: words('waited') };
	});
	taskTool('must', 'required', async (taskId, store) => {
		await store.updateTaskStatus(taskId, 'working', 'halfway');
		await pause(250);
		return { status: 'completed', result: words('as a task') };
	});
	taskTool('work', 'required', async (taskId, _store, _extra, { index }) => {
		await pause(1_500);
		return { status: 'completed', result: words(`${index} ${taskId}`) };
	});
	taskTool('forever', 'required', async () => undefined);
	taskTool('broken', 'required', async () => ({
		status: 'failed',
		result: { ...words('It broke'), isError: true },
	}));
	taskTool('dropped', 'required', async (taskId, store) => {
		await store.updateTaskStatus(taskId, 'failed', 'The disk is full');
		return undefined;
	});
	taskTool('confirm', 'required', async (taskId, store, extra) => {
		await store.updateTaskStatus(taskId, 'input_required');
		const answer = await extra.sendRequest(
			{
				method: 'elicitation/create',
				params: {
					message: 'Delete it?',
					requestedSchema: {
						type: 'object',
						properties: { sure: { type: 'boolean' }, why: { type: 'string', default: 'no reason' } },
					},
				},
			},
			ElicitResultSchema,
			related(taskId),
		);
		const said = `${answer.action} ${JSON.stringify(answer.content ?? null)}`;
		events.answers.push(said);
		await store.updateTaskStatus(taskId, 'working');
		await pause(50);
		return { status: 'completed', result: words(said) };
	});
	taskTool('haiku', 'required', async (taskId, store, extra) => {
		await store.updateTaskStatus(taskId, 'input_required');
		const { content } = await extra.sendRequest(
			{
				method: 'sampling/createMessage',
				params: {
					messages: [{ role: 'user', content: { type: 'text', text: 'A haiku' } }],
					maxTokens: 50,
				},
			},
			CreateMessageResultSchema,
			related(taskId),
		);
		const said = content.type === 'text' ? content.text : content.type;
		events.answers.push(said);
		await store.updateTaskStatus(taskId, 'working');
		return { status: 'completed', result: words(said) };
	});
	server.registerTool(
		'plain',
		{ inputSchema: { label: z.string().optional() } },
		async ({ label }, extra) => {
			events.starts.push('plain');
			const progressToken = extra._meta?.progressToken;
			if (progressToken !== undefined)
				await extra.sendNotification({
					method: 'notifications/progress',
					params: { progressToken, progress: 1, total: 2, message: 'half' },
				});
			if (label === 'hold') return new Promise(() => {});
			await pause(20);
			return words('plain');
		},
	);
	return server;
}

/** A store that shows every session the tasks of all, as a server has it that keeps its tasks in a database. */
export class SharedTaskStore extends InMemoryTaskStore {
	override createTask(...[params, requestId, request]: Parameters<InMemoryTaskStore['createTask']>) {
		return super.createTask(params, requestId, request);
	}
}

/** An HTTP server with sessions that can forget them, as a restart does. */
export class LegacyHttp {
	/** What came in: HTTP method, JSON-RPC method, and the session that it named. */
	readonly requests: { http: string; method: string; session: string | undefined; id: unknown }[] = [];
	readonly #sessions = new Map<string, { transport: StreamableHTTPServerTransport; server: McpServer }>();
	readonly #http = createHttpServer((request, response) => void this.#handle(request, response));
	/** Whether new sessions are lost as soon as they are made. */
	forgetful = false;
	readonly #make: () => McpServer;

	private constructor(make: () => McpServer) {
		this.#make = make;
	}

	static async open(make: () => McpServer, port = 0): Promise<LegacyHttp> {
		const legacy = new LegacyHttp(make);
		await new Promise<void>((resolve) => legacy.#http.listen(port, '127.0.0.1', resolve));
		return legacy;
	}

	get port(): number {
		return (this.#http.address() as AddressInfo).port;
	}

	get url(): URL {
		return new URL(`http://127.0.0.1:${this.port}/mcp`);
	}

	/** How often a JSON-RPC method came in. */
	count(method: string): number {
		return this.requests.filter((request) => request.method === method).length;
	}

	/** Loses every session and cuts what is under way, as a process does that is killed and started again. */
	async restart(): Promise<void> {
		this.#sessions.clear();
		this.#http.closeAllConnections();
		// By the time that this has gone to and fro, the pool of connections knows which of them are dead.
		for (let known = false; !known; )
			known = await fetch(this.url).then(
				(response) => response.text().then(() => true),
				() => false,
			);
	}

	/** Says to every client that the tools have changed. */
	sendToolListChanged(): void {
		for (const { server } of this.#sessions.values()) server.sendToolListChanged();
	}

	/** Cuts every connection, and keeps the sessions. */
	cut(): void {
		this.#http.closeAllConnections();
	}

	async close(): Promise<void> {
		this.#http.closeAllConnections();
		for (const { server } of this.#sessions.values()) await server.close();
		await new Promise<void>((resolve) => this.#http.close(() => resolve()));
	}

	async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		const text = Buffer.concat(chunks).toString('utf8');
		const body: unknown = text === '' ? undefined : JSON.parse(text);
		const { method = '', id } = (body ?? {}) as { method?: string; id?: unknown };
		const header = request.headers['mcp-session-id'];
		const session = typeof header === 'string' ? header : undefined;
		this.requests.push({ http: request.method ?? '', method, session, id });
		if (session === undefined && isInitializeRequest(body)) {
			const transport = new StreamableHTTPServerTransport({
				sessionIdGenerator: () => randomUUID(),
				onsessioninitialized: (created) => {
					if (!this.forgetful) this.#sessions.set(created, { transport, server });
				},
			});
			const server = this.#make();
			await server.connect(transport);
			return transport.handleRequest(request, response, body);
		}
		const known = session === undefined ? undefined : this.#sessions.get(session);
		if (known) return known.transport.handleRequest(request, response, body);
		const error = { code: session === undefined ? -32000 : -32001, message: 'Session not found' };
		response.writeHead(session === undefined ? 400 : 404, { 'content-type': 'application/json' });
		response.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
	}
}

if (process.argv[1] === import.meta.filename) await legacyServer().connect(new StdioServerTransport());
