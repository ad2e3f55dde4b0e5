import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { ChildCommand } from '../child-transport.ts';

/** How long a command is listened to, in milliseconds. */
const LISTEN_MS = 2_000;

/**
 * What a command writes to stdout though nobody has asked it anything: its first line that is no JSON, which is no
 * MCP either. Undefined when there is none. The command is started once more for it, without input, and ended.
 */
export async function stdoutWords({ command, args, env, cwd }: ChildCommand): Promise<string | undefined> {
	const isPosix = process.platform !== 'win32';
	const child = spawn(command, args, {
		env: { ...env },
		...(cwd !== undefined && { cwd }),
		stdio: ['ignore', 'pipe', 'ignore'],
		// A group of its own, so that whatever it starts ends with it.
		detached: isPosix,
		windowsHide: true,
	});
	let heard = '';
	child.stdout.setEncoding('utf8').on('data', (text: string) => (heard += text));
	try {
		await Promise.race([once(child, 'close'), wait(LISTEN_MS, undefined, { ref: false })]);
	} catch {
		// It cannot be started, which the caller knows by now.
	} finally {
		if (child.exitCode === null && child.pid !== undefined)
			try {
				if (isPosix) process.kill(-child.pid, 'SIGKILL');
				else child.kill('SIGKILL');
			} catch {
				// It has ended this moment.
			}
	}
	return heard.split('\n').find((line) => line.trim() !== '' && !/^\s*[{[]/.test(line));
}
