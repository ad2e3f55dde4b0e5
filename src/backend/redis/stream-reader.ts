import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { connected, newClient, pauseAfter } from './connection.ts';

/** How long the server holds a read while nothing comes. */
const HOLD_MS = 2_000;

/** After how long without an answer the connection counts as cut somewhere on the way. */
const ANSWER_WITHIN_MS = HOLD_MS + 3_000;

/** Most entries of one read. */
const PAGE = 1_000;

const PAUSE_MS = 50;

type Entries = readonly (readonly [id: string, fields: readonly string[]])[];

/** Reads what others add to a stream, on a connection of its own that comes back by itself when it breaks. */
export class StreamReader {
	readonly #redis: Redis;
	readonly #stream: string;
	readonly #read: (fields: readonly string[]) => void;
	#cursor = '0-0';
	#isStarted = false;
	#isStopped = false;
	#reading: Promise<void> | undefined;

	/** @param read - is given the names and values of each entry. */
	constructor(url: string, stream: string, read: (fields: readonly string[]) => void) {
		this.#stream = stream;
		this.#read = read;
		this.#redis = newClient(url, {
			retryStrategy: (attempt) => (this.#isStarted && !this.#isStopped ? pauseAfter(attempt) : null),
		});
	}

	/** Resolves when all that is added from now on will be read; rejects when the server cannot be reached. */
	async start(): Promise<void> {
		await connected(this.#redis);
		const [last] = await this.#redis.xrevrange(this.#stream, '+', '-', 'COUNT', 1);
		if (last) this.#cursor = last[0];
		this.#isStarted = true;
		// It must not keep a process alive that has nothing else to do.
		this.#redis.stream.unref();
		this.#redis.on('ready', () => this.#redis.stream.unref());
		this.#reading = this.#readOn();
	}

	async stop(): Promise<void> {
		this.#isStopped = true;
		// Whoever closes waits for it.
		this.#redis.stream?.ref();
		this.#redis.disconnect();
		await this.#reading;
	}

	async #readOn(): Promise<void> {
		while (!this.#isStopped) {
			try {
				for (const [id, fields] of await this.#next()) {
					this.#cursor = id;
					this.#read(fields);
				}
			} catch {
				if (this.#isStopped) return;
				// Whoever waits for a task looks by itself now and then.
				await sleep(PAUSE_MS, undefined, { ref: false });
			}
		}
	}

	async #next(): Promise<Entries> {
		const timer = setTimeout(() => this.#redis.disconnect(true), ANSWER_WITHIN_MS).unref();
		try {
			const reply: unknown = await this.#redis.call('XREAD', [
				...['COUNT', PAGE, 'BLOCK', HOLD_MS, 'STREAMS', this.#stream, this.#cursor],
			]);
			const [stream] = (reply ?? []) as readonly (readonly [name: string, entries: Entries])[];
			return stream?.[1] ?? [];
		} finally {
			clearTimeout(timer);
		}
	}
}
