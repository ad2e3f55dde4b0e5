import { existsSync } from 'node:fs';
import { fileJournal } from '../client/journal/file-journal.ts';
import type { JsonObject } from '../protocol/json.ts';
import { EXIT_CODES } from './failure.ts';
import { type KeptCall, keptCalls } from './kept-calls.ts';
import { defaultJournal, ServerBook } from './server-book.ts';
import { describeTarget } from './server-target.ts';
import { isoTime, isoTimeOrNull, span } from './task-view.ts';
import { paintFor, safeJson, table, widthOf } from './terminal.ts';

/** Options of `holdfast calls`. */
export interface CallsOptions {
	readonly journal?: string;
	readonly json?: boolean;
}

/** Lists the calls of a journal. No server is asked: it is what this machine knows. */
export async function listCalls(options: CallsOptions): Promise<number> {
	const file = options.journal ?? defaultJournal();
	const book = new ServerBook(file);
	const calls = await read(file, book);
	const { stdout, stderr } = process;
	if (options.json === true) {
		stdout.write(`${safeJson({ calls: calls.map((kept) => asJson(kept, book)) })}\n`);
	} else if (calls.length === 0) {
		stderr.write('No call is open, and no result waits.\n');
	} else {
		const rows = calls.map((kept) => [
			kept.pointer.taskId,
			span(Date.now() - kept.pointer.firstSeenAtMs),
			standOf(kept),
			kept.pointer.tool,
			serverOf(kept, book),
		]);
		const [heading = '', ...lines] = table(
			[['TASK', 'AGE', 'STATUS', 'TOOL', 'SERVER'], ...rows],
			widthOf(stdout),
		)
			.trimEnd()
			.split('\n');
		stdout.write(`${[paintFor(stdout)('bold', heading), ...lines].join('\n')}\n`);
		stderr.write('Come back to one with: holdfast resume TASK\n');
	}
	return EXIT_CODES.ok;
}

/** Looking makes no journal where there is none. */
async function read(file: string, book: ServerBook): Promise<readonly KeptCall[]> {
	if (!existsSync(file)) return [];
	const journal = fileJournal(file);
	try {
		return await keptCalls(journal, book);
	} finally {
		await journal.close();
	}
}

/** `open`, or how the call ended with a result that waits to be fetched. */
function standOf({ entry }: KeptCall): string {
	const outcome = entry?.outcome;
	if (!outcome) return 'open';
	const isToolError = outcome.kind === 'completed' && outcome.result['isError'] === true;
	return isToolError ? 'tool error' : outcome.kind;
}

function serverOf({ pointer }: KeptCall, book: ServerBook): string {
	const kept = book.find(pointer.server);
	return kept ? describeTarget(kept.target) : pointer.server;
}

function asJson(kept: KeptCall, book: ServerBook): JsonObject {
	const { pointer, reference, entry } = kept;
	return {
		taskId: pointer.taskId,
		status: standOf(kept),
		tool: pointer.tool,
		server: serverOf(kept, book),
		startedAt: isoTime(pointer.firstSeenAtMs),
		endedAt: isoTimeOrNull(entry?.endedAtMs ?? null),
		isDelivered: entry?.delivered ?? false,
		reference,
	};
}
