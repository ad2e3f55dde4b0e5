import { HoldfastError } from '../errors.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { Driver } from './driver.ts';
import { errorOf, type TaskOutcome } from './outcome.ts';
import { type CallToolResult, SdkError, SdkErrorCode } from './sdk.ts';
import type { TaskState } from './task-state.ts';

/** What an execution needs of the client that made it. */
export interface ExecutionDeps {
	/** What observes the task; undefined when the outcome is known. */
	readonly driver: Driver | undefined;
	/** The outcome, when it is known. */
	readonly outcome: TaskOutcome | undefined;
	/** Null for a call that was answered at once. */
	readonly reference: string | null;
	readonly tool: string;
	/** Validates a result as the SDK does. */
	readonly conclude: (result: JsonObject) => Promise<CallToolResult>;
	/** Takes the outcome for delivery; false when it was taken before. */
	readonly deliver: () => Promise<boolean>;
	readonly acknowledge: () => Promise<void>;
	/** Lets go of the driver. */
	readonly release: () => void;
	readonly onProblem: (error: unknown) => void;
}

/** Options of {@link Execution.result}. */
export interface ResultOptions {
	/** Stops waiting; what that does to the task is up to `onAbort`. */
	readonly signal?: AbortSignal;
	/** `cancel` tells the server to end the task, `leave` lets it go on. Default `leave`. */
	readonly onAbort?: 'cancel' | 'leave';
}

/**
 * A tool call that may take long, as its caller holds it. Several executions of one task share one driver, so
 * a second waiter costs no further request.
 */
export class Execution {
	/** The tool's name. */
	readonly tool: string;
	/**
	 * The serialised pointer with which `resume()` comes back to the task, from another process if need be. Null
	 * when the call was answered at once: there is nothing to come back to.
	 */
	readonly reference: string | null;
	readonly #deps: ExecutionDeps;
	readonly #detached = new AbortController();

	constructor(deps: ExecutionDeps) {
		this.#deps = deps;
		this.tool = deps.tool;
		this.reference = deps.reference;
	}

	/** Where the task stands; undefined when the call was answered at once, or before the server said anything. */
	get state(): TaskState | undefined {
		return this.#deps.driver?.state;
	}

	/** How the task ended; undefined while it lives. Reading it delivers nothing. */
	get outcome(): TaskOutcome | undefined {
		return this.#deps.outcome ?? this.#deps.driver?.outcome;
	}

	/**
	 * Waits for the end of the task, however long, through outages. The result is what `callTool` would have
	 * returned; a tool error is a result with `isError`, not an error (T22). It is kept in the journal before it
	 * is given, and marked as delivered; it stays readable by {@link reference} until {@link acknowledge}.
	 *
	 * @throws ProtocolError for a task that `failed`, and whatever else `callTool` throws for a result;
	 * TASK_CANCELLED, TASK_NOT_FOUND, TASK_EXPIRED, INVALID_RESPONSE, INPUT_UNAVAILABLE, DETACHED; an SdkError with
	 * the signal's reason.
	 */
	async result(options: ResultOptions = {}): Promise<CallToolResult> {
		const outcome = await this.settled(options);
		await this.#deps.deliver().catch(this.#deps.onProblem);
		if (outcome.kind !== 'completed') throw errorOf(outcome);
		return this.#deps.conclude(outcome.result);
	}

	/**
	 * Waits for the end of the task and takes its outcome for delivery, which of all that wait, in this process
	 * and others, one does: undefined for the rest.
	 *
	 * @throws DETACHED
	 */
	async deliverOnce(): Promise<TaskOutcome | undefined> {
		const outcome = await this.settled();
		return (await this.#deps.deliver()) ? outcome : undefined;
	}

	/**
	 * Each change of the task from its present state on, ending with the task, or with {@link detach}. A slow
	 * reader gets the latest state instead of a backlog. Empty for a call that was answered at once.
	 */
	async *updates(): AsyncGenerator<TaskState, void, void> {
		const { driver } = this.#deps;
		if (!driver) return;
		let seen: TaskState | undefined;
		while (!this.#detached.signal.aborted) {
			const { state } = driver;
			if (state && state !== seen) {
				seen = state;
				yield state;
			} else if (driver.outcome) return;
			else await this.#change(driver);
		}
	}

	/**
	 * Tells the server to end the task (T40), and resolves when the server has been told; through an outage it goes
	 * on trying. How the task then ends says {@link result}: it may still have been completed. Does nothing
	 * when the task has ended.
	 */
	async cancel(): Promise<void> {
		await this.#deps.driver?.cancel();
	}

	/**
	 * Stops watching while the task lives on; {@link result} throws DETACHED from now on. An open question is
	 * withdrawn from the host, and asked again by whoever resumes. Returns the {@link reference}.
	 */
	detach(): string | null {
		if (!this.#detached.signal.aborted && !this.outcome) {
			this.#detached.abort();
			this.#deps.release();
		}
		return this.reference;
	}

	/** Says that the outcome has arrived where it should, so that the journal may forget the task. */
	async acknowledge(): Promise<void> {
		await this.#deps.acknowledge();
	}

	/**
	 * Waits for the end of the task, as {@link result} does, and delivers nothing.
	 *
	 * @throws DETACHED; an SdkError with the signal's reason.
	 */
	settled(options: ResultOptions = {}): Promise<TaskOutcome> {
		const { driver } = this.#deps;
		if (this.outcome) return Promise.resolve(this.outcome);
		return new Promise((resolve, reject) => {
			const { signal } = options;
			const end = (settle: () => void): void => {
				signal?.removeEventListener('abort', abort);
				this.#detached.signal.removeEventListener('abort', detach);
				settle();
			};
			const abort = (): void => {
				if (options.onAbort === 'cancel') driver?.cancel().catch(this.#deps.onProblem);
				end(() => reject(asSdkAbort(signal?.reason)));
			};
			const detach = (): void =>
				end(() =>
					reject(
						new HoldfastError(
							'DETACHED',
							`This execution of ${this.tool} was detached; resume its reference`,
						),
					),
				);
			if (this.#detached.signal.aborted) return detach();
			if (signal?.aborted) return abort();
			signal?.addEventListener('abort', abort, { once: true });
			this.#detached.signal.addEventListener('abort', detach, { once: true });
			void driver?.ended.then((outcome) => end(() => resolve(outcome)));
		});
	}

	#change(driver: Driver): Promise<void> {
		return new Promise((resolve) => {
			const end = (): void => {
				stop();
				this.#detached.signal.removeEventListener('abort', end);
				resolve();
			};
			const stop = driver.onChange(end);
			this.#detached.signal.addEventListener('abort', end, { once: true });
		});
	}
}

/** What the SDK's `callTool` throws when its signal fires. */
function asSdkAbort(reason: unknown): SdkError {
	return reason instanceof SdkError ? reason : new SdkError(SdkErrorCode.RequestTimeout, String(reason));
}
