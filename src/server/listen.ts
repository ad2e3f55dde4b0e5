import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HoldfastError, messageOf } from '../errors.ts';
import { isDeeperThan, MAX_JSON_DEPTH } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import { announcesJson, announcesTaskMethod, answerDirectly, asDirectRequest } from './direct.ts';
import { createFetch, type FetchOptions, MAX_BODY_BYTES, type TaskFetch } from './fetch.ts';
import { BAD_REQUEST } from './refusal.ts';
import {
	type AuthInfo,
	bearerAuthChallengeResponse,
	type BearerAuthOptions,
	localhostAllowedHostnames,
	localhostAllowedOrigins,
	type NodeRequest,
	loadNodeHandler,
	validateHostHeader,
	validateOriginHeader,
	verifyBearerToken,
} from './sdk.ts';
import type { TaskServer } from './task-server.ts';

/** Options of {@link listen}. */
export interface ListenOptions extends FetchOptions {
	/** Default 3000; 0 takes a free one. */
	readonly port?: number;
	/** Address to bind. Default 127.0.0.1; another one needs `auth`. */
	readonly host?: string;
	/** Path of the endpoint. Default `/mcp`. */
	readonly path?: string;
	/** Verifies bearer tokens. Without it everybody who can connect is one principal. */
	readonly auth?: BearerAuthOptions;
	/** Host names that requests may name. Default: those of the local machine, when bound to it. */
	readonly allowedHosts?: readonly string[];
	/** Host names of web origins that may call. Default: as `allowedHosts`. */
	readonly allowedOrigins?: readonly string[];
	/** Binds to an address that others can reach though nobody is authenticated. Default false. */
	readonly allowUnauthenticated?: boolean;
}

/** A server that listens. */
export interface Listening {
	readonly url: string;
	readonly port: number;
	/** Stops listening, ends streams and connections, and stops the task server. */
	close(drainMs?: number): Promise<void>;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/**
 * Starts a task server and serves it over Streamable HTTP.
 *
 * @throws INVALID_OPTION; what the backend's `open()` throws; the system's error when the port is taken.
 */
export async function listen(server: TaskServer, options: ListenOptions = {}): Promise<Listening> {
	const host = options.host ?? '127.0.0.1';
	if (!LOOPBACK.has(host) && !options.auth && options.allowUnauthenticated !== true)
		throw new HoldfastError(
			'INVALID_OPTION',
			`host ${host} can be reached by others: give auth, or allowUnauthenticated: true when something in front authenticates`,
		);
	await server.start();
	const endpoint = createFetch(server, options);
	const http = createServer(await endpointListener(server, endpoint, { ...options, host }));
	// The engine has its own clocks; a socket timer would cut held calls.
	http.requestTimeout = 0;
	http.timeout = 0;
	try {
		await new Promise<void>((resolve, reject) => {
			http.once('error', reject);
			http.listen(options.port ?? 3000, host, resolve);
		});
	} catch (error) {
		await server.stop(0);
		throw error;
	}
	const { port } = http.address() as AddressInfo;
	return {
		port,
		url: `http://${host.includes(':') ? `[${host}]` : host}:${port}${options.path ?? '/mcp'}`,
		close: async (drainMs) => {
			const closed = stopListening(http);
			await server.stop(drainMs);
			await endpoint.close();
			http.closeIdleConnections();
			setTimeout(() => http.closeAllConnections(), 1_000).unref();
			await closed;
		},
	};
}

function stopListening(http: Server): Promise<void> {
	return new Promise((resolve) => http.close(() => resolve()));
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** The `node:http` listener of one endpoint: checks, the direct path, and the SDK for everything else. */
async function endpointListener(
	server: TaskServer,
	endpoint: TaskFetch,
	options: ListenOptions,
): Promise<Handler> {
	const { runtime, log } = server;
	const path = options.path ?? '/mcp';
	const maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES;
	const onLoopback = LOOPBACK.has(options.host ?? '127.0.0.1');
	const hosts = options.allowedHosts ?? (onLoopback ? localhostAllowedHostnames() : undefined);
	const origins = options.allowedOrigins ?? (onLoopback ? localhostAllowedOrigins() : hosts);
	const toNodeHandler = await loadNodeHandler();
	const throughSdk = toNodeHandler(endpoint, {
		maxRequestBodySize: maxBodyBytes,
		onerror: (error) => log.warn({ error: error.message }, 'a request failed'),
	});

	const check = callerCheck(hosts, origins);

	async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const url = request.url ?? '/';
		if (url !== path && url.split('?')[0] !== path)
			return refuse(response, 404, `Nothing is here; the endpoint is ${path}`);
		const header = (name: string): string | undefined => {
			const value = request.headers[name];
			return typeof value === 'string' ? value : undefined;
		};
		const refusal = check(header('host'), header('origin'));
		if (refusal !== undefined) return refuse(response, 403, refusal);
		let authInfo: AuthInfo | undefined;
		if (options.auth) {
			try {
				authInfo = await verifyBearerToken(header('authorization') ?? null, options.auth);
			} catch (error) {
				return writeResponse(response, bearerAuthChallengeResponse(error, options.auth));
			}
		}
		const extras = Object.assign(request, authInfo && { auth: authInfo }) as IncomingMessage & NodeRequest;
		// Read here and once: the SDK and the sessions would each read a copy of the stream.
		if (request.method !== 'POST' || !announcesJson(header)) return throughSdk(extras, response);
		const text = await readBody(request, maxBodyBytes);
		if (text === undefined) return refuse(response, 413, `The body is larger than ${maxBodyBytes} bytes`);
		let body: unknown;
		try {
			body = JSON.parse(text);
		} catch {
			return writeJson(response, 400, PARSE_ERROR);
		}
		// Nothing of a direct request but its answers is read further, and those are checked by themselves.
		const direct = announcesTaskMethod(header) ? asDirectRequest(header, body) : undefined;
		if (!direct && isDeeperThan(body, MAX_JSON_DEPTH)) return writeJson(response, 400, TOO_DEEP);
		if (!direct) return throughSdk(extras, response, body);
		writeJson(
			response,
			200,
			JSON.stringify(await answerDirectly(runtime, direct, () => runtime.principal({ authInfo }))),
		);
	}

	return (request, response) => {
		handle(request, response).catch((error: unknown) => {
			log.error({ error: messageOf(error) }, 'a request failed');
			if (response.headersSent) response.destroy();
			else writeJson(response, 500, INTERNAL_ERROR);
		});
	};
}

const PARSE_ERROR = errorText(WIRE_CODES.parseError, 'Parse error: the request body is not valid JSON');
const TOO_DEEP = errorText(
	WIRE_CODES.invalidRequest,
	`The body is nested more than ${MAX_JSON_DEPTH} levels deep`,
);
const INTERNAL_ERROR = errorText(WIRE_CODES.internalError, 'Internal error');

/** An error for a request whose id cannot be told. */
function errorText(code: number, message: string): string {
	return JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null });
}

/** Looks at `Host` and `Origin`; answers what is wrong with them. */
type CallerCheck = (host: string | undefined, origin: string | undefined) => string | undefined;

/** How many pairs of headers are remembered as right: a client sends the same ones with every request. */
const REMEMBERED_CALLERS = 64;

function callerCheck(
	hosts: readonly string[] | undefined,
	origins: readonly string[] | undefined,
): CallerCheck {
	const right = new Set<string>();
	return (host, origin) => {
		const caller = `${host} ${origin}`;
		if (right.has(caller)) return undefined;
		const checks = [
			...(hosts ? [validateHostHeader(host, [...hosts])] : []),
			...(origins ? [validateOriginHeader(origin, [...origins])] : []),
		];
		for (const check of checks) if (!check.ok) return check.message;
		if (right.size < REMEMBERED_CALLERS) right.add(caller);
		return undefined;
	};
}

/** The body as text; undefined where it is too large. The rest of a too large one is not read. */
function readBody(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
	return new Promise((resolve, reject) => {
		const chunks: Buffer[] = [];
		let size = 0;
		request.on('data', (chunk: Buffer) => {
			size += chunk.length;
			if (size > maxBytes) {
				request.pause();
				resolve(undefined);
			} else chunks.push(chunk);
		});
		request.on('end', () =>
			resolve(chunks.length === 1 ? String(chunks[0]) : Buffer.concat(chunks).toString('utf8')),
		);
		request.on('error', reject);
	});
}

function refuse(response: ServerResponse, status: number, message: string): void {
	response.setHeader('connection', 'close');
	writeJson(response, status, errorText(BAD_REQUEST, message));
}

function writeJson(response: ServerResponse, status: number, json: string): void {
	response.writeHead(status, {
		'content-type': 'application/json',
		'content-length': Buffer.byteLength(json),
	});
	response.end(json);
}

async function writeResponse(response: ServerResponse, answer: Response): Promise<void> {
	response.writeHead(answer.status, Object.fromEntries(answer.headers));
	response.end(await answer.text());
}
