import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { DEFAULT_DB, type Ending, markTaskIds, wholeNumber, withVerbose } from './arguments.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { describeFailure, EXIT_CODES, exitCodeOf } from './failure.ts';
import type { ServeOptions } from './serve.ts';
import { addTasksCommand } from './tasks.ts';
import { plain } from './terminal.ts';

const EXIT_HELP = `
Exit codes:
  0  it worked
  1  it failed; stderr says what was wrong
  2  the command was called in a wrong way`;

const SERVE_HELP = `
The module exports a function \`server\` (or a default one) that builds the server:
  export const server = (tasks) => {
    const mcp = new McpServer({ name: 'reports', version: '1.0.0' });
    mcp.registerTool('build', { inputSchema }, tasks.handler({}, async (args, task) => { … }));
    return mcp;
  };

SIGTERM, SIGINT and SIGHUP end it in order; what still runs then goes on with the next start.
A second signal ends it at once.`;

/** Runs one command. Answers the exit code; nothing is thrown. */
export async function main(argv: readonly string[]): Promise<number> {
	let exitCode: number = EXIT_CODES.ok;
	// `| head` closes the pipe early, which is no fault; a server has its own ways with a client that has gone.
	if (argv[0] !== 'serve') process.stdout.on('error', () => process.exit(EXIT_CODES.failed));
	const program = createProgram((code) => {
		exitCode = code;
	});
	try {
		await program.parseAsync(markTaskIds(argv), { from: 'user' });
		return exitCode;
	} catch (error) {
		// commander has said what is wrong by now.
		if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage;
		process.stderr.write(describeFailure(error, argv.includes('--verbose')));
		return exitCodeOf(error);
	}
}

function createProgram(end: Ending): Command {
	const program = new Command('holdfast')
		.description(
			'Long-running MCP tool calls that survive crashes, restarts, timeouts and people who answer tomorrow.',
		)
		.version(version(), '-V, --version', 'print the version')
		.helpOption('-h, --help', 'print this help')
		.addHelpText('afterAll', EXIT_HELP)
		.showHelpAfterError('(--help shows what is possible)')
		.configureOutput({ writeErr: (text) => process.stderr.write(plain(text, '\n')) })
		// Copied to the commands below, so it comes before them.
		.exitOverride();
	addServeCommand(program, end);
	addTasksCommand(program, end);
	addDemoCommand(program, end);
	addDoctorCommand(program, end);
	return program;
}

function addServeCommand(program: Command, end: Ending): void {
	withVerbose(program.command('serve'))
		.summary('serve the tools of a module as durable tasks')
		.description('Serves the tools of a module as durable tasks, over Streamable HTTP or stdio.')
		.argument('<module>', 'JavaScript or TypeScript file that exports `server`')
		.option('--stdio', 'serve one client on stdin and stdout instead of HTTP')
		.option('--db <file>', 'SQLite file that keeps the tasks', DEFAULT_DB)
		.option('--port <number>', 'port to listen on; 0 takes a free one', wholeNumber(0, 65_535), 3000)
		.option('--host <address>', 'address to listen on', '127.0.0.1')
		.option('--path <path>', 'path of the endpoint', '/mcp')
		.option('--concurrency <number>', 'how many tools run at once (default: 64)', wholeNumber(0, 100_000))
		.option('--allow-unauthenticated', 'listen where others can connect though nobody is asked who they are')
		.option('--drain-ms <number>', 'how long running tools may take to end', wholeNumber(0, 3_600_000), 5_000)
		.option('--json', 'log one JSON object a line')
		.option('--quiet', 'log errors only')
		.addHelpText('after', SERVE_HELP)
		.action(async (module: string, options: ServeOptions) => {
			const { serve } = await import('./serve.ts');
			end(await serve(module, options));
		});
}

function addDemoCommand(program: Command, end: Ending): void {
	withVerbose(program.command('demo'))
		.summary('see a task survive kill -9, in about 20 seconds')
		.description('Starts a server, calls a slow tool, kills the server half-way, and shows the task go on.')
		.action(async () => {
			const { demo } = await import('./demo.ts');
			end(await demo());
		});
}

function version(): string {
	const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
	return String(Reflect.get(manifest as object, 'version'));
}
