import { spawnSync } from 'node:child_process';

/** Whether a process runs. One that ended and was not asked how by its parent does not. */
export function isRunning(pid: number): boolean {
	return !['', 'Z'].includes(stateOf(pid));
}

/** The first letter of a process's state as `ps` shows it; empty when there is no such process. */
export function stateOf(pid: number): string {
	return spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
		.stdout.trim()
		.charAt(0);
}
