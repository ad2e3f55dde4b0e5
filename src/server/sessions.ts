import { every } from '../engine/clock.ts';
import { HoldfastError, isHoldfastError, messageOf } from '../errors.ts';
import { isDeeperThan, isJsonObject, MAX_JSON_DEPTH } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import type { EventLimits } from './event-log.ts';
import type { FetchExtras } from './fetch.ts';
import { mendedHello } from './legacy-form.ts';
import { refusal } from './refusal.ts';
import { Session } from './session.ts';
import type { TaskServer } from './task-server.ts';

/** How many sessions of earlier protocol versions there may be, and how much each may keep. */
export interface SessionOptions extends EventLimits {
	/** Sessions of all principals; each takes some 70 KiB beside its events. Default 5,000. */
	readonly maxSessions: number;
	/** Sessions of one principal; without authentication everybody is one. Default 1,000. */
	readonly maxSessionsPerPrincipal: number;
	/** How long a session lives without a request or an open stream, in milliseconds. Default 30 minutes. */
	readonly sessionIdleMs: number;
}

const DEFAULTS: SessionOptions = {
	maxSessions: 5_000,
	maxSessionsPerPrincipal: 1_000,
	sessionIdleMs: 30 * 60_000,
	maxEventBytes: 1024 * 1024,
	maxEvents: 1_000,
	eventLifeMs: 10 * 60_000,
};

/** The options, checked and filled up. Throws INVALID_OPTION. */
export function sessionOptions(given: Partial<SessionOptions> = {}): SessionOptions {
	const options = { ...DEFAULTS };
	for (const name of Object.keys(DEFAULTS) as (keyof SessionOptions)[]) {
		const value = given[name] ?? DEFAULTS[name];
		if (!Number.isSafeInteger(value) || value < 1)
			throw new HoldfastError(
				'INVALID_OPTION',
				`sessions.${name} is ${value}; it must be an integer, 1 or more`,
			);
		Object.assign(options, { [name]: value });
	}
	return options;
}

/** How often idle sessions are looked for. */
const SWEEP_MS = 30_000;

/**
 * How long a client may be without a request or an open stream before the calls that end with their connection
 * are stopped, and a session that was only opened is closed. Long enough to come back after a broken stream.
 */
const GONE_MS = 60_000;

/** When a client should come back to a server whose store is down, in seconds. */
const RETRY_AFTER_S = 5;

/** What a session id may be made of, whoever gave it: one that can be ours or an earlier server's. */
const SESSION_ID = /^[\x21-\x7e]{1,256}$/;

/**
 * The sessions of clients that speak a protocol version before 2026-07-28. They live in this process: after a
 * restart, or on another replica, a client is told 404 and begins a new one. Its tasks are in the store.
 */
export class Sessions {
	readonly #server: TaskServer;
	readonly #options: SessionOptions;
	readonly #open = new Map<string, Session>();
	/** Sessions by principal, those that are being opened included. */
	readonly #counts = new Map<string, number>();
	#count = 0;
	readonly #stopSweep: () => void;

	constructor(server: TaskServer, options: SessionOptions) {
		this.#server = server;
		this.#options = options;
		this.#stopSweep = every(server.clock, SWEEP_MS, () => this.#sweep());
	}

	/** Answers a request of a session, or one that opens a session; undefined for one that does neither. */
	async answer(request: Request, given: FetchExtras): Promise<Response | undefined> {
		const id = request.headers.get('mcp-session-id');
		const isHello = isJsonObject(given.parsedBody) && given.parsedBody['method'] === 'initialize';
		if (id === null && !isHello) return undefined;
		if (id !== null && !SESSION_ID.test(id))
			return refusal(400, 'Mcp-Session-Id must be 1 to 256 visible ASCII characters');
		if (isDeeperThan(given.parsedBody, MAX_JSON_DEPTH))
			return refusal(400, `The body is nested more than ${MAX_JSON_DEPTH} levels deep`);
		const extras = { ...given, parsedBody: mendedHello(given.parsedBody) };
		let principal: string;
		try {
			principal = this.#server.runtime.principal(extras);
		} catch (error) {
			return this.#failed(error);
		}
		const known = id === null ? undefined : this.#open.get(id);
		// A foreign session is an unknown one, to the byte.
		const session = known?.principal === principal ? known : undefined;
		if ((!session || needsStore(extras.parsedBody)) && !(await this.#storeAnswers(principal)))
			return refusal(503, 'The store does not answer; try again later', {
				headers: { 'retry-after': `${RETRY_AFTER_S}` },
			});
		if (session) return session.answer(request, extras);
		return id === null ? this.#begin(request, extras, principal) : notFound();
	}

	/** Ends every session. */
	async close(): Promise<void> {
		this.#stopSweep();
		await Promise.all([...this.#open.values()].map((session) => session.close().catch(() => {})));
	}

	async #begin(request: Request, extras: FetchExtras, principal: string): Promise<Response> {
		const { maxSessions, maxSessionsPerPrincipal } = this.#options;
		const own = this.#counts.get(principal) ?? 0;
		if (own >= maxSessionsPerPrincipal)
			return refusal(
				429,
				`You have ${own} sessions, which is the limit. End one with DELETE, or let it idle.`,
			);
		if (this.#count >= maxSessions)
			return refusal(429, `The server has ${maxSessions} sessions, which is its limit. Try again later.`);
		this.#counts.set(principal, own + 1);
		this.#count += 1;
		let openedId: string | undefined;
		let isOver = false;
		const onClose = (): void => {
			if (isOver) return;
			isOver = true;
			if (openedId !== undefined) this.#open.delete(openedId);
			this.#count -= 1;
			const left = (this.#counts.get(principal) ?? 1) - 1;
			if (left > 0) this.#counts.set(principal, left);
			else this.#counts.delete(principal);
		};
		try {
			const { runtime, clock } = this.#server;
			const { authInfo } = extras;
			const context = { era: 'legacy', ...(authInfo && { authInfo }), requestInfo: request } as const;
			const onOpen = (id: string, session: Session): void => {
				openedId = id;
				this.#open.set(id, session);
			};
			const server = await runtime.build(context);
			const limits = this.#options;
			const session = await Session.begin({ principal, server, clock, limits, onOpen, onClose });
			const response = await session.answer(request, extras);
			if (openedId === undefined) await session.close();
			return response;
		} catch (error) {
			onClose();
			return this.#failed(error);
		}
	}

	#failed(error: unknown): Response {
		this.#server.log.error({ error: messageOf(error) }, 'a session failed');
		return refusal(500, 'Internal error', { code: WIRE_CODES.internalError });
	}

	async #sweep(): Promise<void> {
		const nowMs = this.#server.clock.nowMs();
		const { sessionIdleMs } = this.#options;
		for (const session of this.#open.values()) {
			const idleMs = session.idleSinceMs === null ? 0 : nowMs - session.idleSinceMs;
			if (idleMs >= (session.isUsed ? sessionIdleMs : Math.min(GONE_MS, sessionIdleMs)))
				await session.close().catch(() => {});
			else if (idleMs >= GONE_MS) this.#server.runtime.giveUp(session.server);
			session.forgetOldEvents();
		}
	}

	/** Whether the store can be read: only then is a missing session the client's concern. */
	async #storeAnswers(principal: string): Promise<boolean> {
		try {
			await this.#server.runtime.ready();
			await this.#server.engine.get('none', principal);
			return true;
		} catch (error) {
			return isHoldfastError(error, 'TASK_NOT_FOUND');
		}
	}
}

/** Whether a message cannot be answered without the store. */
function needsStore(message: unknown): boolean {
	const method = isJsonObject(message) ? message['method'] : undefined;
	return method === 'tools/call' || (typeof method === 'string' && method.startsWith('tasks/'));
}

/** The code that the SDK gives to it. */
const SESSION_NOT_FOUND = -32001;

const notFound = (): Response => refusal(404, 'Session not found', { code: SESSION_NOT_FOUND });
