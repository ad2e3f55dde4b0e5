import { readFileSync, realpathSync } from 'node:fs';
import { dirname, resolve, sep } from 'node:path';
import { HoldfastError } from '../../errors.ts';

/** A mounted file system that lies on another machine. */
export interface NetworkMount {
	readonly mountPoint: string;
	/** As the kernel names it, such as `nfs4`. */
	readonly type: string;
}

/** Kernel names of file systems whose locks or shared memory do not hold between machines. */
const NETWORK_TYPES: ReadonlySet<string> = new Set([
	...['nfs', 'nfs4', 'cifs', 'smbfs', 'smb2', 'smb3', 'afs', 'coda', 'ncpfs', 'ceph', 'lustre', 'glusterfs'],
	...['beegfs', 'gpfs', 'orangefs', 'pvfs2', 'davfs', 'fuse.sshfs', 'fuse.ceph', 'fuse.glusterfs'],
	...['fuse.ceph-fuse', 'fuse.s3fs', 'fuse.goofys', 'fuse.gcsfuse', 'fuse.mount-s3', 'fuse.rclone'],
	...['fuse.juicefs', 'fuse.davfs', 'fuse.smbnetfs', 'fuse.curlftpfs', 'fuse.moosefs', 'fuse.mfs'],
]);

/**
 * Throws `NETWORK_FILE_SYSTEM` when a file would lie on a network file system: SQLite's locks and its shared
 * memory do not hold there, and two machines would silently destroy the file. A file system that cannot
 * be told is let through.
 */
export function assertLocalFileSystem(file: string, mountInfo: string | null = readMountInfo()): void {
	const place = nearestExisting(resolve(file));
	const mount = isWindowsShare(place)
		? { mountPoint: place, type: 'a Windows share' }
		: mountInfo === null
			? null
			: networkMountOf(place, mountInfo);
	if (mount === null) return;
	throw new HoldfastError(
		'NETWORK_FILE_SYSTEM',
		`${file} lies on a network file system (${mount.type}, mounted at ${mount.mountPoint}), where SQLite's locks ` +
			'do not hold. Use a file on a local disk, or a backend made for several machines.',
	);
}

/** The network mount that an absolute path lies on, by the text of `/proc/self/mountinfo`; null when local. */
export function networkMountOf(path: string, mountInfo: string): NetworkMount | null {
	let found: { mountPoint: string; type: string; options: string } | null = null;
	for (const line of mountInfo.split('\n')) {
		const mount = parseMount(line);
		// The longest mount point wins; of two at one place, the later one hides the earlier.
		if (
			mount &&
			isBelow(path, mount.mountPoint) &&
			mount.mountPoint.length >= (found?.mountPoint.length ?? 0)
		)
			found = mount;
	}
	return found && isNetwork(found.type, found.options)
		? { mountPoint: found.mountPoint, type: found.type }
		: null;
}

/** A line is `id parent device root mountPoint options [tags…] - type source superOptions`. */
function parseMount(line: string): { mountPoint: string; type: string; options: string } | undefined {
	const [left, right] = line.split(' - ');
	const mountPoint = left?.split(' ')[4];
	const [type, , options] = right?.split(' ') ?? [];
	if (mountPoint === undefined || type === undefined) return undefined;
	return { mountPoint: unescape(mountPoint), type, options: options ?? '' };
}

/** The kernel writes blanks and backslashes in paths as octal numbers. */
function unescape(mountPoint: string): string {
	return mountPoint.replace(/\\([0-7]{3})/g, (_, octal: string) =>
		String.fromCharCode(Number.parseInt(octal, 8)),
	);
}

function isBelow(path: string, mountPoint: string): boolean {
	return mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`);
}

function isNetwork(type: string, options: string): boolean {
	// 9p is the root of some sandboxes, where locks hold, but also how WSL mounts Windows drives.
	if (type === '9p') return /(^|[,;])(aname=drvfs|trans=tcp)/.test(options);
	return NETWORK_TYPES.has(type);
}

function isWindowsShare(path: string): boolean {
	return sep === '\\' && /^\\\\[^?.]/.test(path);
}

/** Links resolved, since a link may lead onto another file system. */
function nearestExisting(path: string): string {
	try {
		return realpathSync(path);
	} catch {
		const parent = dirname(path);
		return parent === path ? path : nearestExisting(parent);
	}
}

/** Null where there is no such file: every system but Linux. */
function readMountInfo(): string | null {
	try {
		return readFileSync('/proc/self/mountinfo', 'utf8');
	} catch {
		return null;
	}
}
