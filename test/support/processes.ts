/** Whether a process is there, and does more than wait for its parent to take note of its end. */
import { readFileSync } from 'node:fs';

export function isAlive(pid: number): boolean {
	try {
		process.kill(pid, 0);
	} catch {
		return false;
	}
	try {
		return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
	} catch {
		return process.platform !== 'linux';
	}
}
