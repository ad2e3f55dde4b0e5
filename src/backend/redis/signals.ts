import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../errors.ts';
import type { Signals, TaskChange } from '../signals.ts';
import type { Connection } from './connection.ts';
import type { RedisSettings } from './options.ts';
import { StreamReader } from './stream-reader.ts';

/** Least time between two batches of one process. */
const GATHER_MS = 1;

/** About how many batches the stream keeps for those who were cut off. */
const KEPT = 10_000;

type WireChange = readonly [taskId: string, revision: number, runnable: boolean];

/**
 * Tells the listeners of this process at once, and the other processes through a stream: what changes within two
 * milliseconds goes together. Whoever was cut off reads on where it stopped.
 */
export class RedisSignals implements Signals {
	readonly #connection: Connection;
	readonly #reader: StreamReader;
	readonly #stream: string;
	/** Tells what this process sent from what others did. */
	readonly #name = randomUUID();
	readonly #listeners = new Set<(change: TaskChange) => void>();
	#pending = new Map<string, TaskChange>();
	#sending: Promise<void> | undefined;
	#isStarted = false;

	constructor(connection: Connection, { url }: RedisSettings) {
		this.#connection = connection;
		this.#stream = `${connection.base}changes`;
		this.#reader = new StreamReader(url, this.#stream, (fields) => this.#hear(fields));
	}

	publish(change: TaskChange): void {
		this.#tell(change);
		if (!this.#isStarted) return;
		this.#pending.set(change.taskId, change);
		this.#sending ??= this.#send();
	}

	subscribe(listener: (change: TaskChange) => void): () => void {
		// A function of its own, so that a listener which is given twice can be taken away once.
		const own = (change: TaskChange): void => listener(change);
		this.#listeners.add(own);
		return () => void this.#listeners.delete(own);
	}

	/** Called when the connection is open. From now on the others are heard. */
	async start(): Promise<void> {
		await this.#reader.start();
		this.#isStarted = true;
	}

	/** Called before the connection is closed. Sends what was not sent yet. */
	async stop(): Promise<void> {
		this.#isStarted = false;
		await this.#sending;
		await this.#reader.stop();
	}

	async #send(): Promise<void> {
		while (this.#pending.size > 0) {
			const changes: WireChange[] = Array.from(this.#pending.values(), (change) => [
				...([change.taskId, change.revision, change.runnable] as const),
			]);
			this.#pending = new Map();
			await this.#connection
				.run(
					'XADD',
					this.#stream,
					'MAXLEN',
					'~',
					KEPT,
					'*',
					'by',
					this.#name,
					'changes',
					JSON.stringify(changes),
				)
				// Whoever waits for a task looks by itself now and then.
				.catch(() => {});
			if (this.#isStarted) await sleep(GATHER_MS);
		}
		this.#sending = undefined;
	}

	/** An entry that none of us wrote is passed over: anybody can write to a stream. */
	#hear([, by, , text]: readonly string[]): void {
		if (by === this.#name || text === undefined) return;
		let changes: unknown;
		try {
			changes = JSON.parse(text);
		} catch {
			return;
		}
		if (!Array.isArray(changes)) return;
		for (const [taskId, revision, runnable] of changes as WireChange[])
			this.#tell({ taskId, revision, runnable });
	}

	#tell(change: TaskChange): void {
		for (const listener of this.#listeners) {
			try {
				listener(change);
			} catch (error) {
				// The change is stored: whoever published it, and the other listeners, have no part in this.
				process.emitWarning(`a listener for task changes failed: ${messageOf(error)}`, 'HoldfastWarning');
			}
		}
	}
}
