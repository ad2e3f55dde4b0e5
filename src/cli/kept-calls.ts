import type { Journal, JournalEntry } from '../client/journal/journal.ts';
import { readReference, type TaskPointer, toReference } from '../client/reference.ts';
import { isHoldfastError } from '../errors.ts';
import { Failure, UsageError } from './failure.ts';
import type { ServerBook } from './server-book.ts';

/** A call of the journal, or one that only its reference is known of. */
export interface KeptCall {
	readonly pointer: TaskPointer;
	readonly reference: string;
	/** Undefined when the journal does not know it. */
	readonly entry: JournalEntry | undefined;
}

/** Every call of a journal that is open, or whose result was not handed over; oldest first. */
export async function keptCalls(journal: Journal, book: ServerBook): Promise<readonly KeptCall[]> {
	const entries = await Promise.all(book.names().map((name) => journal.list(name)));
	return entries
		.flat()
		.sort((a, b) => a.firstSeenAtMs - b.firstSeenAtMs)
		.map((entry) => ({ pointer: entry, reference: toReference(entry), entry }));
}

/**
 * The call that a word of the command line means: a reference, or the id of a task in the journal.
 *
 * @throws Failure when there is none.
 */
export async function findCall(word: string, journal: Journal, book: ServerBook): Promise<KeptCall> {
	try {
		const pointer = readReference(word);
		return { pointer, reference: word, entry: await journal.find(pointer) };
	} catch (error) {
		if (!isHoldfastError(error, 'INVALID_REFERENCE')) throw error;
		if (word.startsWith('holdfast-task:'))
			throw new UsageError('This is only a part of a reference, or was changed. Give it as it was printed.');
	}
	const found = (await keptCalls(journal, book)).filter(({ pointer }) => pointer.taskId === word);
	const [call] = found;
	if (!call)
		throw new Failure(
			`The journal has no call ${word}. \`holdfast calls\` shows those that it has; a reference works too.`,
		);
	if (found.length > 1)
		throw new UsageError(`Several servers have a task ${word}. Give the reference instead.`);
	return call;
}
