import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isHoldfastError, messageOf } from '../errors.ts';
import { plain } from './terminal.ts';

/** What the process exits with; what is above `usage` tells how a tool call ended. */
export const EXIT_CODES = {
	ok: 0,
	failed: 1,
	usage: 2,
	toolError: 3,
	callFailed: 4,
	cancelled: 5,
	detached: 6,
	unreachable: 7,
	lost: 8,
	unanswered: 9,
} as const;

/** An error that the person at the terminal can do something about: what was wrong, and what would be right. */
export class Failure extends Error {
	readonly exitCode: number;

	constructor(message: string, options?: ErrorOptions & { readonly exitCode?: number }) {
		super(message, options);
		this.exitCode = options?.exitCode ?? EXIT_CODES.failed;
	}
}

/** A {@link Failure} in how the command was called. */
export class UsageError extends Failure {
	constructor(message: string) {
		super(message, { exitCode: EXIT_CODES.usage });
	}
}

/** The exit code for whatever was thrown. */
export function exitCodeOf(error: unknown): number {
	return error instanceof Failure ? error.exitCode : EXIT_CODES.failed;
}

/** The lines that tell a person what went wrong; with stack traces where they are wanted. */
export function describeFailure(error: unknown, verbose: boolean): string {
	const lines = [`error: ${plain(messageOf(error), '\n')}`];
	const known = error instanceof Failure || isHoldfastError(error);
	if (verbose) lines.push(plain(stackOf(error), '\n'));
	else if (!known) lines.push('This may be a fault of holdfast itself; --verbose shows where it happened.');
	return `${lines.join('\n')}\n`;
}

/** Where an error of somebody's module happened, as `path:line`; undefined where its stack names no file. */
export function placeOf(error: unknown): string | undefined {
	if (!(error instanceof Error)) return undefined;
	for (const line of (error.stack ?? '').split('\n')) {
		const [, url, number] = /(file:\/\/[^\s)]+?):(\d+)(?::\d+)?\)?$/.exec(line) ?? [];
		if (url !== undefined && !url.includes('/node_modules/'))
			return `${relative(process.cwd(), fileURLToPath(url.split('?')[0] ?? url))}:${number}`;
	}
	return undefined;
}

function stackOf(error: unknown): string {
	if (!(error instanceof Error)) return '';
	const own = error.stack ?? String(error);
	return error.cause === undefined
		? own
		: `${own}\ncaused by: ${stackOf(error.cause) || messageOf(error.cause)}`;
}
