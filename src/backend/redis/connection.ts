import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions as ClientOptions } from 'ioredis';
import { HoldfastError } from '../../errors.ts';
import { isPassing, isUnknownScript, unusable } from './failure.ts';
import { type RedisSettings, shownUrl } from './options.ts';

/** How long a connection may take to come about, and a command to be answered, in milliseconds. */
const CONNECT_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 10_000;

/** Pause before the first repetition; doubled up to the longest. */
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;

/** What a command may be given. */
export type Argument = string | number;

/** Sends one command and answers its reply. */
export type Run = <Reply>(...command: readonly [name: string, ...Argument[]]) => Promise<Reply>;

/** A script, which the server runs as a whole or not at all, with nothing in between. */
export interface Script {
	readonly text: string;
	readonly sha: string;
}

export function scriptOf(text: string): Script {
	return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** The connection of one process on which it reads and writes. All that is sent at the same time goes as one. */
export class Connection {
	/** The server as it may be shown: no user, no password. */
	readonly place: string;
	/** What every key begins with. The braces make a cluster keep all of them in one slot. */
	readonly base: string;
	readonly #settings: RedisSettings;
	#redis: Redis | undefined;
	#isClosed = false;
	#waiting = 0;

	constructor(settings: RedisSettings) {
		this.#settings = settings;
		this.place = `the prefix ${settings.prefix} at ${shownUrl(settings.url)}`;
		this.base = `{${settings.prefix}}:`;
	}

	/** Nothing is tried twice before the server was reached once: a wrong address should be heard of at once. */
	async open(check: (run: Run) => Promise<void>): Promise<void> {
		if (this.#isClosed) throw new HoldfastError('CLOSED', `${this.place} was closed before`);
		if (this.#redis) return;
		const redis = newClient(this.#settings.url, {
			enableAutoPipelining: true,
			socketTimeout: ANSWER_WITHIN_MS,
			retryStrategy: (attempt) => (this.#redis ? pauseAfter(attempt) : null),
		});
		try {
			await connected(redis);
			await check((name, ...rest) => send(redis, name, rest));
		} catch (error) {
			redis.disconnect();
			throw unusable(this.place, error);
		}
		this.#redis = redis;
		this.#letGo();
		// An idle connection must not keep a process alive that has nothing else to do.
		redis.on('ready', () => this.#letGo());
	}

	/** Lets go of the connection, once all that was sent is answered. Calling it twice does nothing. */
	async close(): Promise<void> {
		this.#isClosed = true;
		const redis = this.#redis;
		this.#redis = undefined;
		redis?.stream?.ref();
		await redis?.quit().catch(() => redis.disconnect());
	}

	/** Sends one command; again, for as long as there is patience, where the server cannot be reached. */
	readonly run: Run = (name, ...rest) => this.#patiently((redis) => send(redis, name, rest));

	/**
	 * Runs a script on the keys of this prefix; again as {@link run} does. It may then have been done already:
	 * `argumentsFor` is told so.
	 */
	script<Reply>(
		{ text, sha }: Script,
		argumentsFor: (isRepeated: boolean) => readonly Argument[],
	): Promise<Reply> {
		return this.#patiently(async (redis, isRepeated) => {
			const rest = [1, this.base, ...argumentsFor(isRepeated)];
			try {
				return await send<Reply>(redis, 'EVALSHA', [sha, ...rest]);
			} catch (error) {
				if (!isUnknownScript(error)) throw error;
				return send<Reply>(redis, 'EVAL', [text, ...rest]);
			}
		});
	}

	async #patiently<Result>(work: (redis: Redis, isRepeated: boolean) => Promise<Result>): Promise<Result> {
		const untilMs = performance.now() + this.#settings.patienceMs;
		for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
			const redis = this.#opened();
			if (this.#waiting++ === 0) redis.stream.ref();
			try {
				return await work(redis, pauseMs > FIRST_PAUSE_MS);
			} catch (error) {
				if (this.#isClosed || !isPassing(error) || performance.now() + pauseMs > untilMs)
					throw unusable(this.place, error);
			} finally {
				this.#waiting -= 1;
				this.#letGo();
			}
			await sleep(pauseMs);
		}
	}

	#letGo(): void {
		if (this.#waiting === 0) this.#redis?.stream.unref();
	}

	#opened(): Redis {
		if (this.#redis) return this.#redis;
		throw this.#isClosed
			? new HoldfastError('CLOSED', `${this.place} is closed`)
			: new HoldfastError('NOT_STARTED', `${this.place} is used before open()`);
	}
}

/** A client that says at once when it cannot send, and sends nothing twice by itself. */
export function newClient(url: string, options: Omit<ClientOptions, 'replyMapping'>): Redis {
	const redis = new Redis(url, {
		connectionName: 'holdfast',
		connectTimeout: CONNECT_WITHIN_MS,
		lazyConnect: true,
		enableOfflineQueue: false,
		autoResendUnfulfilledCommands: false,
		// Else what was sent when the connection broke is never answered.
		maxRetriesPerRequest: 0,
		protocol: 2,
		replyMapping: 'legacy',
		...options,
	});
	// What goes wrong is heard of by whoever sends something.
	redis.on('error', () => {});
	return redis;
}

/** Connects for the first time; rejects with what the socket or the server said. */
export async function connected(redis: Redis): Promise<void> {
	let reason: unknown;
	const note = (error: unknown): void => void (reason ??= error);
	redis.on('error', note);
	try {
		await redis.connect();
	} catch (error) {
		throw reason ?? error;
	} finally {
		redis.off('error', note);
	}
}

/** How long to wait before a broken connection is made again for the nth time. */
export function pauseAfter(attempt: number): number {
	return Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
}

async function send<Reply>(redis: Redis, name: string, rest: readonly Argument[]): Promise<Reply> {
	// The replies are what the commands and scripts say they are: the one place where one gets its type.
	return (await redis.call(name, rest.map(String))) as Reply;
}
