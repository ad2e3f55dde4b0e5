import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
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
	#requests = 0;
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

	/** Whether anything came after the `initialize`: probes and health checks open sessions and leave them. */
	get isUsed(): boolean {
		return this.#requests > 1;
	}

	/** The SDK server that it is the session of. */
	get server(): McpServer {
		return this.#server;
	}

	async answer(request: Request, extras: FetchExtras): Promise<Response> {
		this.#usedAtMs = this.#clock.nowMs();
		this.#requests += 1;
		const lastEventId = request.method === 'GET' ? request.headers.get('last-event-id') : null;
		if (request.method === 'GET') {
			// Another session's id, a guessed one and one whose event was dropped are told the same.
			if (lastEventId !== null && !this.#events.has(lastEventId))
				return refusal(400, 'Last-Event-ID names no event that this session can be resumed after');
			// The stream that this one replaces may be dead without a sign; the SDK would refuse the new one.
			const wantsStream = request.headers.get('accept')?.includes('text/event-stream') === true;
			if (lastEventId === null && wantsStream) this.#transport.closeStandaloneSSEStream();
		}
		const { authInfo, parsedBody } = extras;
		const response = await this.#transport.handleRequest(request, {
			...(authInfo && { authInfo }),
			...(parsedBody !== undefined && { parsedBody }),
		});
		if (!isEventStream(response)) return response;
		const reader = response.body.getReader();
		// Some clients go on with every stream that ends, also after its answer, and would come back each second.
		if (lastEventId !== null && (await isReadOut(reader)))
			return refusal(405, 'All of the stream of this event was delivered', {
				headers: { allow: 'POST, DELETE' },
			});
		this.#openResponses += 1;
		const body = watched(reader, request.signal, () => {
			this.#openResponses -= 1;
			this.#usedAtMs = this.#clock.nowMs();
		});
		return new Response(body, { status: response.status, headers: response.headers });
	}

	/** Lets go of events that are too old to be asked for. */
	forgetOldEvents(): void {
		this.#events.drop();
	}

	/** Ends its streams and the requests that wait on them; their tasks go on. */
	close(): Promise<void> {
		return this.#server.close();
	}
}

/** Whether a stream has ended with nothing in it that is yet to be read. */
function isReadOut({ closed }: ReadableStreamDefaultReader): Promise<boolean> {
	return Promise.race([
		closed.then(
			() => true,
			() => false,
		),
		setImmediate(false),
	]);
}

/**
 * The same stream, with a call of `onEnd` once it was read to its end or its reader has gone. What is between may
 * say so by `gone` alone, and read on until the next chunk.
 */
function watched(
	reader: ReadableStreamDefaultReader<Uint8Array>,
	gone: AbortSignal,
	onEnd: () => void,
): ReadableStream<Uint8Array> {
	let isOver = false;
	const end = (): void => {
		if (isOver) return;
		isOver = true;
		gone.removeEventListener('abort', leave);
		onEnd();
	};
	const leave = (): void => {
		end();
		reader.cancel().catch(() => {});
	};
	gone.addEventListener('abort', leave, { once: true });
	if (gone.aborted) leave();
	return new ReadableStream<Uint8Array>(
		{
			// Begun at once: a client, or what is between, may wait for the first byte of a long call.
			start: (controller) => controller.enqueue(new TextEncoder().encode(': open\n\n')),
			pull: async (controller) => {
				const { done, value } = await reader.read();
				if (value) controller.enqueue(value);
				if (!done) return;
				end();
				controller.close();
			},
			cancel: leave,
		},
		{ highWaterMark: 0 },
	);
}
