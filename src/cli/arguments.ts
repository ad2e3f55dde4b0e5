import { type Command, InvalidArgumentError, Option } from 'commander';
import { TASK_STATUSES, type TaskStatus } from '../protocol/status.ts';

/** Where `serve` keeps tasks unless it is told otherwise, and where `tasks` looks for them. */
export const DEFAULT_DB = 'holdfast.db';

/** How a command ends: it says the exit code. */
export type Ending = (exitCode: number) => void;

/** Adds the option that every command has. */
export function withVerbose(command: Command): Command {
	return command.option('--verbose', 'show where an error happened');
}

/** Which store a command works on. */
export interface StoreOptions {
	/** An SQLite file. */
	readonly db: string;
	/** The address of a database that several machines share, instead of the file. */
	readonly store?: string;
	/** An address of that database which leads past any pooler. */
	readonly directUrl?: string;
	/** The schema of that database. */
	readonly schema?: string;
}

/** Adds the options that say where tasks are kept. Addresses have passwords in them, so they may come by environment. */
export function withStore(command: Command): Command {
	return withDatabase(
		command.option('--db <file>', 'SQLite file that keeps the tasks', DEFAULT_DB),
		'database that several machines share, instead of a file: postgres://… or redis://…',
	);
}

/** Adds the options of a database that several machines share. */
export function withDatabase(command: Command, description: string): Command {
	return command
		.addOption(new Option('--store <url>', description).env('HOLDFAST_STORE'))
		.addOption(
			new Option('--direct-url <url>', 'address of the same database past its pooler').env(
				'HOLDFAST_DIRECT_URL',
			),
		)
		.option(
			'--schema <name>',
			'schema with the tables, or prefix of the keys in Redis (default: "holdfast")',
		);
}

/**
 * Task ids may begin with a dash. Such an argument is marked, so that it is not taken for an option;
 * {@link taskIdArgument} takes the mark off.
 */
export function markTaskIds(argv: readonly string[]): string[] {
	return argv.map((argument) => (/^-[\w-]{26}$/.test(argument) ? MARK + argument : argument));
}

const MARK = '\0';

/** A task id as it was given. */
export function taskIdArgument(argument: string): string {
	return argument.startsWith(MARK) ? argument.slice(MARK.length) : argument;
}

/** A parser for a whole number between two bounds. */
export function wholeNumber(least: number, greatest: number): (value: string) => number {
	return (value) => {
		const number = Number(value);
		if (!/^\d+$/.test(value) || number < least || number > greatest)
			throw new InvalidArgumentError(`It must be a whole number from ${least} to ${greatest}.`);
		return number;
	};
}

/** A parser for one or several statuses, separated by commas. */
export function statuses(value: string, before: readonly TaskStatus[] = []): readonly TaskStatus[] {
	const wanted = value.split(',').map((word) => {
		const status = TASK_STATUSES.find((candidate) => candidate === word.trim());
		if (status === undefined)
			throw new InvalidArgumentError(`A status is one of ${TASK_STATUSES.join(', ')}.`);
		return status;
	});
	return [...new Set([...before, ...wanted])];
}
