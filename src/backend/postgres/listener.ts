import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { connectionConfig } from './database.ts';

/** How often the connection is asked whether it still is one, and how long it may take to say so. */
const BEAT_MS = 2_000;
const ANSWER_WITHIN_MS = 3_000;

/** Pauses between attempts to connect again. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** What a listener tells whoever made it. */
export interface ListenerEvents {
	/** A text that some process sent. */
	heard(payload: string): void;
	/** The connection is back: what was sent meanwhile was missed. */
	isBack(): void;
}

/** The one connection of a process that hears what the others send. It comes back by itself when it breaks. */
export class Listener {
	readonly #url: string;
	readonly #channel: string;
	readonly #events: ListenerEvents;
	#client: Client | undefined;
	#socket: Socket | undefined;
	#beat: NodeJS.Timeout | undefined;
	#isStopped = false;

	/** @param channel - needs no quotes. */
	constructor(url: string, channel: string, events: ListenerEvents) {
		this.#url = url;
		this.#channel = channel;
		this.#events = events;
	}

	/** Resolves when it listens; rejects when the address cannot be connected to. */
	async start(): Promise<void> {
		await this.#connect();
		this.#beat = setInterval(() => void this.#check(), BEAT_MS).unref();
	}

	async stop(): Promise<void> {
		this.#isStopped = true;
		clearInterval(this.#beat);
		const client = this.#client;
		this.#client = undefined;
		// Whoever closes waits for it.
		this.#socket?.ref();
		await client?.end().catch(() => {});
	}

	async #connect(): Promise<void> {
		const socket = new Socket();
		const client = new Client({
			...connectionConfig(this.#url),
			query_timeout: ANSWER_WITHIN_MS,
			stream: () => socket,
		});
		client.on('error', () => this.#lost(client));
		client.on('end', () => this.#lost(client));
		client.on('notification', ({ payload }) => this.#events.heard(payload ?? ''));
		try {
			await client.connect();
			await client.query(`LISTEN ${this.#channel}`);
			// It must not keep a process alive that has nothing else to do.
			this.#socket = socket.unref();
		} catch (error) {
			void client.end().catch(() => {});
			throw error;
		}
		if (this.#isStopped) return void client.end().catch(() => {});
		this.#client = client;
	}

	/** A connection that is cut somewhere on the way looks like one on which nothing happens. */
	async #check(): Promise<void> {
		const client = this.#client;
		try {
			await client?.query('SELECT 1');
		} catch {
			if (client) this.#lost(client);
		}
	}

	#lost(client: Client): void {
		if (this.#client !== client || this.#isStopped) return;
		this.#client = undefined;
		void client.end().catch(() => {});
		void this.#reconnect();
	}

	async #reconnect(): Promise<void> {
		for (let pauseMs = FIRST_PAUSE_MS; !this.#isStopped; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
			await sleep(pauseMs, undefined, { ref: false });
			try {
				await this.#connect();
				if (!this.#isStopped) this.#events.isBack();
				return;
			} catch {
				// Whoever waits for a task looks by itself now and then.
			}
		}
	}
}
