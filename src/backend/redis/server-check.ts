import { HoldfastError } from '../../errors.ts';
import type { Run } from './connection.ts';

/** The version of what this version of holdfast keeps under a prefix. */
const VERSION = 1;

/** Since when all that the scripts do is there. */
const LEAST_MAJOR = 6;

/**
 * Refuses a server that could lose tasks while it runs, and says what one may lose when it ends.
 *
 * @throws STORE_UNUSABLE, STORE_NEWER, STORE_OLDER
 */
export async function checkServer(run: Run, base: string, place: string): Promise<void> {
	const info = factsOf(await run<string>('INFO'));
	const version = info.get('redis_version') ?? '';
	if (Number.parseInt(version, 10) < LEAST_MAJOR)
		throw new HoldfastError(
			'STORE_UNUSABLE',
			`${place} is Redis ${version}; it must be ${LEAST_MAJOR} or later`,
		);
	const policy = info.get('maxmemory_policy') ?? 'noeviction';
	if (policy !== 'noeviction')
		throw new HoldfastError(
			'STORE_UNUSABLE',
			`${place} may throw tasks away when its memory is full: maxmemory-policy is ${policy}. ` +
				'Set it to noeviction, so that new tasks are refused instead.',
		);
	await claimPrefix(run, base, place);
	const loss = await lossOf(run, info);
	if (loss !== undefined) process.emitWarning(`${place} ${loss}`, 'HoldfastWarning');
}

/** The first one writes the version; the others compare. */
async function claimPrefix(run: Run, base: string, place: string): Promise<void> {
	await run('SETNX', `${base}version`, VERSION);
	const found = Number(await run<string>('GET', `${base}version`));
	if (found > VERSION)
		throw new HoldfastError(
			'STORE_NEWER',
			`${place} has store version ${found}; this version of holdfast knows ${VERSION}`,
		);
	if (found !== VERSION)
		throw new HoldfastError(
			'STORE_OLDER',
			`${place} has store version ${found}; this version of holdfast needs ${VERSION}`,
		);
}

/** What the server may lose although a handle was given for it; undefined when nothing. */
async function lossOf(run: Run, info: ReadonlyMap<string, string>): Promise<string | undefined> {
	if (info.get('aof_enabled') !== '1')
		return (
			'keeps no log on disk (appendonly no): when it restarts, all tasks since its last snapshot are gone, although ' +
			'their handles were given. Set appendonly yes, and appendfsync always to outlive a power cut.'
		);
	// Hosted servers often do not tell.
	const [, when] = await run<string[]>('CONFIG', 'GET', 'appendfsync').catch((): string[] => []);
	if (when === 'always' || when === undefined) return undefined;
	const lost = when === 'no' ? 'what the system had not written yet' : 'the last second';
	return (
		`writes its log to disk later (appendfsync ${when}): it outlives its own restart, but a crash of the machine ` +
		`may lose ${lost}, although handles were given. Set appendfsync always to keep that, too.`
	);
}

/** The facts of `INFO`, by name. */
function factsOf(text: string): ReadonlyMap<string, string> {
	const lines = text.split('\r\n').filter((line) => line.includes(':'));
	return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}
