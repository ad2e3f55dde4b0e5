import { messageOf } from '../errors.ts';
import { isJsonObject } from '../protocol/json.ts';
import type { InputRequest, InputRequests, InputResponse, InputResponses } from '../protocol/task.ts';
import { AnswerLater, AskedElsewhere } from './answer-later.ts';
import type { JournalledAnswer } from './journal/journal.ts';
import { ProtocolError, SdkError, SdkErrorCode } from './sdk.ts';

/** What an input desk needs for one task. */
export interface InputDeskDeps {
	/** Puts one question to the host; `signal` fires when nobody wants the answer any more. */
	readonly ask: (key: string, request: InputRequest, signal: AbortSignal) => Promise<InputResponse>;
	/** Keeps an answer for good; false when the question was answered before. */
	readonly keep: (key: string, response: InputResponse) => Promise<boolean>;
	/** Sends answers until the server has them. */
	readonly send: (responses: InputResponses) => Promise<void>;
	/** The server has these answers. */
	readonly sent: (keys: readonly string[]) => Promise<void>;
	/** A question has no answer that this host could give. */
	readonly onUnanswerable: (message: string) => void;
	/** The server does not take answers. */
	readonly onRefused: (keys: readonly string[], error: unknown) => void;
	/** Something went wrong that changes nothing. */
	readonly onTrouble: (error: unknown) => void;
}

/**
 * The questions of one task. Each key is put to the host once, whatever polls, notifications, reconnects and
 * restarts bring (T34): an answer is kept before it is sent, and a question that was answered is not asked again.
 * Each answer is sent as soon as it is there, while other questions are still open (T30).
 */
export class InputDesk {
	readonly #deps: InputDeskDeps;
	readonly #dialogs = new Map<string, AbortController>();
	readonly #answered = new Set<string>();
	/** Questions that the host put off. */
	readonly #putOff = new Set<string>();
	/** All that were outstanding when the server last said so. */
	#outstanding: InputRequests = {};
	/** Answers that are kept, but which the server may not have. */
	readonly #unsent = new Map<string, InputResponse>();
	#sending = false;
	#closed = false;

	/** @param answers - what an earlier process kept. */
	constructor(deps: InputDeskDeps, answers: Readonly<Record<string, JournalledAnswer>>) {
		this.#deps = deps;
		for (const [key, { response }] of Object.entries(answers)) {
			this.#answered.add(key);
			if (response) this.#unsent.set(key, response);
		}
	}

	/** Whether a person or a model is thinking about an answer, or has put it off. */
	get isAsking(): boolean {
		return this.#dialogs.size + this.#putOff.size > 0;
	}

	/** Whether answers are on their way. */
	get isSending(): boolean {
		return this.#sending;
	}

	/** Takes all outstanding questions of the task: asks new ones, withdraws those that are outstanding no more. */
	show(requests: InputRequests): void {
		if (this.#closed) return;
		this.#outstanding = requests;
		for (const key of this.#putOff) if (!Object.hasOwn(requests, key)) this.#putOff.delete(key);
		for (const [key, dialog] of this.#dialogs) if (!Object.hasOwn(requests, key)) this.#withdraw(key, dialog);
		for (const [key, request] of Object.entries(requests))
			if (![this.#answered, this.#dialogs, this.#putOff].some((known) => known.has(key)))
				void this.#ask(key, request);
		if (Object.keys(requests).some((key) => this.#unsent.has(key))) void this.#flush();
	}

	/** Asks again what was put off. */
	askAgain(): void {
		this.#putOff.clear();
		this.show(this.#outstanding);
	}

	/** Withdraws every open question. */
	close(): void {
		this.#closed = true;
		for (const [key, dialog] of this.#dialogs) this.#withdraw(key, dialog);
	}

	#withdraw(key: string, dialog: AbortController): void {
		this.#dialogs.delete(key);
		dialog.abort(new SdkError(SdkErrorCode.RequestTimeout, 'The question is not open any more'));
	}

	async #ask(key: string, request: InputRequest): Promise<void> {
		const dialog = new AbortController();
		this.#dialogs.set(key, dialog);
		let response: InputResponse | undefined;
		try {
			response = await this.#deps.ask(key, request, dialog.signal);
		} catch (error) {
			if (dialog.signal.aborted) return;
			if (isForNow(error)) {
				this.#dialogs.delete(key);
				if (error instanceof AnswerLater) this.#putOff.add(key);
				return;
			}
			response = substituteFor(request, error);
			this.#deps.onTrouble(error);
			if (!response) {
				this.#dialogs.delete(key);
				this.#deps.onUnanswerable(`${request.method} could not be answered: ${messageOf(error)}`);
				return;
			}
		}
		if (dialog.signal.aborted) return;
		this.#answered.add(key);
		this.#dialogs.delete(key);
		try {
			if (!(await this.#deps.keep(key, response))) return;
		} catch (error) {
			// Sent all the same: the person has answered, and the journal's trouble is not the task's.
			this.#deps.onTrouble(error);
		}
		this.#unsent.set(key, response);
		await this.#flush();
	}

	async #flush(): Promise<void> {
		if (this.#sending || this.#closed) return;
		this.#sending = true;
		try {
			while (this.#unsent.size > 0 && !this.#closed) {
				const batch = Object.fromEntries(this.#unsent);
				const keys = Object.keys(batch);
				try {
					await this.#deps.send(batch);
				} catch (error) {
					if (!this.#closed) this.#deps.onRefused(keys, error);
					return;
				}
				for (const key of keys) this.#unsent.delete(key);
				await this.#deps.sent(keys).catch(this.#deps.onTrouble);
			}
		} finally {
			this.#sending = false;
		}
	}
}

/**
 * Whether a question stays open without an answer. Unless the host put it off, the next poll that gets through shows it
 * again.
 */
function isForNow(error: unknown): boolean {
	if (error instanceof AnswerLater || error instanceof AskedElsewhere) return true;
	return error instanceof SdkError && error.code === SdkErrorCode.NotConnected;
}

/**
 * What a host says that cannot answer: no roots, or that it declines a form which it cannot show, or that a
 * dialog broke. There is no such word for sampling.
 */
function substituteFor(request: InputRequest, error: unknown): InputResponse | undefined {
	const cannot = error instanceof SdkError || error instanceof ProtocolError;
	if (request.method === 'elicitation/create') return { action: cannot ? 'decline' : 'cancel' };
	return request.method === 'roots/list' && cannot ? { roots: [] } : undefined;
}

/**
 * Puts a question to the host that has to be answered by whatever the host can say.
 *
 * @throws what `ask` throws for a question that has no substitute.
 */
export async function answerOrSubstitute(
	ask: InputDeskDeps['ask'],
	key: string,
	request: InputRequest,
	signal: AbortSignal,
): Promise<InputResponse> {
	try {
		return await ask(key, request, signal);
	} catch (error) {
		const response = substituteFor(request, error);
		if (response) return response;
		throw error;
	}
}

/** An accepted form with the schema's defaults in the fields that the host left out. */
export function withDefaults(request: InputRequest, response: InputResponse): InputResponse {
	const schema = request.params?.['requestedSchema'];
	const fields = isJsonObject(schema) && isJsonObject(schema['properties']) ? schema['properties'] : {};
	if (response['action'] !== 'accept' || Object.keys(fields).length === 0) return response;
	const content = isJsonObject(response['content']) ? response['content'] : {};
	const missing = Object.entries(fields).flatMap(([name, field]) =>
		isJsonObject(field) && field['default'] !== undefined && !Object.hasOwn(content, name)
			? [[name, field['default']] as const]
			: [],
	);
	return missing.length === 0
		? response
		: { ...response, content: { ...Object.fromEntries(missing), ...content } };
}
