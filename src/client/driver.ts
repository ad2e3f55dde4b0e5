import type { InputRequest, InputResponse, Task, DetailedTask } from '../protocol/task.ts';
import type { JsonObject } from '../protocol/json.ts';
import { Attendance } from './attendance.ts';
import { backoffMs, firstPollMs, nextPollMs } from './cadence.ts';
import { sleep } from './clock.ts';
import type { DriverDeps, DriverTask } from './driver-deps.ts';
import { answerOrSubstitute, InputDesk } from './input-desk.ts';
import { type LostCode, outcomeOf, type TaskOutcome } from './outcome.ts';
import { problemOf, type RequestProblem } from './problem.ts';
import { hasEnded } from './read-task.ts';
import type { TaskPointer } from './reference.ts';
import { sameState, type TaskState, toState } from './task-state.ts';
import type { TaskWire } from './task-wire.ts';

/** How soon a task is asked for again when the server said that it does not know it, or nonsense. */
const CONFIRM_MS = 1_000;

/** How soon a task is asked for after answers or a cancel went out. */
const SOON_MS = 300;

/** How often a task is asked for while a person thinks: only to learn that the question is open no more. */
const DIALOG_POLL_MS = 10_000;

/** How long after a cancel was acknowledged the end of the task is waited for. */
const CANCEL_GRACE_MS = 10_000;

/** How old a task is before its notifications are asked for; shorter tasks are not worth a stream. */
const LISTEN_AFTER_MS = 1_000;

/**
 * Observes one task to its end, for however many wait for it: polls by T70 to T73, takes notifications, has
 * questions answered, cancels. An outage never ends a task; a server that twice says it does not know the
 * task does, and so does an outage that outlasts the task's lifetime.
 */
export class Driver {
	readonly pointer: TaskPointer;
	/** Resolves with how the task ended; never when the driver is stopped before. */
	readonly ended: Promise<TaskOutcome>;
	readonly #deps: DriverDeps;
	readonly #own: DriverTask;
	readonly #desk: InputDesk;
	readonly #attendance: Attendance;
	readonly #stop = new AbortController();
	readonly #listeners = new Set<() => void>();
	readonly #resolve: (outcome: TaskOutcome) => void;
	#task: Task | undefined;
	#state: TaskState | undefined;
	#outcome: TaskOutcome | undefined;
	#concluding = false;
	#ttlMs: number | null;
	#reachable = true;
	#polling = false;
	#pollAgain = false;
	#doubts = 0;
	#troubles = 0;
	#refusedKeys: readonly string[] = [];
	#cancelling: Promise<void> | undefined;
	#cancelPoll: (() => void) | undefined;
	readonly #timers = new Set<() => void>();
	#cancelDeadline: (() => void) | undefined;

	constructor(deps: DriverDeps, own: DriverTask) {
		this.#deps = deps;
		this.#own = own;
		this.pointer = own.pointer;
		this.#ttlMs = own.pointer.ttlMs;
		const { promise, resolve } = Promise.withResolvers<TaskOutcome>();
		this.ended = promise;
		this.#resolve = resolve;
		this.#desk = new InputDesk(
			{
				ask: own.ask,
				keep: own.keepAnswer,
				send: (responses) => this.#repeat((wire, signal) => wire.update(this.#taskId, responses, signal)),
				sent: async (keys) => {
					this.#pollIn(SOON_MS);
					await own.answersSent(keys);
				},
				onUnanswerable: (message) => this.#giveUp('INPUT_UNAVAILABLE', message),
				onRefused: (keys, error) => this.#answersRefused(keys, error),
				onTrouble: (error) => this.#tell(error),
			},
			own.answers,
		);
		this.#attendance = new Attendance({
			attend: async (signal) => deps.connection.wire().attend(this.#taskId, signal),
			onTask: (task) => hasEnded(task) && this.#see(task),
			onTrouble: (error) => {
				this.#tell(error);
				this.#pollIn(this.#nextPollMs());
			},
		});
		if (own.created) this.#update(own.created);
	}

	/** Where the task stands; undefined until the server has said anything. A new object for each change. */
	get state(): TaskState | undefined {
		return this.#state;
	}

	/** How the task ended; undefined while it lives. */
	get outcome(): TaskOutcome | undefined {
		return this.#outcome;
	}

	/** Begins to poll: a new task within half a second. */
	start(): void {
		this.#pollIn(this.#task && hasEnded(this.#task) ? 0 : firstPollMs(this.#deps.random));
		this.#timers.add(
			this.#deps.clock.after(LISTEN_AFTER_MS, () => {
				if (!this.#isOver) this.#deps.listener?.want(this.#taskId);
			}),
		);
	}

	/** Stops observing; the task lives on. Open questions are withdrawn. */
	stop(): void {
		this.#stop.abort();
		this.#release();
	}

	/** Calls `listener` for each change of the state, and at the end, until the returned function is called. */
	onChange(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	}

	/**
	 * Asks the server to end the task (T40); resolves when it has been told. Goes on trying through an outage.
	 *
	 * @throws RequestProblem when the server refuses.
	 */
	cancel(): Promise<void> {
		if (this.#isOver) return Promise.resolve();
		this.#cancelling ??= this.#sendCancel().catch((error: unknown) => {
			this.#cancelling = undefined;
			throw error;
		});
		return this.#cancelling;
	}

	/** Puts a question of the task to the host that came as a request; undefined when nobody waits for the task. */
	answer(key: string, request: InputRequest): Promise<InputResponse> | undefined {
		return this.#isOver ? undefined : answerOrSubstitute(this.#own.ask, key, request, this.#stop.signal);
	}

	/** Asks the host again what it put off. */
	askAgain(): void {
		if (!this.#isOver && !this.#cancelling) this.#desk.askAgain();
	}

	/** Takes a notification about this task (T52). */
	notified(params: JsonObject): void {
		if (this.#isOver) return;
		try {
			const task = this.#deps.connection.wire().notified(params, this.#taskId);
			if (!task) return this.#pollIn(0);
			this.#see(task);
		} catch (error) {
			// The next poll says whether the task or only the notification is broken.
			this.#tell(error);
			return;
		}
		this.#pollIn(this.#nextPollMs());
	}

	/** The stream of notifications came or went. */
	listenChanged(): void {
		if (!this.#isOver && !this.#polling) this.#pollIn(this.#nextPollMs());
	}

	get #taskId(): string {
		return this.pointer.taskId;
	}

	get #isOver(): boolean {
		return this.#concluding || this.#stop.signal.aborted;
	}

	get #ageMs(): number {
		return this.#deps.clock.nowMs() - this.pointer.firstSeenAtMs;
	}

	#pollIn(delayMs: number): void {
		if (this.#isOver) return;
		this.#cancelPoll?.();
		this.#cancelPoll = this.#deps.clock.after(delayMs, () => void this.#poll());
	}

	async #poll(): Promise<void> {
		if (this.#isOver) return;
		if (this.#polling) {
			this.#pollAgain = true;
			return;
		}
		this.#polling = true;
		this.#pollAgain = false;
		let nextMs: number | undefined;
		try {
			const task = await this.#attempt((wire, signal) => wire.get(this.#taskId, signal));
			if (task.status !== this.#task?.status) this.#deps.listener?.missed(this.#taskId);
			this.#see(task);
		} catch (error) {
			nextMs = this.#pollFailed(problemOf(error));
		} finally {
			this.#polling = false;
		}
		this.#pollIn(nextMs ?? (this.#pollAgain ? SOON_MS : this.#nextPollMs()));
	}

	#nextPollMs(): number {
		const { listener, listenBackstopMs, random } = this.#deps;
		const intervalMs = nextPollMs(this.#task?.pollIntervalMs, this.#ageMs, random);
		if (listener?.isLive(this.#taskId)) return Math.max(intervalMs, listenBackstopMs);
		const isAsked = this.#attendance.isOpen && this.#task?.status === 'input_required';
		return this.#desk.isAsking || isAsked ? Math.max(intervalMs, DIALOG_POLL_MS) : intervalMs;
	}

	/** Decides what a failed poll means, and when to ask again; undefined is in the usual time. */
	#pollFailed(problem: RequestProblem): number | undefined {
		if (this.#isOver) return undefined;
		this.#tell(problem);
		switch (problem.kind) {
			case 'outage':
				this.#unreachable();
				// The gate knows when.
				return 0;
			case 'trouble':
				this.#troubles += 1;
				return Math.max(
					this.#nextPollMs(),
					backoffMs(this.#troubles, problem.retryAfterMs, this.#deps.random),
				);
			case 'forgotten':
				if (++this.#doubts < 2) return CONFIRM_MS;
				this.#giveUp(
					'TASK_NOT_FOUND',
					'The server does not know the task any more; the outcome is unknown. Check before calling it again.',
				);
				return undefined;
			case 'refused':
			case 'invalid':
				if (++this.#doubts < 2) return CONFIRM_MS;
				this.#giveUp('INVALID_RESPONSE', problem.message);
				return undefined;
		}
	}

	#unreachable(): void {
		this.#reachable = false;
		if (this.#task) this.#update(this.#task);
		if (this.#ttlMs === null || this.#cancelDeadline) return;
		const leftMs = this.#ttlMs - this.#ageMs;
		const expire = (): void =>
			this.#giveUp(
				'TASK_EXPIRED',
				'The server could not be reached until the lifetime of the task was over; the outcome is unknown. ' +
					'Check before calling it again.',
			);
		if (leftMs <= 0) expire();
		else this.#cancelDeadline = this.#deps.clock.after(leftMs, () => !this.#isOver && expire());
	}

	#see(task: DetailedTask): void {
		if (this.#isOver) return;
		this.#doubts = 0;
		this.#troubles = 0;
		this.#reachable = true;
		this.#ttlMs = task.ttlMs;
		this.#cancelDeadline?.();
		this.#cancelDeadline = undefined;
		// A poll and a notification may overtake each other.
		const isLate = this.#task && Date.parse(task.lastUpdatedAt) < Date.parse(this.#task.lastUpdatedAt);
		if (isLate && !hasEnded(task)) return this.#task && this.#update(this.#task);
		this.#update(task);
		const outcome = outcomeOf(task);
		if (outcome) return void this.#conclude(outcome);
		const requests = task.inputRequests ?? {};
		const refused = this.#refusedKeys.find((key) => Object.hasOwn(requests, key));
		this.#refusedKeys = [];
		if (refused !== undefined)
			return this.#giveUp('INVALID_RESPONSE', `The server refused the answer to "${refused}"`);
		if (this.#cancelling) return;
		this.#desk.show(requests);
		if (task.status === 'input_required') this.#attendance.begin(this.#stop.signal);
	}

	#update(task: Task): void {
		this.#task = task;
		const state = toState(task, this.#reachable);
		if (this.#state && sameState(this.#state, state)) return;
		this.#state = state;
		this.#changed();
	}

	#changed(): void {
		for (const listener of [...this.#listeners]) listener();
	}

	#answersRefused(keys: readonly string[], error: unknown): void {
		this.#tell(error);
		this.#refusedKeys = keys;
		this.#pollIn(CONFIRM_MS);
	}

	async #sendCancel(): Promise<void> {
		this.#desk.close();
		try {
			await this.#repeat((wire, signal) => wire.cancel(this.#taskId, signal));
		} catch (error) {
			if (this.#isOver) return;
			const problem = problemOf(error);
			// Polling finds out whether it is really gone.
			if (problem.kind !== 'forgotten') throw problem;
			this.#pollIn(0);
			return;
		}
		if (this.#isOver) return;
		this.#pollIn(SOON_MS);
		this.#timers.add(
			this.#deps.clock.after(CANCEL_GRACE_MS, () => {
				const message = 'The server was told to cancel the task, and has not said more';
				void this.#conclude({ kind: 'cancelled', confirmed: false, message });
			}),
		);
	}

	#giveUp(code: LostCode, message: string): void {
		if (this.#isOver) return;
		// Whoever cannot answer must not leave the server waiting for ever.
		if (code === 'INPUT_UNAVAILABLE')
			this.#attempt((wire, signal) => wire.cancel(this.#taskId, signal), new AbortController().signal).catch(
				(error: unknown) => this.#tell(error),
			);
		void this.#conclude({ kind: 'lost', code, message });
	}

	async #conclude(outcome: TaskOutcome): Promise<void> {
		if (this.#isOver) return;
		this.#concluding = true;
		this.#release();
		await this.#own.keepOutcome(outcome).catch((error: unknown) => this.#tell(error));
		this.#outcome = outcome;
		this.#stop.abort();
		this.#resolve(outcome);
		this.#changed();
	}

	#release(): void {
		this.#cancelPoll?.();
		this.#cancelDeadline?.();
		for (const cancel of this.#timers) cancel();
		this.#desk.close();
		this.#deps.listener?.drop(this.#taskId);
	}

	#attempt<T>(
		work: (wire: TaskWire, signal: AbortSignal) => Promise<T>,
		signal: AbortSignal = this.#stop.signal,
	): Promise<T> {
		const { gate, connection } = this.#deps;
		return gate.run(async () => work(connection.wire(), signal), signal);
	}

	/** Repeats through outages and the server's own trouble, until the server has taken it or refuses. */
	async #repeat<T>(work: (wire: TaskWire, signal: AbortSignal) => Promise<T>): Promise<T> {
		const { clock, random } = this.#deps;
		for (let troubles = 1; ; troubles++) {
			try {
				return await this.#attempt(work);
			} catch (error) {
				const problem = problemOf(error);
				const passes = problem.kind === 'outage' || problem.kind === 'trouble';
				if (this.#isOver || !passes) throw problem;
				this.#tell(problem);
				if (problem.kind === 'trouble')
					await sleep(clock, backoffMs(troubles, problem.retryAfterMs, random), this.#stop.signal);
			}
		}
	}

	#tell(error: unknown): void {
		this.#deps.onProblem(error, this.#taskId);
	}
}
