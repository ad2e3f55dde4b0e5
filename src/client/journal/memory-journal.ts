import type { InputResponse } from '../../protocol/task.ts';
import type { TaskOutcome } from '../outcome.ts';
import type { TaskPointer } from '../reference.ts';
import type { Journal, JournalEntry, QuestionClaim, TaskKey } from './journal.ts';

/** A journal that does not survive the process: tasks go on, but nobody comes back to them after a crash. */
export function memoryJournal(): Journal {
	return new MemoryJournal();
}

class MemoryJournal implements Journal {
	readonly #entries = new Map<string, JournalEntry>();
	/** By task and input key. */
	readonly #claims = new Map<string, Map<string, QuestionClaim>>();

	async add(entry: TaskPointer & { readonly argumentsDigest: string }): Promise<void> {
		const id = idOf(entry);
		if (this.#entries.has(id)) return;
		this.#entries.set(id, { ...entry, answers: {}, outcome: null, endedAtMs: null, delivered: false });
	}

	async find(key: TaskKey): Promise<JournalEntry | undefined> {
		return this.#entries.get(idOf(key));
	}

	async list(server: string): Promise<readonly JournalEntry[]> {
		return [...this.#entries.values()].filter((entry) => entry.server === server);
	}

	async answer(key: TaskKey, inputKey: string, response: InputResponse): Promise<boolean> {
		const answers = this.#entries.get(idOf(key))?.answers ?? {};
		if (Object.hasOwn(answers, inputKey)) return false;
		this.#patch(key, { answers: withAnswers(answers, [[inputKey, { response }]]) });
		return true;
	}

	async claim(key: TaskKey, inputKey: string, claim: QuestionClaim): Promise<string> {
		const id = idOf(key);
		const claims = this.#claims.get(id) ?? new Map<string, QuestionClaim>();
		const held = claims.get(inputKey);
		const stands = held && held.untilMs >= claim.nowMs && ![claim.owner, claim.gone].includes(held.owner);
		if (stands) return held.owner;
		if (this.#entries.has(id)) this.#claims.set(id, claims.set(inputKey, claim));
		return claim.owner;
	}

	async release(key: TaskKey, inputKey: string, owner: string): Promise<void> {
		const claims = this.#claims.get(idOf(key));
		if (claims?.get(inputKey)?.owner === owner) claims.delete(inputKey);
	}

	async sent(key: TaskKey, inputKeys: readonly string[]): Promise<void> {
		const answers = this.#entries.get(idOf(key))?.answers ?? {};
		const known = inputKeys.filter((inputKey) => Object.hasOwn(answers, inputKey));
		this.#patch(key, {
			answers: withAnswers(
				answers,
				known.map((inputKey) => [inputKey, { response: null }]),
			),
		});
	}

	async end(key: TaskKey, outcome: TaskOutcome, atMs: number): Promise<void> {
		if (this.#entries.get(idOf(key))?.outcome === null) this.#patch(key, { outcome, endedAtMs: atMs });
	}

	async deliver(key: TaskKey): Promise<boolean> {
		const entry = this.#entries.get(idOf(key));
		if (!entry || entry.outcome === null || entry.delivered) return false;
		this.#patch(key, { delivered: true });
		return true;
	}

	async remove(key: TaskKey): Promise<void> {
		this.#forget(idOf(key));
	}

	async expire(endedBeforeMs: number): Promise<void> {
		for (const [id, { endedAtMs }] of this.#entries)
			if (endedAtMs !== null && endedAtMs < endedBeforeMs) this.#forget(id);
	}

	async close(): Promise<void> {}

	#forget(id: string): void {
		this.#entries.delete(id);
		this.#claims.delete(id);
	}

	#patch(key: TaskKey, patch: Partial<JournalEntry>): void {
		const entry = this.#entries.get(idOf(key));
		if (entry) this.#entries.set(idOf(key), { ...entry, ...patch });
	}
}

function idOf({ server, taskId }: TaskKey): string {
	return JSON.stringify([server, taskId]);
}

/** Built from entries, because `__proto__` is a key that a server may choose. */
function withAnswers(
	answers: JournalEntry['answers'],
	added: readonly (readonly [string, { readonly response: InputResponse | null }])[],
): JournalEntry['answers'] {
	return Object.fromEntries([...Object.entries(answers), ...added]);
}
