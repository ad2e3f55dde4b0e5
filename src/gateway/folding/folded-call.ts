import { randomUUID } from 'node:crypto';
import type { CallToolResult } from '../../client/sdk.ts';
import type { TaskContext } from '../../engine/task-context.ts';
import type { JsonValue } from '../../protocol/json.ts';
import { Questions } from '../questions.ts';
import { limitResult } from '../result-limit.ts';
import { asFailure, nameOf, outcomeUnknown } from '../upstream-call.ts';
import { Family, type FoldedCall } from './family.ts';
import { isEnd } from './fold-state.ts';
import { readStatus } from './fold-status.ts';
import { FoldedWork, type StartedWork, type WorkEnding } from './folded-work.ts';

/** What became of a start: work with a handle, or an answer without one. */
type Start = { readonly work: StartedWork } | { readonly answer: CallToolResult };

/**
 * Makes a call of a folded tool within a task of the gateway: starts the work once, checks until it has ended, and ends
 * with its result. The start is recorded before it is sent and the handle when it has come, so that after a crash the
 * work is found again; where the handle did not arrive, nobody can tell whether there is any, and that is what is said.
 * Checks are not recorded: how often they were made does not matter.
 *
 * A start that fails, or that answers without a handle, is an answer like that of any tool.
 *
 * @throws TaskFailure with the upstream's JSON-RPC error, or one that says that the outcome is unknown.
 */
export async function callFolded(call: FoldedCall, task: TaskContext): Promise<CallToolResult> {
	const questions = new Questions(task);
	const family = new Family(call, task, {
		principal: task.principal,
		log: call.onLog,
		ask: (request, key) => questions.ask(request, key),
	});
	try {
		const result = await run(family);
		return questions.annotate(limitResult(result, call.upstream.options.maxResultBytes, nameOf(call)));
	} catch (error) {
		throw asFailure(call, error);
	}
}

async function run(family: Family): Promise<CallToolResult> {
	const { task, call } = family;
	const { clock, mapping } = call;
	const me = randomUUID();
	// Recorded before anything is sent: whoever finds it and did not write it knows that there was a start.
	const starter = await task.step('send', () => me);
	let firstPauseMs = 0;
	const start = (await task.step('started', async (): Promise<JsonValue> => {
		if (starter !== me && !call.repeatable) throw outcomeUnknown(call);
		const reply = await family.start();
		const ids = reply.result.isError === true ? undefined : family.idsIn(reply);
		if (!ids) return { answer: reply.result as unknown as JsonValue };
		const { state } = readStatus(mapping, reply);
		// Where the start has waited for the end itself, there is nothing to wait for.
		if (state === undefined || !isEnd(state)) firstPauseMs = mapping.pollMs;
		return { work: { ids, startedAtMs: clock.nowMs() } };
	})) as unknown as Start;
	if ('answer' in start) return start.answer;
	const work = new FoldedWork(family, start.work);
	// A check that does something is not made again once it has said that the work ended.
	const ending = family.isCheckReadOnly
		? await work.ended(firstPauseMs)
		: await task.step('ended', () => work.ended(firstPauseMs) as unknown as Promise<JsonValue>);
	return work.result(ending as unknown as WorkEnding);
}
