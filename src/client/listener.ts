import { backoffMs, type Random } from './cadence.ts';
import type { Clock } from './clock.ts';
import type { Connection } from './connection.ts';
import { problemOf } from './problem.ts';
import type { McpSubscription } from './sdk.ts';

/** What a listener needs. */
export interface ListenerDeps {
	readonly connection: Connection;
	readonly clock: Clock;
	readonly random: Random;
	/** Called with the ids that are listened for now and were not, or the other way round. */
	readonly onChange: (taskIds: readonly string[]) => void;
}

/** Most task ids that are named on the stream; further tasks are polled. */
const MAX_TASKS = 1_000;

/** How long further tasks are waited for before a new stream names them. */
const GATHER_MS = 250;

/** Least time from one good stream to the next one, which names further tasks; until then they are polled. */
const RENEW_MS = 5_000;

/** Longest wait before a stream is opened again; there is polling meanwhile. */
const MAX_REOPEN_MS = 30_000;

/** How many changes a stream may have missed before it is taken for dead. */
const MAX_MISSES = 2;

/** A stream that lived this long was a good one: the next failure begins the back-off anew. */
const GOOD_STREAM_MS = 10_000;

/**
 * One stream of task notifications for all tasks of a connection (T50), reopened when it drops. A server that does
 * not offer it is not asked again on that connection. What is not listened for is polled.
 */
export class TaskListener {
	readonly #deps: ListenerDeps;
	readonly #wanted = new Set<string>();
	#live: ReadonlySet<string> = new Set();
	#stream: McpSubscription | undefined;
	#cancelTimer: (() => void) | undefined;
	#opening = false;
	#failures = 0;
	#misses = 0;
	#openedAtMs = -Infinity;
	/** The transport that is known not to offer notifications. */
	#unsupportedOn: object | undefined;
	readonly #closed = new AbortController();

	constructor(deps: ListenerDeps) {
		this.#deps = deps;
	}

	/** Whether changes of a task are being pushed, as far as can be told. */
	isLive(taskId: string): boolean {
		return this.#live.has(taskId);
	}

	/** Asks for a task's notifications from now on. */
	want(taskId: string): void {
		this.#wanted.add(taskId);
		if (!this.#live.has(taskId)) this.#renew();
	}

	/** A poll found a change that was not pushed: the stream may be dead without having closed (F08). */
	missed(taskId: string): void {
		if (!this.#live.has(taskId) || ++this.#misses < MAX_MISSES) return;
		this.#misses = 0;
		this.#end();
		this.#openIn(GATHER_MS);
	}

	/** Does not want a task's notifications any more; the stream is closed with the last of them. */
	drop(taskId: string): void {
		this.#wanted.delete(taskId);
		if (this.#wanted.size > 0) return;
		this.#cancelTimer?.();
		this.#cancelTimer = undefined;
		this.#end();
	}

	close(): void {
		this.#closed.abort();
		this.#wanted.clear();
		this.#cancelTimer?.();
		this.#end();
	}

	get #isUnsupported(): boolean {
		return (
			this.#unsupportedOn !== undefined && this.#unsupportedOn === this.#deps.connection.client.transport
		);
	}

	#end(): void {
		const stream = this.#stream;
		this.#stream = undefined;
		this.#setLive([]);
		void stream?.close();
	}

	/** Opens a stream that names further tasks, unless it could not name any more than the present one. */
	#renew(): void {
		if (this.#isUnsupported) return;
		const listened = [...this.#live].filter((taskId) => this.#wanted.has(taskId)).length;
		// A full stream is renewed when half of its tasks have ended.
		if (this.#live.size >= MAX_TASKS && listened > MAX_TASKS / 2) return;
		const sinceMs = this.#deps.clock.nowMs() - this.#openedAtMs;
		this.#openIn(Math.max(GATHER_MS, this.#stream ? RENEW_MS - sinceMs : 0));
	}

	#openIn(delayMs: number): void {
		if (this.#opening || this.#closed.signal.aborted) return;
		this.#cancelTimer ??= this.#deps.clock.after(delayMs, () => {
			this.#cancelTimer = undefined;
			void this.#open();
		});
	}

	async #open(): Promise<void> {
		const taskIds = [...this.#wanted].slice(0, MAX_TASKS);
		if (this.#opening || this.#closed.signal.aborted || taskIds.length === 0) return;
		this.#opening = true;
		const { connection, clock, random } = this.#deps;
		const { transport } = connection.client;
		let retryInMs: number | undefined;
		try {
			const opened = await connection.listen(taskIds, this.#closed.signal);
			if (this.#closed.signal.aborted) return;
			if (opened.taskIds.length === 0) {
				// The server knows listening, but not for tasks, or for none of these.
				this.#unsupportedOn = transport;
				void opened.subscription.close();
				return;
			}
			// The new stream stands before the old one falls, so nothing is missed between them.
			const before = this.#stream;
			this.#stream = opened.subscription;
			this.#openedAtMs = clock.nowMs();
			this.#misses = 0;
			this.#setLive(opened.taskIds);
			void before?.close();
			void this.#watch(opened.subscription, this.#openedAtMs);
		} catch (error) {
			const { kind, retryAfterMs } = problemOf(error);
			if (kind === 'refused' || kind === 'invalid') this.#unsupportedOn = transport;
			else {
				this.#failures += 1;
				retryInMs = backoffMs(this.#failures + 1, retryAfterMs, random, MAX_REOPEN_MS);
			}
		} finally {
			this.#opening = false;
		}
		if (retryInMs !== undefined) this.#openIn(retryInMs);
		else if (this.#hasNews(taskIds)) this.#renew();
	}

	/** Whether tasks came while a stream was being opened. */
	#hasNews(asked: readonly string[]): boolean {
		const named = new Set(asked);
		return [...this.#wanted].some((taskId) => !named.has(taskId));
	}

	async #watch(stream: McpSubscription, openedAtMs: number): Promise<void> {
		await stream.closed;
		if (this.#stream !== stream) return;
		this.#stream = undefined;
		this.#setLive([]);
		if (this.#wanted.size === 0) return;
		const { clock, random } = this.#deps;
		this.#failures = clock.nowMs() - openedAtMs >= GOOD_STREAM_MS ? 1 : this.#failures + 1;
		this.#openIn(backoffMs(this.#failures, undefined, random, MAX_REOPEN_MS));
	}

	#setLive(taskIds: readonly string[]): void {
		const before = this.#live;
		this.#live = new Set(taskIds);
		this.#deps.onChange([...before, ...taskIds].filter((id) => before.has(id) !== this.#live.has(id)));
	}
}
