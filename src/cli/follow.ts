import { isHoldfastError } from '../errors.ts';
import type { Execution } from '../client/execution.ts';
import { readReference } from '../client/reference.ts';
import type { TaskState } from '../client/task-state.ts';
import { type CallEnding, type EndedCall, endingOf, failedEnding } from './call-ending.ts';
import type { CallSession } from './call-session.ts';
import type { LeaveReason } from './call-controls.ts';
import { progressLine, readProgress } from './progress-bar.ts';
import { span } from './task-view.ts';
import { plain } from './terminal.ts';

/** Watches a call until it ends or nobody watches any more. What it says is on the session's screen. */
export async function follow(session: CallSession, execution: Execution, server: string): Promise<EndedCall> {
	const { screen, controls } = session;
	const { reference, tool } = execution;
	const pointer = reference === null ? undefined : readReference(reference);
	const sinceMs = pointer?.firstSeenAtMs ?? Date.now();
	const elapsedMs = (): number => Math.max(0, Date.now() - sinceMs);
	const key = reference ?? tool;
	const stopCancelling = session.cancelOnWish(execution);
	const line = (): string => {
		const words = controls.cancelling.aborted ? 'cancelling' : stand(execution.state, elapsedMs());
		return `${span(elapsedMs()).padStart(7)}  ${tool}  ${words}`;
	};
	const shown = showChanges(execution, () => {
		if (screen.isLive) screen.live(key, line);
		else screen.say(plain(line()));
	});
	let ending: CallEnding;
	try {
		ending = await settle(session, execution);
	} finally {
		stopCancelling();
		screen.still(key);
	}
	await shown;
	return { tool, server, taskId: pointer?.taskId ?? null, reference, elapsedMs: elapsedMs(), ending };
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
		return detached(controls.leaving.reason as LeaveReason, questioner.open);
	}
}

/** The ending of a call that is left to itself. */
export function detached(
	reason: LeaveReason,
	open: ReadonlyMap<string, Extract<CallEnding, { status: 'detached' }>['inputRequests'][string]>,
): CallEnding {
	return { status: 'detached', reason, inputRequests: Object.fromEntries(open) };
}

async function showChanges(execution: Execution, show: () => void): Promise<void> {
	for await (const { status } of execution.updates())
		if (status === 'working' || status === 'input_required') show();
}

/** Where a task stands, in words. */
function stand(state: TaskState | undefined, elapsedMs: number): string {
	if (!state) return 'asking the server for it';
	const words = progressLine(readProgress(state.statusMessage ?? state.status, elapsedMs));
	return state.reachable ? words : `${words}  (the server cannot be reached; trying again)`;
}
