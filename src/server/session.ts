import { randomBytes } from 'node:crypto';
import type { Clock } from '../engine/clock.ts';
import { EventLog, type EventLimits } from './event-log.ts';
import type { FetchExtras } from './fetch.ts';
import { refusal } from './refusal.ts';
import { type McpServer, WebStandardStreamableHTTPServerTransport } from './sdk.ts';
import { isEventStream, KEEP_ALIVE_MS } from './sse.ts';

/** How soon a client of a broken stream should come back. */
const RETRY_MS = 1_000;

/** One client of an earlier protocol version: its server, its streams, and what was sent on them. */
export class Session {
	readonly principal: string;
	readonly #server: McpServer;
	readonly #transport: WebStandardStreamableHTTPServerTransport;
	readonly #events: EventLog;
	readonly #clock: Clock;
	#openResponses = 0;
	#usedAtMs: number;

	private constructor(
		principal: string,
		server: McpServer,
		transport: WebStandardStreamableHTTPServerTransport,
		events: EventLog,
		clock: Clock,
	) {
		this.principal = principal;
		this.#server = server;
		this.#transport = transport;
		this.#events = events;
		this.#clock = clock;
		this.#usedAtMs = clock.nowMs();
	}

	/**
	 * A session that its first request, an `initialize`, opens.
	 *
	 * @param onOpen - called with the session's id before that request is answered.
	 * @param onClose - called once when it has ended, by a DELETE or otherwise.
	 */
	static async begin(options: {
		readonly principal: string;
		readonly server: McpServer;
		readonly clock: Clock;
		readonly limits: EventLimits;
		readonly onOpen: (id: string, session: Session) => void;
		readonly onClose: () => void;
	}): Promise<Session> {
		const { principal, server, clock, limits } = options;
		const events = new EventLog(limits, clock);
		const transport = new WebStandardStreamableHTTPServerTransport({
			sessionIdGenerator: () => randomBytes(20).toString('hex'),
			onsessioninitialized: (id) => options.onOpen(id, session),
			eventStore: events,
			retryInterval: RETRY_MS,
			keepAliveMs: KEEP_ALIVE_MS,
		});
		const session = new Session(principal, server, transport, events, clock);
		transport.onclose = options.onClose;
		await server.connect(transport);
		return session;
	}

	/** Since when nobody has used it; null while one of its streams is open. */
	get idleSinceMs(): number | null {
		return this.#openResponses > 0 ? null : this.#usedAtMs;
	}

	async answer(request: Request, extras: FetchExtras): Promise<Response> {
		this.#usedAtMs = this.#clock.nowMs();
		if (request.method === 'GET') {
			const lastEventId = request.headers.get('last-event-id');
			// Another session's id, a guessed one and one whose event was dropped are told the same.
			if (lastEventId !== null && !this.#events.has(lastEventId))
				return refusal(400, 'Last-Event-ID names no event that this session can be resumed after');
			// The stream that this one replaces may be dead without a sign; the SDK would refuse the new one.
			if (lastEventId === null) this.#transport.closeStandaloneSSEStream();
		}
		const { authInfo, parsedBody } = extras;
		const response = await this.#transport.handleRequest(request, {
			...(authInfo && { authInfo }),
			...(parsedBody !== undefined && { parsedBody }),
		});
		if (!isEventStream(response)) return response;
		this.#openResponses += 1;
		const body = watched(response.body, () => {
			this.#openResponses -= 1;
			this.#usedAtMs = this.#clock.nowMs();
		});
		return new Response(body, { status: response.status, headers: response.headers });
	}

	/** Ends its streams and the requests that wait on them; their tasks go on. */
	close(): Promise<void> {
		return this.#server.close();
	}
}

/** The same stream, with a call of `onEnd` once it was read to its end or its reader has gone. */
function watched(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
	const reader = body.getReader();
	return new ReadableStream<Uint8Array>(
		{
			// Begun at once: a client, or what is between, may wait for the first byte of a long call.
			start: (controller) => controller.enqueue(new TextEncoder().encode(': open\n\n')),
			pull: async (controller) => {
				const { done, value } = await reader.read();
				if (value) controller.enqueue(value);
				if (!done) return;
				onEnd();
				controller.close();
			},
			cancel: async (reason) => {
				onEnd();
				await reader.cancel(reason);
			},
		},
		{ highWaterMark: 0 },
	);
}
