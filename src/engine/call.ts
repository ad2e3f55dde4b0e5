import type { TaskProgress, TaskRecord } from '../backend/record.ts';
import { isTerminal } from '../protocol/status.ts';
import type { Clock } from './clock.ts';
import type { Running } from './runner.ts';
import type { Watch } from './watch.ts';

/** Whether a call need not be waited for any longer: it has ended, or has a question for the client. */
export function isDecided(record: TaskRecord): boolean {
	return isTerminal(record.status) || record.status === 'input_required';
}

/** One `tools/call` while the server decides how to answer it: the task may run here, elsewhere, or wait. */
export class Call {
	readonly taskId: string;
	/** Whether the call joined a task that an earlier call with the same idempotency key started. */
	readonly joined: boolean;
	readonly #running: Running | undefined;
	readonly #read: () => Promise<TaskRecord>;
	readonly #watch: Watch;
	readonly #clock: Clock;

	constructor(
		taskId: string,
		joined: boolean,
		running: Running | undefined,
		deps: { readonly read: () => Promise<TaskRecord>; readonly watch: Watch; readonly clock: Clock },
	) {
		this.taskId = taskId;
		this.joined = joined;
		this.#running = running;
		this.#read = deps.read;
		this.#watch = deps.watch;
		this.#clock = deps.clock;
	}

	/** The task as it stands. */
	async current(): Promise<TaskRecord> {
		const live = this.#running?.task;
		// Of two questions that were asked together, the client should not be told of the first alone.
		await live?.turns();
		if (live && (!live.stored || live.record.lease?.token === live.token)) return live.record;
		return this.#read();
	}

	/** Makes the task durable, so that its handle may be given (T12). Throws `TASK_LIMIT`. */
	async keep(): Promise<TaskRecord> {
		const live = this.#running?.task;
		if (live && !live.stored) await live.store();
		return this.current();
	}

	/** Whether the task is in the store. */
	get kept(): boolean {
		return this.#running?.task.stored ?? true;
	}

	/** Whether its handler, where that runs here, has said that the call takes long. */
	get isLong(): boolean {
		return this.#running?.run.isLong ?? false;
	}

	/** Waits for the sync window: until the task is decided, its handler says that it takes long, or `waitMs` passed. */
	inWindow(waitMs: number): Promise<TaskRecord | undefined> {
		const run = this.#running?.run;
		if (!run) return this.until(isDecided, waitMs);
		const long = new AbortController();
		const stop = run.onLong(() => long.abort());
		if (run.isLong) long.abort();
		return this.until(isDecided, waitMs, long.signal).finally(stop);
	}

	/** Cancels a call that was never kept: its handler's signal fires, and it is abandoned after its grace time. */
	async abandon(): Promise<void> {
		await this.#running?.task.apply({ type: 'cancel' });
	}

	/**
	 * Waits until the task is as `wanted` says; undefined when `waitMs` passed or `signal` fired first.
	 */
	until(
		wanted: (record: TaskRecord) => boolean,
		waitMs: number | null,
		signal?: AbortSignal,
	): Promise<TaskRecord | undefined> {
		return new Promise((resolve, reject) => {
			const ends: (() => void)[] = [];
			const end = (settle: () => void): void => {
				for (const stop of ends.splice(0)) stop();
				settle();
			};
			const look = (): void => {
				this.current().then(
					(record) => wanted(record) && end(() => resolve(record)),
					(error: unknown) => end(() => reject(error)),
				);
			};
			const giveUp = (): void => end(() => resolve(undefined));
			ends.push(this.#watch.on(this.taskId, look));
			if (this.#running) ends.push(this.#running.task.onChange(look));
			if (waitMs !== null) ends.push(this.#clock.after(waitMs, giveUp));
			signal?.addEventListener('abort', giveUp, { once: true });
			ends.push(() => signal?.removeEventListener('abort', giveUp));
			if (signal?.aborted) return giveUp();
			look();
		});
	}

	/** Calls `listener` for each progress note of a handler that runs here, else for each stored one. */
	onProgress(listener: (progress: TaskProgress) => void): () => void {
		const running = this.#running;
		if (running)
			return running.run.onProgress(() => {
				if (running.run.note) listener(running.run.note);
			});
		return this.#watch.on(this.taskId, () => {
			// What cannot be read now is told with the next note.
			this.current().then(
				({ progress }) => progress && listener(progress),
				() => {},
			);
		});
	}
}
