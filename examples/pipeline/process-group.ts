/** Process groups of POSIX systems: who is in one, and how one is ended for certain. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** A group that was started here, told apart from a later one that the system gave the same number. */
export interface ProcessGroup {
	/** The number of the group, and of the process that leads it. */
	readonly groupId: number;
	/** When the leader started, in the system's own words; compared for equality only. */
	readonly leaderStartedAt: string;
	/** Value of {@link GROUP_MARK} in the environment of every member. */
	readonly mark: string;
}

interface Process {
	readonly pid: number;
	readonly groupId: number;
	readonly startedAt: string;
	/** A process that ended and whose parent has not asked how; it runs no more. */
	readonly isZombie: boolean;
}

/** Environment variable by which members are known when their leader is gone. */
export const GROUP_MARK = 'PIPELINE_GROUP';

const LOOK_MS = 50;
const KILL_WAIT_MS = 5_000;

/** The group of a leader that was just started; undefined when it has ended already. */
export function groupOf(leaderPid: number, mark: string): ProcessGroup | undefined {
	const leader = listProcesses().find(({ pid }) => pid === leaderPid);
	return leader && { groupId: leaderPid, leaderStartedAt: leader.startedAt, mark };
}

/** The living processes of a group that certainly is the one meant. */
export function membersOf(group: ProcessGroup): number[] {
	const present = listProcesses().filter(({ groupId }) => groupId === group.groupId);
	const leader = present.find(({ pid }) => pid === group.groupId);
	if (leader && leader.startedAt !== group.leaderStartedAt) return [];
	const living = present.filter(({ isZombie }) => !isZombie).map(({ pid }) => pid);
	// Without its leader the number alone proves nothing: it may belong to somebody else by now.
	return leader ? living : living.filter((pid) => carries(pid, group.mark));
}

/** The living processes in a group other than its leader, asked by the leader itself. */
export function followersOf(leaderPid: number): number[] {
	return listProcesses()
		.filter(({ groupId, pid, isZombie }) => groupId === leaderPid && pid !== leaderPid && !isZombie)
		.map(({ pid }) => pid);
}

/**
 * Ends a group: SIGTERM, then SIGKILL when something is left after `graceMs`. Does nothing when the group is
 * gone. The leader passes SIGTERM on, so only it is told: many programs take a second one for "stop at once".
 *
 * @throws when something survives SIGKILL, as a process that hangs in the kernel does.
 */
export async function endGroup(group: ProcessGroup, graceMs: number): Promise<void> {
	const members = membersOf(group);
	if (members.length === 0) return;
	if (graceMs > 0) {
		signalAll(members.includes(group.groupId) ? group.groupId : -group.groupId, 'SIGTERM');
		if (await isGoneWithin(() => membersOf(group), graceMs)) return;
	}
	signalAll(-group.groupId, 'SIGKILL');
	if (await isGoneWithin(() => membersOf(group), KILL_WAIT_MS)) return;
	throw new Error(`Process group ${group.groupId} cannot be killed: ${membersOf(group).join(', ')}`);
}

/** Waits until there are no processes left; false when there still are some after `waitMs`. */
export async function isGoneWithin(members: () => readonly number[], waitMs: number): Promise<boolean> {
	const deadlineMs = performance.now() + waitMs;
	for (;;) {
		if (members().length === 0) return true;
		if (performance.now() >= deadlineMs) return false;
		await pause(LOOK_MS);
	}
}

/** Signals a process, or a group by its negative number; one that has just ended is no error. */
export function signalAll(target: number, signal: NodeJS.Signals): void {
	try {
		process.kill(target, signal);
	} catch (error) {
		if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
	}
}

function listProcesses(): Process[] {
	return process.platform === 'linux' ? fromProc() : fromPs();
}

function fromProc(): Process[] {
	const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
	return readdirSync('/proc')
		.filter((name) => /^\d+$/.test(name))
		.flatMap((name) => {
			try {
				const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
				// The second field is the program's name in parentheses, which may hold anything.
				const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
				const startedAt = `${bootId} ${fields[19]}`;
				return [{ pid: Number(name), groupId: Number(fields[2]), startedAt, isZombie: fields[0] === 'Z' }];
			} catch {
				// It ended between the two reads.
				return [];
			}
		});
}

function fromPs(): Process[] {
	const lines = execFileSync('ps', ['-A', '-o', 'pid=,pgid=,stat=,lstart='], { encoding: 'utf8' }).split(
		'\n',
	);
	return lines.flatMap((line) => {
		const [, pid, groupId, state = '', startedAt = ''] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.+)$/.exec(line) ?? [];
		if (pid === undefined) return [];
		return [{ pid: Number(pid), groupId: Number(groupId), startedAt, isZombie: state.startsWith('Z') }];
	});
}

/** Whether a process was started with this mark. Only Linux tells; elsewhere a leaderless group is left alone. */
function carries(pid: number, mark: string): boolean {
	try {
		return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${GROUP_MARK}=${mark}`);
	} catch {
		return false;
	}
}
