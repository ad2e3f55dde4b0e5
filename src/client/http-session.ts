import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import type { FetchLike } from './sdk.ts';

type FetchInit = NonNullable<Parameters<FetchLike>[1]>;

const SESSION_HEADER = 'mcp-session-id';

/** How many sessions are remembered; a host that connects again and again leaves old ones behind. */
const MAX_SESSIONS = 100;

/** One session, under the id that the SDK's transport was given and goes on sending. */
interface Session {
	/** The `initialize` that began it. */
	readonly handshake: JsonObject;
	/** The id that the server knows it by now. */
	liveId: string;
	/** The new beginning that is under way, for all requests that wait for it. */
	renewing: Promise<boolean> | undefined;
}

/**
 * A `fetch` that outlives the sessions of servers before 2026-07-28: such a server answers 404 when it has lost a
 * session, in a restart for example, and the client has to initialise anew, which the SDK leaves to the host. Here
 * that is done once for all requests that wait, and each request that the 404 turned away, and which the server
 * so has not taken, is sent once more. What was under way when the session was lost is not sent again.
 */
export function sessionFetch(inner: FetchLike): FetchLike {
	const sessions = new Map<string, Session>();

	async function begin(url: string | URL, init: FetchInit, handshake: JsonObject): Promise<Response> {
		const response = await inner(url, init);
		const id = response.headers.get(SESSION_HEADER);
		if (!response.ok || id === null) return response;
		sessions.set(id, { handshake, liveId: id, renewing: undefined });
		for (const oldest of sessions.keys()) {
			if (sessions.size <= MAX_SESSIONS) break;
			sessions.delete(oldest);
		}
		return response;
	}

	async function renew(session: Session, url: string | URL, init: FetchInit): Promise<boolean> {
		const { handshake } = session;
		const response = await inner(url, posting(init, null, handshake));
		const liveId = response.headers.get(SESSION_HEADER);
		const result = response.ok ? await resultIn(response) : undefined;
		const version = new Headers(init.headers).get('mcp-protocol-version');
		// The SDK goes on in the version that it once agreed on.
		if (liveId === null || !result || result['protocolVersion'] !== version) return false;
		session.liveId = liveId;
		const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
		await (await inner(url, posting(init, liveId, initialized))).text();
		return true;
	}

	return async (url, init = {}) => {
		const id = new Headers(init.headers).get(SESSION_HEADER);
		if (id === null) {
			const handshake = handshakeIn(init);
			return handshake ? begin(url, init, handshake) : inner(url, init);
		}
		const session = sessions.get(id);
		if (!session) return inner(url, init);
		const usedId = session.liveId;
		const response = await inner(url, withSession(init, usedId));
		if (response.status !== 404 || !mayRepeat(init)) return response;
		if (session.liveId === usedId) {
			session.renewing ??= renew(session, url, init)
				.catch(() => false)
				.finally(() => {
					session.renewing = undefined;
				});
			// The next request tries again; this one failed as it would have without this.
			if (!(await session.renewing)) return response;
		}
		await response.body?.cancel();
		return inner(url, withSession(init, session.liveId));
	};
}

/**
 * Whether a request means the same in a new session: a call, or a stream for whatever comes. An answer, a
 * cancellation and the rest of a stream belong to the session that is gone.
 */
function mayRepeat(init: FetchInit): boolean {
	if (init.method === 'GET') return !new Headers(init.headers).has('last-event-id');
	const message = messageIn(init);
	return message !== undefined && 'id' in message && 'method' in message;
}

/** The `initialize` that a request is. Most bodies are not read for it. */
function handshakeIn(init: FetchInit): JsonObject | undefined {
	if (typeof init.body !== 'string' || !init.body.includes('"initialize"')) return undefined;
	const message = messageIn(init);
	return message?.['method'] === 'initialize' ? message : undefined;
}

/** The JSON-RPC message that a request carries; the SDK fetches forms for its authorization with the same `fetch`. */
function messageIn({ body, headers }: FetchInit): JsonObject | undefined {
	const isJson = new Headers(headers).get('content-type')?.startsWith('application/json') ?? false;
	if (typeof body !== 'string' || !isJson) return undefined;
	const message: unknown = JSON.parse(body);
	return isJsonObject(message) ? message : undefined;
}

function withSession(init: FetchInit, id: string | null): FetchInit {
	const headers = new Headers(init.headers);
	if (id === null) headers.delete(SESSION_HEADER);
	else headers.set(SESSION_HEADER, id);
	return { ...init, headers };
}

/** A POST of `message` with the credentials of another request, which are fresh. */
function posting(init: FetchInit, sessionId: string | null, message: JsonObject): FetchInit {
	const { headers, ...rest } = withSession(init, sessionId);
	const next = new Headers(headers);
	next.set('content-type', 'application/json');
	next.set('accept', 'application/json, text/event-stream');
	return { ...rest, method: 'POST', headers: next, body: JSON.stringify(message) };
}

/** The result in the answer to one request, as JSON or as a stream of events. */
async function resultIn(response: Response): Promise<JsonObject | undefined> {
	const text = await response.text();
	const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
	const bodies = isStream ? [...text.matchAll(/^data: ?(.+)$/gm)].map(([, data]) => data ?? '') : [text];
	for (const body of bodies) {
		const message: unknown = JSON.parse(body);
		if (isJsonObject(message) && isJsonObject(message['result'])) return message['result'];
	}
	return undefined;
}
