import type { JsonOf, JsonObject, JsonValue } from '../protocol/json.ts';
import type { InputRequest, InputResponse } from '../protocol/task.ts';
import type { ProgressNote } from './progress.ts';

/** A question in form mode: the client shows a form made from a flat JSON Schema. */
export interface FormQuestion {
	readonly mode: 'form';
	/** What the person reads. */
	readonly message: string;
	/** A flat JSON Schema object, as `elicitation/create` takes it. */
	readonly requestedSchema: JsonObject;
}

/** A question in URL mode: the client sends the person to a page; the content of the answer is not seen. */
export interface UrlQuestion {
	readonly mode: 'url';
	readonly message: string;
	readonly url: string;
}

/** The answer to a form or URL question. */
export interface ElicitAnswer {
	/** `accept`: answered. `decline`: said no. `cancel`: closed without choosing. */
	readonly action: 'accept' | 'decline' | 'cancel';
	/** The form's values; only with `accept` in form mode. */
	readonly content?: JsonObject;
}

/**
 * Why a handler is to stop: the task was cancelled; or this process lets go of it, because the handler only
 * waits (`parked`), another worker took the task over (`lease_lost`), or the process ends (`shutdown`).
 */
export type StopReason = 'parked' | 'cancelled' | 'lease_lost' | 'shutdown';

/** What a tool handler gets beside its arguments. */
export interface TaskContext {
	readonly taskId: string;
	/** How often the handler was entered for this task; 1 the first time. */
	readonly attempt: number;
	/**
	 * Whether the call has become a task that its client may know; until then its result is the answer of the call
	 * itself.
	 */
	readonly isKept: boolean;
	/**
	 * Says that the call takes long, so that a client which declares Tasks is given its task now and need not wait
	 * for the tool's `syncWindowMs`.
	 */
	becomeTask(): void;
	/** Who the task belongs to. */
	readonly principal: string;
	/** What the tool's `prepare` returned; null when it has none. */
	readonly prepared: JsonValue;
	/**
	 * Fires when the task is cancelled, its lease is lost, it is parked or the process shuts down. Pass it to
	 * whatever waits; a handler that does not stop within the tool's `cancelGraceMs` is abandoned.
	 */
	readonly signal: AbortSignal;
	/** Why {@link signal} fired; undefined until then. Only `cancelled` says that the work is not wanted any more. */
	readonly stopReason: StopReason | undefined;
	/**
	 * Runs `work` once in the task's life. Its result, which must be JSON, is recorded durably before this
	 * resolves; when the handler is entered again after a crash, the recorded result is returned and `work` is
	 * not called. A crash between the end of `work` and the record runs `work` again, so make it idempotent
	 * where that matters. A `work` that throws records nothing.
	 *
	 * @param name - unique within the task, the same on every entry of the handler.
	 * @throws STEP_NOT_SERIALIZABLE, LEASE_LOST
	 */
	step<T extends JsonOf<T> | void>(name: string, work: () => T | Promise<T>): Promise<T>;
	/**
	 * Asks the client and waits for the answer, which is recorded: after a crash it is returned at once. While
	 * it waits the task is `input_required`; after `parkAfterMs` the handler is dropped from memory, and entered
	 * again from its start when the answer is there. The task fails when no answer comes within `inputWaitMs`.
	 *
	 * @param key - unique within the task, the same on every entry of the handler.
	 * @throws INPUT_UNAVAILABLE when the client declared no way to answer; INPUT_KEY_REUSED
	 */
	requireInput(key: string, question: FormQuestion | UrlQuestion): Promise<ElicitAnswer>;
	requireInput(key: string, request: InputRequest): Promise<InputResponse>;
	/**
	 * Says how far the work is. The last note is always in the task's `statusMessage`; notes in quick
	 * succession are stored at most every `progressMs`. Never waits for the store, never throws.
	 */
	progress(note: ProgressNote): void;
	/**
	 * Waits, for days if need be: the end is recorded, so a restart does not begin anew, and a long wait holds
	 * neither worker nor memory.
	 *
	 * @param name - unique within the task, the same on every entry of the handler.
	 */
	sleep(name: string, durationMs: number): Promise<void>;
}

/** The request that a question stands for. */
export function asInputRequest(question: FormQuestion | UrlQuestion | InputRequest): InputRequest {
	return 'method' in question ? question : { method: 'elicitation/create', params: { ...question } };
}

/** The words that a person reads while the task waits. */
export function questionText(request: InputRequest): string {
	const message = request.params?.['message'];
	if (typeof message === 'string') return `Waiting for an answer: ${message}`;
	return request.method === 'roots/list'
		? 'Waiting for the list of roots'
		: 'Waiting for the client to sample';
}

/** What kind of input a request asks for, in words for an error. */
export function inputName(request: InputRequest): string {
	const mode = request.params?.['mode'];
	return typeof mode === 'string' ? `${request.method} in ${mode} mode` : request.method;
}
