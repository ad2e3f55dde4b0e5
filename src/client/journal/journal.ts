import type { InputResponse } from '../../protocol/task.ts';
import type { TaskOutcome } from '../outcome.ts';
import type { TaskPointer } from '../reference.ts';

/** Which task, among those of several servers in one journal. */
export interface TaskKey {
	readonly server: string;
	readonly taskId: string;
}

/** An answer that was given to a question of a task. */
export interface JournalledAnswer {
	/** Null once the server has it: only the key is needed then. */
	readonly response: InputResponse | null;
}

/** A host's wish to be the one that asks a question. */
export interface QuestionClaim {
	readonly owner: string;
	readonly nowMs: number;
	/** When the claim lapses, in milliseconds since the epoch. */
	readonly untilMs: number;
	/** An owner that is known to be dead, and whose claim counts no more. */
	readonly gone: string | null;
}

/** What is kept about one task. */
export interface JournalEntry extends TaskPointer {
	/** SHA-256 of the canonical JSON of the arguments, in hex; empty when the arguments are not known here. */
	readonly argumentsDigest: string;
	/** Answers by input key: none of these questions is asked again (T34). */
	readonly answers: Readonly<Record<string, JournalledAnswer>>;
	/** How the task ended; null while it is open. */
	readonly outcome: TaskOutcome | null;
	/** When that was learned, in milliseconds since the epoch; null while it is open. */
	readonly endedAtMs: number | null;
	/** Whether the outcome was handed to the application. */
	readonly delivered: boolean;
}

/**
 * What a client remembers about its tasks, so that a crash of the host loses none (T72). Every method has taken
 * effect for good when it resolves. Several processes may use one journal: of two that answer the same
 * question or deliver the same outcome, one is told that the other was first.
 */
export interface Journal {
	/** Adds a task; does nothing when it is there already. */
	add(entry: TaskPointer & { readonly argumentsDigest: string }): Promise<void>;
	/** One task, or undefined. */
	find(key: TaskKey): Promise<JournalEntry | undefined>;
	/** The tasks of one server, oldest first. */
	list(server: string): Promise<readonly JournalEntry[]>;
	/** Keeps an answer before it is sent; false when the question was answered before. */
	answer(key: TaskKey, inputKey: string, response: InputResponse): Promise<boolean>;
	/**
	 * Claims a question, so that no other host asks it at the same time. Resolves with whose it is: `claim.owner`, unless
	 * another's claim stands.
	 */
	claim(key: TaskKey, inputKey: string, claim: QuestionClaim): Promise<string>;
	/** Gives a claim up; does nothing when it is another's. */
	release(key: TaskKey, inputKey: string, owner: string): Promise<void>;
	/** The server has these answers; what they say is forgotten. */
	sent(key: TaskKey, inputKeys: readonly string[]): Promise<void>;
	/** Keeps how a task ended. The first outcome stays. */
	end(key: TaskKey, outcome: TaskOutcome, atMs: number): Promise<void>;
	/** Takes the outcome for delivery; false when it was taken before, or there is none. */
	deliver(key: TaskKey): Promise<boolean>;
	/** Forgets a task. */
	remove(key: TaskKey): Promise<void>;
	/** Forgets every task that ended before this moment, in milliseconds since the epoch. */
	expire(endedBeforeMs: number): Promise<void>;
	/** Lets go of files. Calling it twice does nothing. */
	close(): Promise<void>;
}
