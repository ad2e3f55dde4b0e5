import { isHoldfastError, messageOf } from '../errors.ts';
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import type { InputRequest } from '../protocol/task.ts';
import type { TaskOutcome } from '../client/outcome.ts';
import { ProtocolError } from '../client/sdk.ts';
import type { LeaveReason } from './call-controls.ts';
import { EXIT_CODES } from './failure.ts';
import { textOfResult } from './result-text.ts';
import { plain } from './terminal.ts';

/** How a call ended, as far as this command is concerned. */
export type CallEnding =
	/** The tool's result, also one that says `isError`. */
	| { readonly status: 'completed'; readonly result: JsonObject }
	/** A JSON-RPC error; the code is null where the server gave none. */
	| {
			readonly status: 'failed';
			readonly code: number | null;
			readonly message: string;
			readonly data: JsonValue;
	  }
	| { readonly status: 'cancelled'; readonly message: string }
	/** What became of it is unknown. */
	| { readonly status: 'lost'; readonly message: string }
	/** The server could not be reached. */
	| { readonly status: 'unreachable'; readonly message: string }
	/** It goes on without this command. */
	| {
			readonly status: 'detached';
			readonly reason: LeaveReason;
			readonly inputRequests: Readonly<Record<string, InputRequest>>;
	  };

/** A call and its ending. */
export interface EndedCall {
	readonly tool: string;
	readonly server: string;
	/** Null for a call that was no task. */
	readonly taskId: string | null;
	readonly reference: string | null;
	readonly elapsedMs: number;
	readonly ending: CallEnding;
}

/** The ending that a known outcome is. */
export function endingOf(outcome: TaskOutcome): CallEnding {
	switch (outcome.kind) {
		case 'completed':
			return { status: 'completed', result: outcome.result };
		case 'failed':
			return { status: 'failed', ...outcome.error, data: outcome.error.data ?? null };
		case 'cancelled':
		case 'lost':
			return { status: outcome.kind, message: outcome.message };
	}
}

/** The ending that an error of the client is. */
export function failedEnding(error: unknown): CallEnding {
	if (isHoldfastError(error, 'TASK_CANCELLED')) return { status: 'cancelled', message: error.message };
	const isRpc = error instanceof ProtocolError;
	return {
		status: 'failed',
		code: isRpc ? error.code : null,
		message: messageOf(error),
		data: isRpc ? ((error.data ?? null) as JsonValue) : null,
	};
}

/** What the command exits with after such an ending. */
export function exitCodeAfter(ending: CallEnding): number {
	switch (ending.status) {
		case 'completed':
			return ending.result['isError'] === true ? EXIT_CODES.toolError : EXIT_CODES.ok;
		case 'failed':
			return EXIT_CODES.callFailed;
		case 'detached':
			return ending.reason === 'question' ? EXIT_CODES.unanswered : EXIT_CODES.detached;
		default:
			return EXIT_CODES[ending.status];
	}
}

/** A call as `--json` prints it. */
export function endedCallJson({ ending, ...call }: EndedCall): JsonObject {
	const { status } = ending;
	const common = { status, ...call };
	switch (status) {
		case 'completed':
			return { ...common, result: ending.result };
		case 'failed':
			return { ...common, error: { code: ending.code, message: ending.message, data: ending.data } };
		case 'detached':
			return {
				...common,
				reason: ending.reason,
				inputRequests: ending.inputRequests as unknown as JsonObject,
			};
		default:
			return { ...common, message: ending.message };
	}
}

/** What belongs on stdout after a call, for a person: the result, or the reference of what goes on. */
export function endedCallText({ ending, reference }: EndedCall): string {
	if (ending.status === 'completed') return textOfResult(ending.result);
	return ending.status === 'detached' && reference !== null ? `${reference}\n` : '';
}

/** What belongs on stderr after a call; empty where the result says it all. */
export function endingWords({ ending, tool, taskId }: EndedCall): string {
	switch (ending.status) {
		case 'completed':
			return ending.result['isError'] === true ? `${plain(tool)} says that it failed.` : '';
		case 'failed': {
			const code = ending.code === null ? '' : ` (code ${ending.code})`;
			return `error: ${plain(tool)} failed: ${plain(ending.message, '\n')}${code}`;
		}
		case 'cancelled':
			return `${plain(tool)} was cancelled: ${plain(ending.message)}`;
		case 'lost':
			return `error: ${plain(tool)} is lost: ${plain(ending.message)}`;
		case 'unreachable':
			return `error: ${plain(ending.message, '\n')}`;
		case 'detached':
			return `${plain(tool)} ${LEFT_WORDS[ending.reason]}. Come back with: holdfast resume ${plain(taskId ?? '')}`;
	}
}

const LEFT_WORDS: Readonly<Record<LeaveReason, string>> = {
	asked: 'goes on without this command',
	detached: 'goes on without this command',
	waited: 'has not ended within --wait-ms and goes on without this command',
	question: 'waits for an answer, and nobody is here to give it',
};
