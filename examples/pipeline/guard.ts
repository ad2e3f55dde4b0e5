/**
 * Leads the process group of one stage. Started by the server, told what to run once the server has written
 * down which group this is, and gone with everything in its group when the stage ends, is stopped, or the
 * server dies: the channel to the server then breaks, whatever killed it.
 */
import { spawn } from 'node:child_process';
import { followersOf, isGoneWithin, signalAll } from './process-group.ts';

/** What the server tells its guard to run. */
export interface GuardedCommand {
	readonly command: string;
	readonly cwd: string;
	readonly env: Readonly<Record<string, string>>;
	/** How long the group has between SIGTERM and SIGKILL. */
	readonly killGraceMs: number;
}

/** How the command ended. */
export interface CommandEnd {
	readonly exitCode: number | null;
	readonly signal: string | null;
	/** Why it could not be started. */
	readonly problem?: string;
}

let killGraceMs = 0;
let isStopping = false;
let isStarted = false;
let end: CommandEnd | undefined;
const commandEnded = Promise.withResolvers<void>();

process.once('message', (message) => run(message as GuardedCommand));
process.once('disconnect', () => void stop());
process.on('SIGTERM', () => void stop());
// A person's Ctrl+C does not reach another group, but `kill -INT` and `kill -HUP` may.
process.on('SIGINT', () => void stop());
process.on('SIGHUP', () => void stop());

function run(guarded: GuardedCommand): void {
	if (isStopping) return;
	isStarted = true;
	killGraceMs = guarded.killGraceMs;
	// -e: a failing line ends a script of several lines, as everybody expects of a pipeline.
	const child = spawn('/bin/sh', ['-ec', guarded.command], {
		cwd: guarded.cwd,
		env: { ...process.env, ...guarded.env },
		stdio: ['ignore', 'inherit', 'inherit'],
	});
	child.once('error', (error) => finish({ exitCode: null, signal: null, problem: error.message }));
	child.once('exit', (exitCode, signal) => finish({ exitCode, signal }));
}

function finish(ended: CommandEnd): void {
	end ??= ended;
	commandEnded.resolve();
	// While the group is being stopped, what is left of it has its time to clean up.
	if (!isStopping) leave();
}

/** Passes SIGTERM on to the group and gives it its time. */
async function stop(): Promise<void> {
	if (isStopping) return;
	isStopping = true;
	signalAll(-process.pid, 'SIGTERM');
	const isGone = await isGoneWithin(() => followersOf(process.pid), killGraceMs);
	// The news of the command's end is on its way; without it nobody would learn how it ended.
	if (isGone && isStarted) await commandEnded.promise;
	leave();
}

/** Says how the command ended, then takes the whole group along, this process included. */
function leave(): void {
	const killAll = (): void => signalAll(-process.pid, 'SIGKILL');
	if (process.connected && end) process.send?.(end, killAll);
	else killAll();
}
