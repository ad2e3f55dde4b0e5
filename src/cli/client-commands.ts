import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Ending, taskIdArgument, wholeNumber, withVerbose } from './arguments.ts';
import type { CallOptions } from './call.ts';
import { namedArgument } from './call-arguments.ts';
import type { CallsOptions } from './calls.ts';
import { UsageError } from './failure.ts';
import type { ResumeOptions } from './resume.ts';
import { httpTarget, isUrl, type ServerTarget, stdioTarget } from './server-target.ts';

/** Exit codes that only commands have which watch calls. */
export const CALL_EXIT_HELP = `
  3  the tool says itself that it failed (isError)
  4  the call failed: an error of the server, or a result that is not what the tool promises
  5  it was cancelled
  6  it goes on without this command; its reference was printed
  7  the server could not be reached
  8  the server does not know the task any more: the outcome is unknown
  9  it waits for an answer, and nobody is at a terminal to give it
Of several calls, the greatest.`;

const CALL_HELP = `
The server is a URL, or a command that speaks MCP on its stdin and stdout:
  holdfast call http://127.0.0.1:3000/mcp publish_report --arg month=July
  holdfast call publish_report --arg month=July -- node server.js --db tasks.db

The result goes to stdout, everything else to stderr. Questions of the server are asked at the terminal.
Ctrl-C asks whether to cancel the call or to leave it running; Ctrl-C again leaves it.
The journal keeps tasks that were left, and how their server is reached, but no header, no token, no environment,
and nothing of a URL's query or a command that looks like a secret.`;

const RESUME_HELP = `
A server that is a command is started again, with the arguments and in the folder that it had.
Give URL or -- COMMAND when it is reached in another way now, or had a secret in it.`;

/** A minute short of what a timer of Node can count. */
const MAX_WAIT_MS = 2_147_000_000;

/**
 * Adds `holdfast call`, `holdfast resume` and `holdfast calls`.
 *
 * @param serverCommand - what stood after `--` on the command line; undefined where there was no `--`.
 */
export function addClientCommands(
	program: Command,
	end: Ending,
	serverCommand: readonly string[] | undefined,
): void {
	const watching = (command: Command): Command =>
		withVerbose(withJournal(command))
			.option(
				'--header <name: value>',
				'send this with each HTTP request; may be given several times',
				header,
			)
			.addOption(
				new Option(
					'--token <token>',
					'bearer token for each HTTP request; on the command line others can see it',
				).env('HOLDFAST_TOKEN'),
			)
			.option(
				'--request-timeout-ms <number>',
				'how long connecting and each request about a task may take; no limit on the call',
				wholeNumber(100, 600_000),
				30_000,
			)
			.option(
				'--wait-ms <number>',
				'how long to wait for the end (default: without limit); then a task is left running',
				wholeNumber(0, MAX_WAIT_MS),
			)
			.addOption(
				new Option(
					'--on-question <what>',
					'what to do with questions (default: ask at a terminal, leave elsewhere)',
				).choices(['ask', 'decline', 'leave']),
			)
			.option('--json', 'print one JSON document')
			.option('--quiet', 'print results and errors only');

	const call = program
		.command('call')
		.summary('call a tool, however long it takes')
		.description('Calls a tool of a server, and shows its progress until it ends.')
		.usage('[options] <url> <tool>\n       holdfast call [options] <tool> -- <command> [arguments...]')
		.argument('<words...>', 'the URL of the server and the name of the tool; the tool alone before a command')
		.option('--arg <name=value>', 'an argument of the tool; may be given several times', namedArgument)
		.option('--json-args <object>', 'all arguments of the tool as a JSON object; - reads it from stdin')
		.option('--detach', 'print the reference of the task as soon as there is one, and do not wait')
		.addHelpText('after', CALL_HELP);
	watching(call).action(async (words: readonly string[], options: CallOptions) => {
		const { target, tool } = readCall(words, serverCommand);
		const { call: callTool } = await import('./call.ts');
		end(await callTool(target, tool, options));
	});

	const resume = program
		.command('resume')
		.summary('come back to a call that was left, or to all of them')
		.description('Comes back to a call, also from another terminal and after a crash; without words to all.')
		.usage('[options] [reference | task-id] [url | -- command [arguments...]]')
		.argument('[reference]', 'as it was printed, or a task id as `calls` shows it', taskIdArgument)
		.argument('[url]', 'where the server is now')
		.addHelpText('after', RESUME_HELP);
	watching(resume).action(
		async (reference: string | undefined, url: string | undefined, options: ResumeOptions) => {
			const target = readTarget(url, serverCommand);
			const { resume: comeBack } = await import('./resume.ts');
			end(await comeBack(reference, target, options));
		},
	);

	withVerbose(withJournal(program.command('calls')))
		.summary('list the calls that are open, and results that wait')
		.description(
			'Lists the calls of the journal that are open, or whose results were not handed over. Asks no server.',
		)
		.option('--json', 'print JSON')
		.action(async (options: CallsOptions) => {
			const { listCalls } = await import('./calls.ts');
			end(await listCalls(options));
		});
}

function withJournal(command: Command): Command {
	return command.option(
		'--journal <file>',
		'file that keeps the calls (default: holdfast/calls.db in XDG_STATE_HOME or ~/.local/state)',
	);
}

/** @throws UsageError */
function readCall(
	words: readonly string[],
	serverCommand: readonly string[] | undefined,
): { readonly target: ServerTarget; readonly tool: string } {
	const [first = '', second, ...others] = words;
	if (serverCommand) {
		if (second !== undefined)
			throw new UsageError(`Before -- there is the tool alone, and not "${words.join(' ')}".`);
		return { target: command(serverCommand), tool: first };
	}
	if (!isUrl(first))
		throw new UsageError(
			`"${first}" is no URL. Say holdfast call http://… TOOL, or holdfast call TOOL -- COMMAND.`,
		);
	if (second === undefined) throw new UsageError('Which tool? Say holdfast call URL TOOL.');
	if (others.length > 0)
		throw new UsageError(
			`"${others.join(' ')}" is too much. Arguments of a tool are given with --arg name=value.`,
		);
	return { target: httpTarget(first), tool: second };
}

/** The server that a command line names; undefined where it names none. @throws UsageError */
export function readTarget(
	url: string | undefined,
	serverCommand: readonly string[] | undefined,
): ServerTarget | undefined {
	if (url !== undefined && serverCommand) throw new UsageError('Give either a URL or a command, not both.');
	if (url !== undefined) return httpTarget(url);
	return serverCommand && command(serverCommand);
}

function command(words: readonly string[]): ServerTarget {
	if (words.length === 0) throw new UsageError('After -- there must be the command that starts the server.');
	return stdioTarget(words);
}

/** A parser for `--header`. */
export function header(
	given: string,
	before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
	const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*)$/.exec(given) ?? [];
	if (name === undefined || value === undefined)
		throw new InvalidArgumentError('It must be like "name: value".');
	return { ...before, [name.toLowerCase()]: value };
}
