import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { UsageError } from './failure.ts';

/** How a server is reached: over HTTP, or by a command whose stdin and stdout it speaks on. */
export type ServerTarget =
	| { readonly kind: 'http'; readonly url: string }
	| { readonly kind: 'stdio'; readonly command: readonly string[]; readonly cwd: string };

/** A target as it may be kept. */
export interface KeptTarget {
	readonly target: ServerTarget;
	/** False when a secret was left out, so that the target must be given again. */
	readonly isWhole: boolean;
}

/** What stands where a secret was. */
const LEFT_OUT = '***';

const SECRET_NAME =
	/pass(word|wd|phrase)?$|secret|token|api.?key|access.?key|private.?key|authorization|(^|[-_])auth$|credential/i;
const SECRET_VALUE =
	/^(sk-|ghp_|gho_|github_pat_|glpat-|xox[abprs]-|eyJ[\w-]+\.)|^bearer\s|:\/\/[^/\s]*:[^/\s]*@/i;

/** A server at a URL. @throws UsageError */
export function httpTarget(url: string): ServerTarget {
	const parsed = URL.canParse(url) ? new URL(url) : undefined;
	if (!parsed || !/^https?:$/.test(parsed.protocol))
		throw new UsageError(`${url} is no URL of a server. It must be like http://127.0.0.1:3000/mcp.`);
	if (parsed.username !== '' || parsed.password !== '')
		throw new UsageError('A URL with a name or password in it is not taken. Use --token or --header.');
	return { kind: 'http', url };
}

/** A server that is a command of this folder. */
export function stdioTarget(command: readonly string[]): ServerTarget {
	return { kind: 'stdio', command, cwd: process.cwd() };
}

/** Whether a word of the command line means a server at a URL. */
export function isUrl(word: string): boolean {
	return /^https?:\/\//i.test(word);
}

/** A target without anything in it that may be a secret: the query of a URL, and what looks like one in a command. */
export function withoutSecrets(target: ServerTarget): KeptTarget {
	if (target.kind === 'http') {
		const { origin, pathname, search } = new URL(target.url);
		return { target: { kind: 'http', url: origin + pathname }, isWhole: search === '' };
	}
	const kept = wordsWithoutSecrets(target.command);
	const isWhole = kept.every((word, index) => word === target.command[index]);
	return { target: { ...target, command: kept }, isWhole };
}

/** The words of a command, without those that look like a secret. */
export function wordsWithoutSecrets(command: readonly string[]): readonly string[] {
	return command.map((word, index) => keptWord(word, command[index - 1]));
}

function keptWord(word: string, before: string | undefined): string {
	const [, name, value] = /^([^=:\s]+[=:]\s*)(.+)$/s.exec(word) ?? [];
	if (name !== undefined && SECRET_NAME.test(name.replace(/[=:]\s*$/, ''))) return name + LEFT_OUT;
	if (name !== undefined && value !== undefined && SECRET_VALUE.test(value)) return name + LEFT_OUT;
	if (SECRET_VALUE.test(word)) return LEFT_OUT;
	const follows = before !== undefined && /^--?[^=]+$/.test(before) && SECRET_NAME.test(before);
	return follows && !word.startsWith('-') ? LEFT_OUT : word;
}

/**
 * The name by which tasks of a server are remembered: the same for the same target on another day, and without a
 * secret in it. The URL itself over HTTP, so that a reference says where its server is.
 */
export function serverNameOf(target: ServerTarget): string {
	const kept = withoutSecrets(target).target;
	if (kept.kind === 'http') return kept.url;
	const digest = createHash('sha256')
		.update(JSON.stringify([kept.command, kept.cwd]))
		.digest('hex');
	return `${basename(kept.command[0] ?? '')}-${digest.slice(0, 16)}`;
}

/** A target as a person knows it. */
export function describeTarget(target: ServerTarget): string {
	return target.kind === 'http' ? target.url : target.command.join(' ');
}
