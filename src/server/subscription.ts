import type { Engine } from '../engine/engine.ts';
import { isHoldfastError } from '../errors.ts';
import type { JsonObject } from '../protocol/json.ts';
import { SUBSCRIPTION_ID_META } from '../protocol/names.ts';
import { toDetailedTask } from './wire-task.ts';

/** Most task ids that one `subscriptions/listen` may name; the rest is left out of the acknowledgement. */
const MAX_LISTEN_TASKS = 1_000;

/** A listen request's stream of task notifications, whatever carries it. */
export class Subscription {
	/** The ids that are honoured: known, the principal's own (T54). */
	readonly taskIds: readonly string[];
	readonly #id: string | number;
	readonly #engine: Engine;
	readonly #principal: string;
	readonly #send: (notification: JsonObject) => Promise<void>;
	readonly #sentRevisions = new Map<string, number>();
	readonly #dirty = new Set<string>();
	readonly #stops: (() => void)[] = [];
	#draining = false;
	#closed = false;

	private constructor(
		taskIds: readonly string[],
		options: SubscriptionOptions,
		send: (notification: JsonObject) => Promise<void>,
	) {
		this.taskIds = taskIds;
		this.#id = options.id;
		this.#engine = options.engine;
		this.#principal = options.principal;
		this.#send = send;
	}

	/**
	 * Finds out which ids are honoured. Nothing is sent before {@link start}.
	 *
	 * @param send - takes one notification; the next one waits until it resolves, so a slow reader gets the
	 * latest state instead of a backlog.
	 */
	static async open(
		options: SubscriptionOptions,
		send: (notification: JsonObject) => Promise<void>,
	): Promise<Subscription> {
		const honoured: string[] = [];
		const wanted = new Set(options.taskIds);
		for (const taskId of [...wanted].slice(0, MAX_LISTEN_TASKS)) {
			try {
				await options.engine.get(taskId, options.principal);
				honoured.push(taskId);
			} catch (error) {
				if (!isHoldfastError(error, 'TASK_NOT_FOUND')) throw error;
			}
		}
		return new Subscription(honoured, options, send);
	}

	/** Begins with every task as it is now, so that no change between reading and listening is missed. */
	start(): void {
		for (const taskId of this.taskIds) {
			this.#stops.push(this.#engine.watch.on(taskId, () => this.#mark(taskId)));
			this.#mark(taskId);
		}
	}

	close(): void {
		this.#closed = true;
		for (const stop of this.#stops.splice(0)) stop();
	}

	#mark(taskId: string): void {
		this.#dirty.add(taskId);
		if (!this.#draining) void this.#drain();
	}

	async #drain(): Promise<void> {
		this.#draining = true;
		try {
			for (const taskId of this.#dirty) {
				this.#dirty.delete(taskId);
				if (this.#closed) return;
				await this.#tell(taskId);
			}
		} catch {
			// The reader is gone; its side of the connection says so.
			this.close();
		} finally {
			this.#draining = false;
		}
	}

	async #tell(taskId: string): Promise<void> {
		// What cannot be read now is looked at again when the watch comes by.
		const record = await this.#engine.get(taskId, this.#principal).catch(() => undefined);
		if (!record || record.revision <= (this.#sentRevisions.get(taskId) ?? 0)) return;
		this.#sentRevisions.set(taskId, record.revision);
		await this.#send({
			jsonrpc: '2.0',
			method: 'notifications/tasks',
			params: {
				...toDetailedTask(record, this.#engine.nowMs()),
				_meta: { [SUBSCRIPTION_ID_META]: this.#id },
			},
		} as unknown as JsonObject);
	}
}

/** What a listen request asks. */
export interface SubscriptionOptions {
	readonly id: string | number;
	readonly taskIds: readonly string[];
	readonly principal: string;
	readonly engine: Engine;
}
