import { HoldfastError } from '../errors.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { DetailedTask, WireError } from '../protocol/task.ts';
import { ProtocolError } from './sdk.ts';

/** Why a task is given up although the server never said how it ended. */
export type LostCode = 'TASK_NOT_FOUND' | 'TASK_EXPIRED' | 'INVALID_RESPONSE' | 'INPUT_UNAVAILABLE';

/** How a task ended, as far as the client can know. JSON, so that a journal keeps it. */
export type TaskOutcome =
	/** The tool's result, also one that says `isError` (T22). */
	| { readonly kind: 'completed'; readonly result: JsonObject }
	/** A JSON-RPC error. */
	| { readonly kind: 'failed'; readonly error: WireError }
	/** `confirmed` is false when a cancel was acknowledged and the server never said more. */
	| { readonly kind: 'cancelled'; readonly confirmed: boolean; readonly message: string }
	/** The client gave up; what became of the work is unknown. */
	| { readonly kind: 'lost'; readonly code: LostCode; readonly message: string };

/** The outcome of a task that the server says has ended; undefined while it lives. */
export function outcomeOf(task: DetailedTask): TaskOutcome | undefined {
	if (task.status === 'completed') return { kind: 'completed', result: task.result ?? {} };
	if (task.status === 'failed' && task.error) return { kind: 'failed', error: task.error };
	// On 2025-11-25 a tool error is a task that failed, with the result that says so (L02).
	if (task.status === 'failed' && task.result) return { kind: 'completed', result: task.result };
	if (task.status !== 'cancelled') return undefined;
	return { kind: 'cancelled', confirmed: true, message: task.statusMessage ?? 'The task was cancelled' };
}

/** What a caller gets thrown for an outcome that is no result: for a JSON-RPC error what `callTool` throws. */
export function errorOf(
	outcome: Exclude<TaskOutcome, { readonly kind: 'completed' }>,
): ProtocolError | HoldfastError {
	switch (outcome.kind) {
		case 'failed':
			return ProtocolError.fromError(outcome.error.code, outcome.error.message, outcome.error.data);
		case 'cancelled':
			return new HoldfastError('TASK_CANCELLED', outcome.message);
		case 'lost':
			return new HoldfastError(outcome.code, outcome.message);
	}
}

/** One word for an outcome: a task status, or `lost`. */
export function statusOf(outcome: TaskOutcome): 'completed' | 'failed' | 'cancelled' | 'lost' {
	return outcome.kind;
}
