import { isHoldfastError, messageOf } from '../errors.ts';
import { isTerminal } from '../protocol/status.ts';
import type { Execution } from '../client/execution.ts';
import { readReference } from '../client/reference.ts';
import type { TaskState } from '../client/task-state.ts';
import { type CallEnding, type EndedCall, endingOf, failedEnding } from './call-ending.ts';
import type { CallSession } from './call-session.ts';
import type { LeaveReason } from './call-controls.ts';
import { CallLine } from './call-line.ts';
import { type ProgressView, readProgress } from './progress-bar.ts';
import { plain } from './terminal.ts';

/** Watches a call until it ends or nobody watches any more. What it says is on the session's screen. */
export async function follow(session: CallSession, execution: Execution, server: string): Promise<EndedCall> {
	const { reference, tool } = execution;
	const pointer = reference === null ? undefined : readReference(reference);
	const line = new CallLine(session.screen, tool, pointer?.firstSeenAtMs ?? Date.now());
	const stopCancelling = cancelOnWish(session, execution, line);
	const shown = showChanges(session, execution, line);
	try {
		const ending = await settle(session, execution);
		const taskId = pointer?.taskId ?? null;
		return { tool, server, taskId, reference, elapsedMs: line.elapsedMs, ending };
	} finally {
		stopCancelling();
		await shown;
		line.end();
	}
}

/** Has a call cancelled when that is wished for, until the returned function is called. */
function cancelOnWish({ screen, controls }: CallSession, execution: Execution, line: CallLine): () => void {
	const { cancelling } = controls;
	const cancel = (): void => {
		line.show({ fraction: undefined, message: 'cancelling', left: undefined });
		execution.cancel().catch((error: unknown) => {
			screen.say(`error: ${plain(execution.tool)} could not be cancelled: ${plain(messageOf(error))}`);
		});
	};
	if (cancelling.aborted) cancel();
	cancelling.addEventListener('abort', cancel, { once: true });
	return () => cancelling.removeEventListener('abort', cancel);
}

async function settle({ controls, questioner }: CallSession, execution: Execution): Promise<CallEnding> {
	try {
		const outcome = await execution.settled({ signal: controls.leaving });
		// Marks it as delivered, and holds a result against the tool's output schema.
		const problem: unknown = await execution.result().then(
			() => undefined,
			(error: unknown) => error,
		);
		return outcome.kind === 'completed' && problem !== undefined ? failedEnding(problem) : endingOf(outcome);
	} catch (error) {
		if (!controls.leaving.aborted && !isHoldfastError(error, 'DETACHED')) throw error;
		execution.detach();
		const reason = controls.leaving.reason as LeaveReason;
		return { status: 'detached', reason, inputRequests: Object.fromEntries(questioner.open) };
	}
}

async function showChanges({ controls }: CallSession, execution: Execution, line: CallLine): Promise<void> {
	for await (const state of execution.updates())
		if (!isTerminal(state.status) && !controls.cancelling.aborted) line.show(viewOf(state, line.elapsedMs));
}

/** Where a task stands, as it is shown. */
function viewOf({ status, statusMessage, reachable }: TaskState, elapsedMs: number): ProgressView {
	const view = readProgress(statusMessage ?? WORDS[status] ?? status, elapsedMs);
	if (reachable) return view;
	return { ...view, message: `${view.message}  (the server cannot be reached; trying again)` };
}

/** For servers that say nothing. */
const WORDS: Readonly<Record<string, string>> = { input_required: 'waits for an answer' };
