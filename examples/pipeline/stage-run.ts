/** Runs one stage: a guard in a process group of its own, its output in a file, its end in a report. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import type { CommandEnd, GuardedCommand } from './guard.ts';
import type { Stage } from './pipeline-file.ts';
import { endGroup, GROUP_MARK, groupOf, type ProcessGroup } from './process-group.ts';
import { StageLog } from './stage-log.ts';

/** How a stage ended; what the tool's output schema promises. */
export const stageReport = z.object({
	name: z.string(),
	outcome: z.enum(['passed', 'failed', 'timed_out', 'not_approved', 'not_run']),
	exitCode: z.number().int().nullable().describe('null when the stage was killed or did not run'),
	signal: z.string().nullable().describe('The signal that ended the stage, if one did'),
	durationMs: z.number(),
	logFile: z.string().nullable().describe('Everything the stage wrote'),
	outputBytes: z.number(),
});

export type StageReport = z.infer<typeof stageReport>;

/** Where a stage runs and what it leaves. */
export interface StageSite {
	readonly cwd: string;
	readonly logFile: string;
	/** Where the running process group is written down, for a server that comes after this one. */
	readonly groupFile: string;
	readonly signal: AbortSignal;
	/** Hears the last line of output whenever there is a new one. */
	readonly onLine: (line: string) => void;
}

const GUARD = fileURLToPath(new URL('guard.ts', import.meta.url));
const LOOK_MS = 200;

/** How long after the stage's own grace the guard may take before it is not relied upon any more. */
const GUARD_GRACE_MS = 2_000;

/** Runs a stage to its end. Rejects when `signal` stopped it; nothing of it runs any more then. */
export async function runStage(stage: Stage, site: StageSite): Promise<StageReport> {
	site.signal.throwIfAborted();
	const log = new StageLog(site.logFile);
	const startedAtMs = performance.now();
	const mark = randomUUID();
	const output = log.open();
	// An older Node warns about TypeScript, which is no business of the stage's log.
	const guard = fork(GUARD, [], {
		detached: true,
		execArgv: ['--disable-warning=ExperimentalWarning'],
		env: { ...process.env, [GROUP_MARK]: mark },
		stdio: ['ignore', output, output, 'ipc'],
	});
	closeSync(output);
	const ended = endOf(guard);
	// Written before anything of the stage runs: a server that dies right after leaves no unknown process.
	const group = guard.pid === undefined ? undefined : groupOf(guard.pid, mark);
	if (group) writeFileSync(site.groupFile, JSON.stringify(group), { mode: 0o600 });
	const { run: command, env, killGraceMs } = stage;
	tell(guard, { command, cwd: site.cwd, env, killGraceMs });

	let stoppedBy: 'timeout' | 'signal' | undefined;
	const stop = (by: 'timeout' | 'signal'): void => {
		if (stoppedBy !== undefined || !group) return;
		stoppedBy = by;
		// When even SIGKILL fails there is nothing more to be done than to say so, which `finally` does.
		endGroup(group, killGraceMs + GUARD_GRACE_MS).catch(() => {});
	};
	const timer = setTimeout(() => stop('timeout'), stage.timeoutMs);
	const onAbort = (): void => stop('signal');
	site.signal.addEventListener('abort', onAbort);
	if (site.signal.aborted) onAbort();
	const watch = setInterval(() => {
		const line = stoppedBy === undefined ? log.newLine() : undefined;
		if (line !== undefined) site.onLine(line);
	}, LOOK_MS);
	try {
		const { problem, exitCode, signal } = await ended;
		// Also with exit code 0: a program that obeys SIGTERM politely has not done its work.
		if (stoppedBy === 'signal') site.signal.throwIfAborted();
		if (problem !== undefined) throw new Error(`Stage "${stage.name}" could not be started: ${problem}`);
		return {
			name: stage.name,
			outcome: stoppedBy === 'timeout' ? 'timed_out' : exitCode === 0 ? 'passed' : 'failed',
			exitCode,
			signal,
			durationMs: Math.round(performance.now() - startedAtMs),
			logFile: log.file,
			outputBytes: log.sizeBytes,
		};
	} finally {
		clearTimeout(timer);
		clearInterval(watch);
		site.signal.removeEventListener('abort', onAbort);
		// A guard that was killed could not take its group along.
		if (group) await endGroup(group, 0);
		forgetGroup(site.groupFile, mark);
	}
}

/** Ends what an earlier server started for the same task and left running. */
export async function endSurvivors(groupFile: string, graceMs: number): Promise<void> {
	const group = readGroup(groupFile);
	if (!group) return;
	await endGroup(group, graceMs);
	forgetGroup(groupFile, group.mark);
}

const groupSchema = z.object({
	groupId: z.number().int().min(2),
	leaderStartedAt: z.string(),
	mark: z.string(),
});

function readGroup(groupFile: string): ProcessGroup | undefined {
	try {
		return groupSchema.parse(JSON.parse(readFileSync(groupFile, 'utf8')));
	} catch {
		// No file, or half of one: then its stage was never told to start.
		return undefined;
	}
}

/** Removes the file unless another server has written its own in the meantime. */
function forgetGroup(groupFile: string, mark: string): void {
	if (readGroup(groupFile)?.mark === mark) rmSync(groupFile, { force: true });
}

/** Resolves when the guard is gone and everything it said has arrived. */
function endOf(guard: ChildProcess): Promise<CommandEnd> {
	return new Promise((resolve) => {
		let said: CommandEnd | undefined;
		let open = 2;
		const settle = (): void => {
			open -= 1;
			if (open === 0) resolve(said ?? { exitCode: null, signal: guard.signalCode });
		};
		guard.once('message', (message) => (said = message as CommandEnd));
		guard.once('disconnect', settle);
		guard.once('exit', settle);
		guard.once('error', (error) => resolve({ exitCode: null, signal: null, problem: error.message }));
	});
}

function tell(guard: ChildProcess, command: GuardedCommand): void {
	// A guard that cannot be told has ended, and says so by itself.
	if (guard.connected) guard.send(command, () => {});
}
