import type { TaskProgress } from '../backend/record.ts';
import { HoldfastError, messageOf } from '../errors.ts';
import { canAsk } from '../protocol/capabilities.ts';
import type { JsonOf, JsonValue } from '../protocol/json.ts';
import type { InputRequest, InputResponse } from '../protocol/task.ts';
import type { Clock } from './clock.ts';
import { workedMs } from './deadlines.ts';
import type { LiveTask } from './live-task.ts';
import { nextProgress, type ProgressNote, progressText } from './progress.ts';
import {
	asInputRequest,
	inputName,
	type ElicitAnswer,
	type FormQuestion,
	questionText,
	type StopReason,
	type TaskContext,
	type UrlQuestion,
} from './task-context.ts';

/** Step names of holdfast's own entries in the journal; a handler's names cannot clash with them. */
const SLEEP_PREFIX = 'holdfast/sleep:';

/** How long a task counts as young, in milliseconds. */
const YOUNG_MS = 10_000;

/** One entry of a handler: its context, what it waits for, and how it is left. */
export class Run implements TaskContext {
	readonly #task: LiveTask;
	readonly #clock: Clock;
	readonly #progressMs: number;
	readonly #controller = new AbortController();
	readonly #exit = Promise.withResolvers<StopReason>();
	readonly #progressListeners = new Set<() => void>();
	readonly #longListeners = new Set<() => void>();
	#isLong = false;
	#left = false;
	#stopReason: StopReason | undefined;
	#activeSteps = 0;
	readonly #steps = new Map<string, Promise<unknown>>();
	readonly #asked = new Map<string, string>();
	/** What is waited for: how to look again, and when at the latest. */
	readonly #waits = new Map<() => void, number | null>();
	#endedWaits = 0;
	/** Resolves when an attempt to park is decided; undefined when none is under way. */
	#parking: Promise<void> | undefined;
	#cancelPark: (() => void) | undefined;
	#cancelFlush: (() => void) | undefined;
	#note: TaskProgress | null;
	#flushedAtMs = -Infinity;
	/** When the number of the last note last changed. */
	#advancedAtMs: number;

	constructor(task: LiveTask, clock: Clock, progressMs: number) {
		this.#task = task;
		this.#clock = clock;
		this.#progressMs = progressMs;
		this.#note = task.record.progress;
		this.#advancedAtMs = task.record.lastUpdatedAtMs;
	}

	get taskId(): string {
		return this.#task.taskId;
	}

	get attempt(): number {
		return this.#task.record.attempt;
	}

	get isKept(): boolean {
		return this.#task.kept;
	}

	/** Whether the handler has said that the call takes long. */
	get isLong(): boolean {
		return this.#isLong;
	}

	becomeTask(): void {
		if (this.#isLong) return;
		this.#isLong = true;
		for (const listener of this.#longListeners) listener();
	}

	/** Calls `listener` when the handler says that the call takes long. */
	onLong(listener: () => void): () => void {
		this.#longListeners.add(listener);
		return () => void this.#longListeners.delete(listener);
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

	get stopReason(): StopReason | undefined {
		return this.#stopReason;
	}

	/** Resolves when the run is left before its handler ends. */
	get exit(): Promise<StopReason> {
		return this.#exit.promise;
	}

	/** Calls `listener` after each progress note, stored or not. */
	onProgress(listener: () => void): () => void {
		this.#progressListeners.add(listener);
		return () => void this.#progressListeners.delete(listener);
	}

	/** The last progress note, stored or not. */
	get note(): TaskProgress | null {
		return this.#note;
	}

	step<T extends JsonOf<T> | void>(name: string, work: () => T | Promise<T>): Promise<T> {
		const running = this.#steps.get(name) ?? this.#step(name, work);
		this.#steps.set(name, running);
		void running.catch(() => {}).finally(() => this.#steps.delete(name));
		// It went through JSON, which leaves a T as it is.
		return running as Promise<T>;
	}

	requireInput(key: string, question: FormQuestion | UrlQuestion): Promise<ElicitAnswer>;
	requireInput(key: string, request: InputRequest): Promise<InputResponse>;
	async requireInput(
		key: string,
		question: FormQuestion | UrlQuestion | InputRequest,
	): Promise<ElicitAnswer | InputResponse> {
		const request = asInputRequest(question);
		if ((this.#asked.get(key) ?? JSON.stringify(request)) !== JSON.stringify(request)) throw keyReused(key);
		this.#asked.set(key, JSON.stringify(request));
		const answered = this.#answer(key);
		if (answered) return answered;
		await this.#mayGoOn();
		if (!canAsk(this.#task.record.inputCapabilities, request))
			throw new HoldfastError(
				'INPUT_UNAVAILABLE',
				`This tool has a question, but the client that called it cannot be asked (${inputName(request)}).`,
			);
		// A note that was said before the question must not be stored over it.
		await this.#flush();
		const statusMessage = questionText(request);
		const applied = await this.#task.apply({
			type: 'ask',
			token: this.#task.token,
			key,
			request,
			statusMessage,
		});
		if (applied.refusal === 'key_reused') throw keyReused(key);
		return this.#waitFor(null, () => this.#answer(key));
	}

	async sleep(name: string, durationMs: number): Promise<void> {
		if (!Number.isFinite(durationMs))
			throw new HoldfastError('INVALID_OPTION', `sleep("${name}") needs a finite number of milliseconds`);
		const entry = SLEEP_PREFIX + name;
		if (!this.#task.step(entry)) {
			await this.#mayGoOn();
			await this.#task.saveStep(entry, this.#clock.nowMs() + Math.max(0, durationMs));
		}
		const wakeAtMs = Number(this.#task.step(entry)?.value);
		await this.#waitFor(wakeAtMs, () => (this.#clock.nowMs() >= wakeAtMs ? true : undefined));
	}

	progress(note: ProgressNote): void {
		if (this.#left) return;
		const before = this.#note?.progress;
		this.#note = nextProgress(this.#note, note);
		if (this.#note.progress !== before) this.#advancedAtMs = this.#clock.nowMs();
		for (const listener of this.#progressListeners) listener();
		if (this.#cancelFlush) return;
		const waitMs = this.#flushedAtMs + this.#flushEveryMs() - this.#clock.nowMs();
		if (waitMs <= 0) void this.#flush();
		else this.#cancelFlush = this.#clock.after(waitMs, () => void this.#flush());
	}

	/** What `statusMessage` will say once the last note is stored; undefined when it is. */
	get unstoredText(): string | undefined {
		const note = this.#note;
		return note === null || this.#left || note === this.#task.record.progress ? undefined : this.#text(note);
	}

	/** Leaves the handler behind: its signal fires, its waits never end, nothing it does is recorded any more. */
	leave(exit: StopReason): void {
		if (this.#left) return;
		this.finish();
		this.#exit.resolve(exit);
		this.#stopReason ??= exit;
		this.#controller.abort(new DOMException(`The task was left: ${exit}`, 'AbortError'));
	}

	/** Parks at once, if the handler only waits. */
	parkNow(): Promise<void> {
		return this.#park(true);
	}

	/** Fires the signal of a task that is to be cancelled, and lets the handler end by itself. */
	cancel(): void {
		this.#stopReason ??= 'cancelled';
		this.#controller.abort(new DOMException('The task was cancelled', 'AbortError'));
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
			let over = false;
			let cancelTimer = (): void => {};
			const end = (): void => {
				over = true;
				cancelTimer();
				stopListening();
				this.signal.removeEventListener('abort', onAbort);
				this.#waits.delete(check);
				this.#endedWaits += 1;
				this.#considerParking();
			};
			const check = (): void => {
				// While the worker lets go, nothing wakes the handler; it is looked again if that fails.
				if (over || this.#parking) return;
				const found = look();
				if (found !== undefined) {
					end();
					resolve(found);
				} else if (wakeAtMs !== null) {
					cancelTimer();
					cancelTimer = this.#clock.after(wakeAtMs - this.#clock.nowMs(), check);
				}
			};
			const onAbort = (): void => {
				if (over) return;
				end();
				if (!this.#left) reject(this.signal.reason);
			};
			const stopListening = this.#task.onChange(check);
			this.#waits.set(check, wakeAtMs);
			this.signal.addEventListener('abort', onAbort);
			this.#considerParking();
			if (this.signal.aborted) onAbort();
			else check();
		});
	}

	async #step(name: string, work: () => unknown): Promise<JsonValue> {
		const done = this.#task.step(name);
		if (done) return done.value;
		await this.#mayGoOn();
		this.#activeSteps += 1;
		this.#stopParking();
		try {
			const value = await this.#task.saveStep(name, toJson(name, await work()));
			if (this.#task.record.crashes > 0) await this.#task.apply({ type: 'steady', token: this.#task.token });
			return value;
		} finally {
			this.#activeSteps -= 1;
			this.#considerParking();
		}
	}

	/** Before anything with an effect: a handler that is being dropped, or was, gets no further. */
	async #mayGoOn(): Promise<void> {
		await this.#parking;
		if (this.#left) await new Promise<never>(() => {});
		this.signal.throwIfAborted();
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

	async #park(isHurried = false): Promise<void> {
		if (this.#parking || this.#task.record.policy.resume === 'never') return;
		this.#cancelPark = undefined;
		const endedWaits = this.#endedWaits;
		const waitsOnly = (): boolean =>
			this.#waits.size > 0 &&
			this.#activeSteps === 0 &&
			this.#endedWaits === endedWaits &&
			!this.signal.aborted;
		// A wait that is about to end is not worth a new entry of the handler.
		const wakeAtMs = this.#nextWakeMs();
		const isWorthIt =
			isHurried ||
			wakeAtMs === null ||
			wakeAtMs - this.#clock.nowMs() >= this.#task.record.policy.parkAfterMs;
		if (!waitsOnly() || !isWorthIt) return this.#considerParking();
		const parking = Promise.withResolvers<void>();
		try {
			await this.#flush();
			if (!this.#task.stored) await this.#task.store();
			const applied = await this.#task.apply(() => {
				if (!waitsOnly() || this.#left) return undefined;
				this.#parking = parking.promise;
				const openInputs = Object.keys(this.#task.record.openInputs).length;
				return { type: 'park', token: this.#task.token, runAtMs: this.#nextWakeMs(), openInputs };
			});
			if (this.#parking && applied.refusal !== 'unchanged') this.leave('parked');
		} catch {
			// The store is in trouble; the handler stays in memory and is parked later.
		} finally {
			this.#parking = undefined;
			parking.resolve();
			if (!this.#left) {
				for (const check of this.#waits.keys()) check();
				this.#considerParking();
			}
		}
	}

	/** The earliest end of the sleeps that are waited for; null when only answers are. */
	#nextWakeMs(): number | null {
		const wakes = [...this.#waits.values()].filter((wakeAtMs) => wakeAtMs !== null);
		return wakes.length === 0 ? null : Math.min(...wakes);
	}

	/** Seldom once the first seconds are over: whoever asks this process is told the last note anyway. */
	#flushEveryMs(): number {
		const isYoung = this.#clock.nowMs() - this.#task.record.createdAtMs < YOUNG_MS;
		return isYoung ? this.#progressMs : this.#progressMs * 10;
	}

	#text(note: TaskProgress): string {
		const { record } = this.#task;
		const elapsedMs = workedMs(record, this.#clock.nowMs());
		return progressText(note, elapsedMs, this.#clock.nowMs() - this.#advancedAtMs, record.policy.estimateMs);
	}

	async #flush(): Promise<void> {
		this.#cancelFlush?.();
		this.#cancelFlush = undefined;
		const progress = this.#note;
		if (progress === null || progress === this.#task.record.progress) return;
		this.#flushedAtMs = this.#clock.nowMs();
		const statusMessage = this.#text(progress);
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

function keyReused(key: string): HoldfastError {
	return new HoldfastError('INPUT_KEY_REUSED', `The input key "${key}" already belongs to another question`);
}
