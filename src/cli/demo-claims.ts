import type { DetailedTask } from '../protocol/task.ts';
import { DEMO_STEPS, type StepLine } from './demo-steps.ts';

/** What was measured during a demo. */
export interface DemoFacts {
	readonly taskId: string;
	/** The task at its end. */
	readonly last: DetailedTask;
	readonly wasAnswered: boolean;
	/** Milliseconds since the epoch. */
	readonly killedAtMs: number;
	/** The first and the second server process. */
	readonly pids: readonly [number, number];
	/** What the steps had left behind when the first process was dead, and at the end. */
	readonly before: readonly StepLine[];
	readonly after: readonly StepLine[];
	/** How many requests were sent, by method. */
	readonly sent: ReadonlyMap<string, number>;
	readonly unanswered: number;
}

/** Something that the demo says, and whether it is true. */
export interface Claim {
	readonly says: string;
	readonly holds: boolean;
}

/** What a demo proved, from what was measured. */
export function claimsOf(facts: DemoFacts): Claim[] {
	const { before, after, killedAtMs, last, sent } = facts;
	const [firstPid, secondPid] = facts.pids;
	const calls = sent.get('tools/call') ?? 0;
	const polls = sent.get('tasks/get') ?? 0;
	const finishedBefore = DEMO_STEPS.filter((step) => count(before, 'ended', step) > 0);
	const finishedOnce = DEMO_STEPS.filter((step) => count(after, 'ended', step) === 1);
	const repeated = finishedBefore.filter((step) => count(after, 'began', step) > 1);
	const beganTwice = DEMO_STEPS.filter((step) => count(after, 'began', step) > 1);
	const resumedAtMs = after.find(({ pid }) => pid === secondPid)?.atMs;
	const recoveryMs = resumedAtMs === undefined ? NaN : resumedAtMs - killedAtMs;
	return [
		{
			says: `${plural(calls, 'tools/call')}, one task id, two server processes (${firstPid}, ${secondPid})`,
			holds:
				calls === 1 && last.taskId === facts.taskId && last.status === 'completed' && firstPid !== secondPid,
		},
		{
			says: `the work went on ${(recoveryMs / 1_000).toFixed(1)} s after kill -9, by itself`,
			holds: recoveryMs > 0,
		},
		{
			says: `${finishedOnce.length} of ${DEMO_STEPS.length} steps finished exactly once`,
			holds: finishedOnce.length === DEMO_STEPS.length,
		},
		{
			says:
				`${repeated.length} of the ${finishedBefore.length} steps that were finished before ran again; ` +
				`only the interrupted one began twice (${beganTwice.join(', ')})`,
			holds: finishedBefore.length > 0 && repeated.length === 0 && beganTwice.length === 1,
		},
		{
			says: `${polls} tasks/get, ${facts.unanswered} of them while no server was there; no connection was held open`,
			holds: polls > 0 && facts.unanswered > 0,
		},
		{
			says: `${plural(sent.get('tasks/update') ?? 0, 'question')} asked and answered over tasks/update`,
			holds: facts.wasAnswered && sent.get('tasks/update') === 1,
		},
	];
}

function count(lines: readonly StepLine[], what: StepLine['what'], step: string): number {
	return lines.filter((line) => line.what === what && line.step === step).length;
}

function plural(number: number, noun: string): string {
	return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
