import { isJsonObject } from '../protocol/json.ts';
import { asTaskListen, HttpListen } from './listen-http.ts';
import { heldResponse } from './held-response.ts';
import { type AuthInfo, createMcpHandler, type ServerEventBus } from './sdk.ts';
import type { TaskServer } from './task-server.ts';

/** Options of {@link createFetch}. */
export interface FetchOptions {
	/** Largest request body, in bytes. Default 4 MiB. */
	readonly maxBodyBytes?: number;
	/** Most `subscriptions/listen` streams that name tasks. Default 1,000. */
	readonly maxListenStreams?: number;
	/** The SDK's event bus, for servers that publish list changes. */
	readonly bus?: ServerEventBus;
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
	/** Ends listen streams with their completion result, then everything that is in flight. */
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
	const handler = createMcpHandler((context) => runtime.build(context), {
		maxRequestBodySize: options.maxBodyBytes ?? MAX_BODY_BYTES,
		onerror: (error) => server.log.warn({ error: error.message }, 'the SDK refused a request'),
		...(options.bus && { bus: options.bus }),
	});
	const listen = new HttpListen(runtime, options.maxListenStreams ?? 1_000);

	async function fetch(request: Request, extras: FetchExtras = {}): Promise<Response> {
		const method = request.headers.get('mcp-method');
		if (request.method !== 'POST') return handler.fetch(request, extras);
		if (method === 'subscriptions/listen') {
			const parsedBody: unknown = extras.parsedBody ?? (await readJson(request));
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
			await handler.close();
		},
	};
}

function acceptsEvents(request: Request): boolean {
	return (request.headers.get('accept') ?? '').includes('text/event-stream');
}

/** The body, left readable for the SDK, which answers for one that is no JSON. */
async function readJson(request: Request): Promise<unknown> {
	const body: unknown = await request
		.clone()
		.json()
		.catch(() => undefined);
	return isJsonObject(body) ? body : undefined;
}
