import type { Execution } from '../client/execution.ts';
import type { LeaveReason } from './call-controls.ts';
import type { CallEnding, EndedCall } from './call-ending.ts';
import { CallSession, type SessionOptions } from './call-session.ts';
import { EXIT_CODES, Failure, UsageError } from './failure.ts';
import { follow } from './follow.ts';
import { findCall, type KeptCall, keptCalls } from './kept-calls.ts';
import { CallReport } from './report.ts';
import { describeTarget, type ServerTarget } from './server-target.ts';

/** Options of `holdfast resume`. */
export type ResumeOptions = SessionOptions;

/**
 * Comes back to calls, and watches them to their end.
 *
 * @param word - a reference or a task id; undefined for every call of the journal.
 * @param given - how the server is reached; undefined to reach it as before.
 */
export async function resume(
	word: string | undefined,
	given: ServerTarget | undefined,
	options: ResumeOptions,
): Promise<number> {
	const session = new CallSession(options);
	try {
		const calls =
			word === undefined
				? await keptCalls(session.journal, session.book)
				: [await findCall(word, session.journal, session.book)];
		const report = new CallReport(session.screen, options.json === true);
		const [only] = calls;
		if (!only) session.screen.say('No call is open, and no result waits.');
		const byServer = Map.groupBy(calls, ({ pointer }) => pointer.server);
		if (given && byServer.size > 1)
			throw new UsageError('The calls are on several servers. Say which one you mean, by its reference.');
		session.startWaiting();
		const isSingle = word !== undefined && calls.length === 1;
		let exitCode: number = EXIT_CODES.ok;
		const ended = await Promise.all(
			Array.from(byServer.values(), (ofServer) =>
				resumeServer(session, ofServer, given, async (call, execution) => {
					if (isSingle) exitCode = await report.one(call);
					else await report.each(call);
					const isOver = call.ending.status !== 'detached' && call.ending.status !== 'unreachable';
					if (isOver) await execution?.acknowledge();
				}),
			),
		);
		return isSingle ? exitCode : await report.all(ended.flat());
	} finally {
		await session.close();
	}
}

/** Comes back to the calls of one server. `onEnd` is told of each as soon as it has ended. */
async function resumeServer(
	session: CallSession,
	calls: readonly KeptCall[],
	given: ServerTarget | undefined,
	onEnd: (call: EndedCall, execution: Execution | undefined) => Promise<void>,
): Promise<readonly EndedCall[]> {
	const name = calls[0]?.pointer.server ?? '';
	const { leaving } = session.controls;
	const isKnown = calls.every(({ entry }) => entry?.outcome != null);
	const server = describe(session, name, given);
	const unconnected = (ending: CallEnding) =>
		Promise.all(
			calls.map(async ({ pointer, reference }) => {
				const { tool, taskId, firstSeenAtMs } = pointer;
				const elapsedMs = Math.max(0, Date.now() - firstSeenAtMs);
				const call = { tool, server, taskId, reference, elapsedMs, ending };
				await onEnd(call, undefined);
				return call;
			}),
		);
	try {
		const tasks = isKnown
			? session.offline(name)
			: (await session.connect(targetFor(session, name, given), { name, asker: 'A call', signal: leaving }))
					.tasks;
		return await Promise.all(
			calls.map(async ({ reference }) => {
				const execution = await tasks.resume(reference);
				const call = await follow(session, execution, server);
				await onEnd(call, execution);
				return call;
			}),
		);
	} catch (error) {
		if (!(error instanceof Failure) || error.exitCode !== EXIT_CODES.unreachable) throw error;
		return unconnected(
			leaving.aborted
				? { status: 'detached', reason: leaving.reason as LeaveReason, inputRequests: {} }
				: { status: 'unreachable', message: error.message },
		);
	}
}

/** @throws Failure with the exit code for a server that could not be reached. */
function targetFor(session: CallSession, name: string, given: ServerTarget | undefined): ServerTarget {
	if (given) return given;
	const kept = session.book.find(name);
	if (kept?.isWhole === true) return kept.target;
	const how = 'holdfast resume REFERENCE URL, or holdfast resume REFERENCE -- COMMAND';
	throw new Failure(
		kept
			? `${describeTarget(kept.target)}: a part that may be a secret was not kept. Give it again: ${how}`
			: `How "${name}" is reached is not known here. Say it: ${how}`,
		{ exitCode: EXIT_CODES.unreachable },
	);
}

function describe(session: CallSession, name: string, given: ServerTarget | undefined): string {
	const target = given ?? session.book.find(name)?.target;
	return target ? describeTarget(target) : name;
}
