import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Whose process ids can be compared, and when this process began; undefined where that cannot be told. */
interface Identity {
	/** One boot of one machine and one namespace of process ids, as a short digest. */
	readonly machine: string;
	/** In the kernel's ticks since the boot: tells a process from a later one with its id. */
	readonly startedAt: string;
}

/** The name under which this process holds leases: readable by people, and by {@link isOwnerGone}. */
export function processOwner(): string {
	const name = `${hostname()}:${process.pid}`;
	const { machine, startedAt } = identity() ?? {};
	return machine === undefined || startedAt === undefined ? name : `${name}#${machine}.${startedAt}`;
}

/**
 * Whether the process that calls itself `owner` is known to be dead. False in doubt: for processes of another
 * machine, boot or container, and on systems other than Linux. Their leases lapse.
 */
export function isOwnerGone(owner: string): boolean {
	const [, pid, machine, startedAt] = /:(\d+)#(\w+)\.(\d+)$/.exec(owner) ?? [];
	if (pid === undefined || machine !== identity()?.machine) return false;
	try {
		process.kill(Number(pid), 0);
	} catch (error) {
		// A process of another user answers EPERM, and may be hidden in /proc.
		return error instanceof Error && Reflect.get(error, 'code') === 'ESRCH';
	}
	const found = statOf(pid);
	return found !== undefined && (found.startedAt !== startedAt || /[ZXx]/.test(found.state));
}

let own: { readonly identity: Identity | undefined } | undefined;

function identity(): Identity | undefined {
	own ??= { identity: readIdentity() };
	return own.identity;
}

function readIdentity(): Identity | undefined {
	if (process.platform !== 'linux') return undefined;
	try {
		const self = statOf('self');
		// A /proc of another namespace would speak of other processes.
		if (self === undefined || self.pid !== String(process.pid)) return undefined;
		const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
		const facts = [hostname(), boot, readlinkSync('/proc/self/ns/pid')];
		const machine = createHash('sha256').update(facts.join('\n')).digest('hex').slice(0, 12);
		return { machine, startedAt: self.startedAt };
	} catch {
		return undefined;
	}
}

/** What Linux says about a process; undefined when it says nothing. */
function statOf(pid: string): { pid: string; state: string; startedAt: string } | undefined {
	let text: string;
	try {
		text = readFileSync(`/proc/${pid}/stat`, 'latin1');
	} catch {
		return undefined;
	}
	// The program's name stands in brackets and may have any character in it.
	const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
	const [state, startedAt] = [fields[0], fields[19]];
	if (state === undefined || startedAt === undefined) return undefined;
	return { pid: text.slice(0, text.indexOf(' ')), state, startedAt };
}
