import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { ChildCommand } from '../child-transport.ts';

/** How long a command is listened to, in milliseconds. */
const LISTEN_MS = 2_000;

/** What a command does that nobody has asked anything. */
export interface CommandWords {
	/** Whether there is no such command. */
	readonly isMissing: boolean;
	readonly stdout: string;
	readonly stderr: string;
}

/**
 * Listens to a command that is no good as a server. It is started once more for it, without input, and ended after
 * 2 s with whatever it started.
 */
export async function commandWords({ command, args, env, cwd }: ChildCommand): Promise<CommandWords> {
	const isPosix = process.platform !== 'win32';
	const child = spawn(command, args, {
		env: { ...env },
		...(cwd !== undefined && { cwd }),
		stdio: ['ignore', 'pipe', 'pipe'],
		detached: isPosix,
		windowsHide: true,
	});
	let stdout = '';
	let stderr = '';
	let isMissing = false;
	child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
	child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
	try {
		// Not `exit`: what it wrote last is read after that.
		await Promise.race([once(child, 'close'), wait(LISTEN_MS, undefined, { ref: false })]);
	} catch {
		isMissing = true;
	}
	if (child.exitCode === null && child.pid !== undefined)
		try {
			if (isPosix) process.kill(-child.pid, 'SIGKILL');
			else child.kill('SIGKILL');
		} catch {
			// It has ended this moment.
		}
	return { isMissing, stdout, stderr };
}
