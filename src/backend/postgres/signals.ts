import { randomUUID } from 'node:crypto';
import { messageOf } from '../../errors.ts';
import type { Signals, TaskChange } from '../signals.ts';
import { decodeBatch, encodeBatches } from './batch.ts';
import { ChangeLog } from './change-log.ts';
import type { Database } from './database.ts';
import { unusable } from './failure.ts';
import { Listener } from './listener.ts';
import type { PostgresSettings } from './options.ts';
import { shownUrl } from './options.ts';
import type { Statements } from './statements.ts';

/** Least time between two notifications of one process. */
const GATHER_MS = 10;

/** How long the connection may take to hear what this process says, before it counts as deaf. */
const PROBE_MS = 2_000;

/** After how many notifications the log of them is cut. */
const PRUNE_EVERY = 500;

/**
 * Tells the listeners of this process at once, and the other processes by NOTIFY: after the change was committed, in
 * a transaction of its own, and together with all that changes within ten milliseconds. A NOTIFY within each
 * transaction would make them commit one after the other.
 */
export class PostgresSignals implements Signals {
	readonly #database: Database;
	readonly #statements: Statements;
	readonly #settings: PostgresSettings;
	readonly #log: ChangeLog;
	readonly #listener: Listener;
	readonly #channel: string;
	/** Tells what this process sent from what others did. */
	readonly #name = randomUUID();
	readonly #listeners = new Set<(change: TaskChange) => void>();
	#pending = new Map<string, TaskChange>();
	#sending: Promise<void> | undefined;
	#timer: NodeJS.Timeout | undefined;
	#poll: NodeJS.Timeout | undefined;
	#sent = 0;
	#isStarted = false;
	#heardItself: (() => void) | undefined;

	constructor(database: Database, statements: Statements, settings: PostgresSettings) {
		this.#database = database;
		this.#statements = statements;
		this.#settings = settings;
		this.#channel = `holdfast_${settings.schema}`;
		this.#log = new ChangeLog(database.run, statements);
		this.#listener = new Listener(settings.directUrl ?? settings.url, this.#channel, {
			heard: (payload) => this.#hear(payload),
			isBack: () => void this.#catchUp(),
		});
	}

	publish(change: TaskChange): void {
		this.#tell(change);
		if (!this.#isStarted) return;
		this.#pending.set(change.taskId, change);
		if (!this.#sending && !this.#timer) this.#send();
	}

	subscribe(listener: (change: TaskChange) => void): () => void {
		// A function of its own, so that a listener which is given twice can be taken away once.
		const own = (change: TaskChange): void => listener(change);
		this.#listeners.add(own);
		return () => void this.#listeners.delete(own);
	}

	/** Called when the database is open. Answers whether this process hears the others, and warns where not. */
	async start(): Promise<void> {
		const { directUrl, url, pollIntervalMs } = this.#settings;
		try {
			await this.#listener.start();
		} catch (error) {
			throw unusable(shownUrl(directUrl ?? url), error);
		}
		await this.#log.skip();
		this.#isStarted = true;
		if (await this.#hearsItself()) {
			// The same address serves both: whoever hears has a connection of its own from end to end.
			if (directUrl === undefined) this.#database.allowPreparing();
			return;
		}
		await this.#listener.stop();
		process.emitWarning(
			`NOTIFY does not come through ${shownUrl(directUrl ?? url)}, as behind a pooler; changes of other processes ` +
				`are looked for every ${pollIntervalMs} ms instead. Give an address that leads past the pooler as directUrl.`,
			'HoldfastWarning',
		);
		this.#poll = setInterval(() => void this.#catchUp(), pollIntervalMs).unref();
	}

	/** Called before the database is closed. Sends what was not sent yet. */
	async stop(): Promise<void> {
		if (!this.#isStarted) return;
		clearInterval(this.#poll);
		clearTimeout(this.#timer);
		await this.#sending;
		if (this.#pending.size > 0) this.#send();
		await this.#sending;
		this.#isStarted = false;
		clearTimeout(this.#timer);
		await this.#listener.stop();
	}

	/** Whether a notification from another connection arrives at the one that listens. */
	async #hearsItself(): Promise<boolean> {
		const heard = new Promise<boolean>((resolve) => {
			const timer = setTimeout(() => resolve(false), PROBE_MS);
			this.#heardItself = () => {
				clearTimeout(timer);
				resolve(true);
			};
		});
		await this.#database.run(this.#statements.tell, [this.#channel, [this.#name], 'off']);
		return heard;
	}

	#hear(payload: string): void {
		if (payload === this.#name) this.#heardItself?.();
		for (const change of decodeBatch(this.#name, payload)) this.#tell(change);
	}

	async #catchUp(): Promise<void> {
		try {
			for (const batch of await this.#log.read()) this.#hear(batch);
		} catch {
			// The store's own methods say what is wrong; a look that failed is only late.
		}
	}

	/** Sends what has gathered; then, after a pause, what gathered meanwhile. */
	#send(): void {
		const batches = encodeBatches(this.#name, this.#pending.values());
		this.#pending = new Map();
		this.#sent += 1;
		this.#sending = this.#database
			.run(this.#statements.tell, [this.#channel, batches, 'off'])
			.then(() =>
				this.#sent % PRUNE_EVERY === 0 ? this.#database.run(this.#statements.pruneChanges, ['off']) : [],
			)
			.then(
				() => {},
				// Whoever waits for a task looks by itself now and then.
				() => {},
			)
			.then(() => {
				this.#sending = undefined;
				this.#timer = setTimeout(() => {
					this.#timer = undefined;
					if (this.#pending.size > 0) this.#send();
				}, GATHER_MS).unref();
			});
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
