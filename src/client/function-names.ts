import { createHash } from 'node:crypto';

/** The longest name of a function that model providers take. */
const MAX_LENGTH = 64;
const LEGAL = new RegExp(`^[A-Za-z0-9_-]{1,${MAX_LENGTH}}$`);

/** A tool as it is named by its server. */
export interface NamedTool {
	readonly server: string;
	readonly name: string;
}

/**
 * A name for each tool that model providers take as the name of a function: letters, digits, `_` and `-`, at most
 * 64 of them. A tool keeps its name where it can. Where two would be called the same, or like one that is
 * `reserved`, the name of the server goes before, and where even that is too long or taken, a short digest after.
 * The names follow from the set of tools alone, so that they are the same after a restart and in any order.
 */
export function functionNames<TOOL extends NamedTool>(
	tools: readonly TOOL[],
	reserved: readonly string[],
): ReadonlyMap<string, TOOL> {
	const names = new Map<string, TOOL>();
	let unnamed = [...tools];
	for (const nameOf of [plainName, serverName, digestName]) {
		const groups = Map.groupBy(unnamed, nameOf);
		unnamed = [];
		for (const [name, group] of groups) {
			const [only] = group;
			const clear = group.length === 1 && LEGAL.test(name) && !reserved.includes(name);
			// A digest is as clear as it gets.
			if (only && (nameOf === digestName || (clear && !names.has(name)))) names.set(name, only);
			else unnamed.push(...group);
		}
	}
	return names;
}

function plainName({ name }: NamedTool): string {
	return legal(name);
}

function serverName({ server, name }: NamedTool): string {
	return legal(`${server}_${name}`);
}

function digestName({ server, name }: NamedTool): string {
	const digest = createHash('sha256')
		.update(JSON.stringify([server, name]))
		.digest('hex')
		.slice(0, 8);
	return `${legal(name).slice(0, MAX_LENGTH - 9)}_${digest}`;
}

function legal(name: string): string {
	return name.replace(/[^A-Za-z0-9_-]/gu, '_');
}
