import { HoldfastError, messageOf } from '../errors.ts';
import { canAsk } from '../protocol/capabilities.ts';
import type { JsonValue } from '../protocol/json.ts';
import type { InputRequest, InputResponse } from '../protocol/task.ts';
import type { Clock } from './clock.ts';
import type { LiveTask } from './live-task.ts';
import { nextProgress, type ProgressNote, progressText } from './progress.ts';
import {
	asInputRequest,
	inputName,
	type ElicitAnswer,
	type FormQuestion,
	questionText,
	type TaskContext,
	type UrlQuestion,
} from './task-context.ts';

/** How a run left its handler other than by the handler's own end. */
export type RunExit = 'parked' | 'cancelled' | 'lease_lost' | 'shutdown';

/** Step names of holdfast's own entries in the journal; a handler's names cannot clash with them. */
const SLEEP_PREFIX = 'holdfast/sleep:';

/** One entry of a handler: its context, what it waits for, and how it is left. */
export class Run implements TaskContext {
	readonly #task: LiveTask;
	readonly #clock: Clock;
	readonly #progressMs: number;
	readonly #controller = new AbortController();
	readonly #exit = Promise.withResolvers<RunExit>();
	readonly #progressListeners = new Set<() => void>();
	#left = false;
	#activeSteps = 0;
	readonly #waits = new Map<object, number | null>();
	#cancelPark: (() => void) | undefined;
	#cancelFlush: (() => void) | undefined;
	#note: ReturnType<typeof nextProgress> | null;
	#flushedAtMs = -Infinity;

	constructor(task: LiveTask, clock: Clock, progressMs: number) {
		this.#task = task;
		this.#clock = clock;
		this.#progressMs = progressMs;
		this.#note = task.record.progress;
	}

	get taskId(): string {
		return this.#task.taskId;
	}

	get attempt(): number {
		return this.#task.record.attempt;
	}

	get principal(): string {
		return this.#task.record.principal;
	}

	get prepared(): JsonValue {
		return this.#task.details.prepared;
	}

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	/** Resolves when the run is left before its handler ends. */
	get exit(): Promise<RunExit> {
		return this.#exit.promise;
	}

	/** Calls `listener` after each progress note, stored or not. */
	onProgress(listener: () => void): () => void {
		this.#progressListeners.add(listener);
		return () => void this.#progressListeners.delete(listener);
	}

	/** The last progress note, stored or not. */
	get note(): ReturnType<typeof nextProgress> | null {
		return this.#note;
	}

	async step<T extends JsonValue | void>(name: string, work: () => T | Promise<T>): Promise<T> {
		const done = this.#task.step(name);
		if (done) return done.value as T;
		this.signal.throwIfAborted();
		this.#activeSteps += 1;
		this.#stopParking();
		try {
			const value = toJson(name, await work());
			await this.#task.saveStep(name, value);
			if (this.#task.record.crashes > 0) await this.#task.apply({ type: 'steady', token: this.#task.token });
			return value as T;
		} finally {
			this.#activeSteps -= 1;
			this.#considerParking();
		}
	}

	requireInput(key: string, question: FormQuestion | UrlQuestion): Promise<ElicitAnswer>;
	requireInput(key: string, request: InputRequest): Promise<InputResponse>;
	async requireInput(
		key: string,
		question: FormQuestion | UrlQuestion | InputRequest,
	): Promise<ElicitAnswer | InputResponse> {
		const answered = this.#answer(key);
		if (answered) return answered;
		this.signal.throwIfAborted();
		const request = asInputRequest(question);
		if (!canAsk(this.#task.record.inputCapabilities, request))
			throw new HoldfastError(
				'INPUT_UNAVAILABLE',
				`This tool has a question, but the client that called it cannot be asked (${inputName(request)}).`,
			);
		const statusMessage = questionText(request);
		const applied = await this.#task.apply({
			type: 'ask',
			token: this.#task.token,
			key,
			request,
			statusMessage,
		});
		if (applied.refusal === 'key_reused')
			throw new HoldfastError(
				'INPUT_KEY_REUSED',
				`The input key "${key}" already belongs to another question`,
			);
		return this.#waitFor(null, () => this.#answer(key));
	}

	async sleep(name: string, durationMs: number): Promise<void> {
		const entry = SLEEP_PREFIX + name;
		if (!this.#task.step(entry)) {
			this.signal.throwIfAborted();
			await this.#task.saveStep(entry, this.#clock.nowMs() + Math.max(0, durationMs));
		}
		const wakeAtMs = Number(this.#task.step(entry)?.value);
		await this.#waitFor(wakeAtMs, () => (this.#clock.nowMs() >= wakeAtMs ? true : undefined));
	}

	progress(note: ProgressNote): void {
		if (this.#left) return;
		this.#note = nextProgress(this.#note, note);
		for (const listener of this.#progressListeners) listener();
		if (this.#cancelFlush) return;
		const waitMs = this.#flushedAtMs + this.#progressMs - this.#clock.nowMs();
		if (waitMs <= 0) void this.#flush();
		else this.#cancelFlush = this.#clock.after(waitMs, () => void this.#flush());
	}

	/** Leaves the handler behind: its signal fires, its waits never end, nothing it does is recorded any more. */
	leave(exit: RunExit): void {
		if (this.#left) return;
		this.finish();
		this.#exit.resolve(exit);
		this.#controller.abort(new DOMException(`The task was left: ${exit}`, 'AbortError'));
	}

	/** Fires the signal and lets the handler end by itself. */
	abort(reason: string): void {
		this.#controller.abort(new DOMException(reason, 'AbortError'));
	}

	/** Ends the run after its handler ended: nothing it does is recorded any more. */
	finish(): void {
		this.#left = true;
		this.#stopParking();
		this.#cancelFlush?.();
		this.#cancelFlush = undefined;
	}

	/**
	 * Waits until `look` finds something; looks again on each change of the record and at `wakeAtMs`. Rejects
	 * when the signal fires, except when the run was left: then it never settles, so that no `catch` or
	 * `finally` of a dropped handler runs.
	 */
	#waitFor<T>(wakeAtMs: number | null, look: () => T | undefined): Promise<T> {
		return new Promise<T>((resolve, reject) => {
			const waiting = {};
			let cancelTimer = (): void => {};
			const done = (): void => {
				cancelTimer();
				stopListening();
				this.signal.removeEventListener('abort', onAbort);
				this.#waits.delete(waiting);
				this.#considerParking();
			};
			const check = (): void => {
				const found = look();
				if (found === undefined) {
					if (wakeAtMs !== null) {
						cancelTimer();
						cancelTimer = this.#clock.after(wakeAtMs - this.#clock.nowMs(), check);
					}
					return;
				}
				done();
				resolve(found);
			};
			const onAbort = (): void => {
				done();
				if (!this.#left) reject(this.signal.reason as Error);
			};
			const stopListening = this.#task.onChange(check);
			this.#waits.set(waiting, wakeAtMs);
			this.signal.addEventListener('abort', onAbort);
			this.#considerParking();
			if (this.signal.aborted) onAbort();
			else check();
		});
	}

	#answer(key: string): InputResponse | undefined {
		const responses = this.#task.record.inputResponses;
		return Object.hasOwn(responses, key) ? responses[key] : undefined;
	}

	/** A handler that only waits is parked after the grace time, where entering it again is allowed. */
	#considerParking(): void {
		const { resume, parkAfterMs } = this.#task.record.policy;
		const mayPark =
			this.#waits.size > 0 && this.#activeSteps === 0 && resume !== 'never' && !this.signal.aborted;
		if (!mayPark) this.#stopParking();
		else this.#cancelPark ??= this.#clock.after(parkAfterMs, () => void this.#park());
	}

	#stopParking(): void {
		this.#cancelPark?.();
		this.#cancelPark = undefined;
	}

	async #park(): Promise<void> {
		this.#cancelPark = undefined;
		if (this.#waits.size === 0 || this.#activeSteps > 0 || this.signal.aborted) return;
		const wakes = [...this.#waits.values()].filter((wakeAtMs) => wakeAtMs !== null);
		const runAtMs = wakes.length === 0 ? null : Math.min(...wakes);
		// A wait that is about to end is not worth a new entry of the handler.
		if (runAtMs !== null && runAtMs - this.#clock.nowMs() < this.#task.record.policy.parkAfterMs)
			return this.#considerParking();
		if (runAtMs === null && this.#task.record.status !== 'input_required') return;
		await this.#flush();
		if (!this.#task.stored) await this.#task.store();
		const applied = await this.#task.apply({ type: 'park', token: this.#task.token, runAtMs });
		if (applied.refusal === undefined || applied.refusal === 'lease_lost') this.leave('parked');
	}

	async #flush(): Promise<void> {
		this.#cancelFlush?.();
		this.#cancelFlush = undefined;
		const progress = this.#note;
		if (progress === null || progress === this.#task.record.progress) return;
		const { createdAtMs, policy } = this.#task.record;
		this.#flushedAtMs = this.#clock.nowMs();
		const statusMessage = progressText(progress, this.#clock.nowMs() - createdAtMs, policy.estimateMs);
		await this.#task
			.apply({ type: 'progress', token: this.#task.token, progress, statusMessage })
			.catch(() => {});
	}
}

function toJson(name: string, value: unknown): JsonValue {
	let text: string | undefined;
	try {
		text = JSON.stringify(value ?? null);
	} catch (error) {
		throw new HoldfastError('STEP_NOT_SERIALIZABLE', `Step "${name}" returned no JSON: ${messageOf(error)}`);
	}
	if (text === undefined)
		throw new HoldfastError('STEP_NOT_SERIALIZABLE', `Step "${name}" returned a ${typeof value}, not JSON`);
	return JSON.parse(text) as JsonValue;
}
