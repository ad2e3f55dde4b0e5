import { randomUUID } from 'node:crypto';
import { isOwnerGone, processOwner } from '../process-owner.ts';
import type { InputResponse } from '../protocol/task.ts';
import { AskedElsewhere } from './answer-later.ts';
import type { Clock } from './clock.ts';
import type { Journal, TaskKey } from './journal/journal.ts';

/** What {@link Questions} needs. */
export interface QuestionsDeps {
	readonly journal: Journal;
	readonly clock: Clock;
	/** Something went wrong that does not keep the question from being asked. */
	readonly onProblem: (error: unknown, taskId: string) => void;
}

/** How long a question is claimed; another host asks it then, unless the claim is renewed. */
const CLAIM_MS = 60_000;
const RENEW_MS = 20_000;

/**
 * Of several hosts on one journal, one asks a question at a time: it claims it there while its dialog is open, and
 * for a while after the answer, which it still has to send. Where a host is known to be dead its claims count no
 * more; otherwise they lapse.
 */
export class Questions {
	readonly #deps: QuestionsDeps;
	/** Of this client, not of its process: two clients of one process would ask twice as well. */
	readonly #owner = `${randomUUID().slice(0, 8)}@${processOwner()}`;
	/** Answers that another host kept and did not live to send. */
	readonly #inherited = new Set<InputResponse>();

	constructor(deps: QuestionsDeps) {
		this.#deps = deps;
	}

	/**
	 * Asks, unless another host does.
	 *
	 * @param signal - fires when nobody wants the answer any more.
	 * @throws AskedElsewhere; what `ask` throws.
	 */
	async ask(
		key: TaskKey,
		inputKey: string,
		signal: AbortSignal,
		ask: () => Promise<InputResponse>,
	): Promise<InputResponse> {
		const kept = await this.#begin(key, inputKey);
		if (kept) return kept;
		let stopRenewing = (): void => {};
		const renewLater = (): void => {
			stopRenewing = this.#deps.clock.after(RENEW_MS, () => {
				void this.#guard(key, this.#claim(key, inputKey, null));
				renewLater();
			});
		};
		renewLater();
		const letGo = async (): Promise<void> => {
			stopRenewing();
			await this.#guard(key, this.#deps.journal.release(key, inputKey, this.#owner));
		};
		// At once: a handler need not care for its signal.
		const withdraw = (): void => void letGo();
		signal.addEventListener('abort', withdraw, { once: true });
		try {
			return await ask();
		} catch (error) {
			await letGo();
			throw error;
		} finally {
			stopRenewing();
			signal.removeEventListener('abort', withdraw);
		}
	}

	/** Keeps an answer before it is sent; false when there is another. */
	async keep(key: TaskKey, inputKey: string, response: InputResponse): Promise<boolean> {
		if (this.#inherited.delete(response)) return true;
		return this.#deps.journal.answer(key, inputKey, response);
	}

	/** Claims the question; resolves with the answer that a host before this one left behind. */
	async #begin(key: TaskKey, inputKey: string): Promise<InputResponse | undefined> {
		const holder = await this.#guard(key, this.#claim(key, inputKey, null));
		if (holder !== undefined && holder !== this.#owner) {
			const isGone = isOwnerGone(holder);
			const heir = isGone ? await this.#guard(key, this.#claim(key, inputKey, holder)) : holder;
			if (heir !== this.#owner) throw new AskedElsewhere();
		}
		const answers = (await this.#guard(key, this.#deps.journal.find(key)))?.answers ?? {};
		if (!Object.hasOwn(answers, inputKey)) return undefined;
		const response = answers[inputKey]?.response;
		if (!response) throw new AskedElsewhere();
		this.#inherited.add(response);
		return response;
	}

	#claim(key: TaskKey, inputKey: string, gone: string | null): Promise<string> {
		const { journal, clock } = this.#deps;
		const nowMs = clock.nowMs();
		return journal.claim(key, inputKey, { owner: this.#owner, nowMs, untilMs: nowMs + CLAIM_MS, gone });
	}

	/** A journal that does not work must not keep a person from answering. */
	async #guard<T>(key: TaskKey, work: Promise<T>): Promise<T | undefined> {
		try {
			return await work;
		} catch (error) {
			this.#deps.onProblem(error, key.taskId);
			return undefined;
		}
	}
}
