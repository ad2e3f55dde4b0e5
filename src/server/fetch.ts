import { TASKS_PROTOCOL_VERSION } from '../protocol/names.ts';
import { asTaskListen, HttpListen } from './listen-http.ts';
import { heldResponse } from './held-response.ts';
import {
	type AuthInfo,
	createMcpHandler,
	isLegacyRequest,
	readRequestBody,
	type ServerEventBus,
} from './sdk.ts';
import { type SessionOptions, sessionOptions, Sessions } from './sessions.ts';
import type { TaskServer } from './task-server.ts';

/** Options of {@link createFetch}. */
export interface FetchOptions {
	/** Largest request body, in bytes. Default 4 MiB. */
	readonly maxBodyBytes?: number;
	/** Most `subscriptions/listen` streams that name tasks. Default 1,000. */
	readonly maxListenStreams?: number;
	/** The SDK's event bus, for servers that publish list changes. */
	readonly bus?: ServerEventBus;
	/**
	 * Bounds of the sessions of clients that speak a protocol version before 2026-07-28. A session lives in one
	 * process, so replicas need a balancer that sends `Mcp-Session-Id` to the same one. False serves these clients
	 * without sessions: then any replica can answer, but none can ask them anything.
	 *
	 * @throws INVALID_OPTION
	 */
	readonly sessions?: Partial<SessionOptions> | false;
}

/** What a request came with beside itself. */
export interface FetchExtras {
	/** The verified token; undefined without authentication. */
	readonly authInfo?: AuthInfo;
	/** The body, where it was parsed before. */
	readonly parsedBody?: unknown;
}

/** A web-standard handler of one MCP endpoint. */
export interface TaskFetch {
	fetch(request: Request, extras?: FetchExtras): Promise<Response>;
	/** Ends listen streams with their completion result, then sessions and everything that is in flight. */
	close(): Promise<void>;
}

/** Largest request body by default, in bytes. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * The MCP endpoint of a task server as a web-standard `fetch` handler, for Hono and other frameworks. It does
 * not look at `Host`, `Origin` or tokens: whatever is in front does; `listen()` brings all of that.
 */
export function createFetch(server: TaskServer, options: FetchOptions = {}): TaskFetch {
	const { runtime } = server;
	const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES;
	const handler = createMcpHandler((context) => runtime.build(context), {
		maxRequestBodySize: maxBodyBytes,
		onerror: (error) => server.log.warn({ error: error.message }, 'the SDK refused a request'),
		...(options.bus && { bus: options.bus }),
	});
	const listen = new HttpListen(runtime, options.maxListenStreams ?? 1_000);
	const sessions =
		options.sessions === false ? undefined : new Sessions(server, sessionOptions(options.sessions));

	/** The answer of a session; undefined where the request belongs to none. */
	async function inSession(request: Request, extras: FetchExtras): Promise<Response | undefined> {
		if (!sessions || request.headers.get('mcp-protocol-version') === TASKS_PROTOCOL_VERSION) return undefined;
		const parsedBody: unknown =
			extras.parsedBody ?? (request.method === 'POST' ? await readJson(request, maxBodyBytes) : undefined);
		// What cannot be read is for the SDK to refuse.
		if (request.method === 'POST' && parsedBody === undefined) return undefined;
		if (!(await isLegacyRequest(request, parsedBody))) return undefined;
		return sessions.answer(request, { ...extras, parsedBody });
	}

	async function fetch(request: Request, extras: FetchExtras = {}): Promise<Response> {
		const answer = await inSession(request, extras);
		if (answer) return answer;
		const method = request.headers.get('mcp-method');
		if (request.method !== 'POST') return handler.fetch(request, extras);
		if (method === 'subscriptions/listen') {
			const parsedBody: unknown = extras.parsedBody ?? (await readJson(request, maxBodyBytes));
			const wanted = asTaskListen(parsedBody);
			const inner = await handler.fetch(request, { ...extras, ...(wanted && { parsedBody }) });
			return wanted ? listen.answer(wanted, inner, runtime.principal(extras), request.signal) : inner;
		}
		if (!acceptsEvents(request) || (method !== null && method !== 'tools/call'))
			return handler.fetch(request, extras);
		const gone = new AbortController();
		const signal = AbortSignal.any([request.signal, gone.signal]);
		return heldResponse(handler.fetch(new Request(request, { signal }), extras), () => gone.abort());
	}

	return {
		fetch,
		close: async () => {
			listen.close();
			await sessions?.close();
			await handler.close();
		},
	};
}

function acceptsEvents(request: Request): boolean {
	return (request.headers.get('accept') ?? '').includes('text/event-stream');
}

/** The body, left readable for the SDK, which answers for one that is no JSON or too large. */
async function readJson(request: Request, maxBytes: number): Promise<unknown> {
	const body = await readRequestBody(request.clone(), maxBytes);
	if (body.tooLarge) return undefined;
	try {
		return JSON.parse(body.text);
	} catch {
		return undefined;
	}
}
