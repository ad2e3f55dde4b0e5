import { Command, CommanderError, Option } from 'commander';
import {
	type Ending,
	markTaskIds,
	type StoreOptions,
	wholeNumber,
	withDatabase,
	withStore,
	withVerbose,
} from './arguments.ts';
import { addClientCommands, CALL_EXIT_HELP } from './client-commands.ts';
import { addGatewayCommands } from './gateway-commands.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { describeFailure, EXIT_CODES, exitCodeOf } from './failure.ts';
import type { ServeOptions } from './serve.ts';
import { addTasksCommand } from './tasks.ts';
import { plain } from './terminal.ts';
import { version } from './version.ts';

const EXIT_HELP = `
Exit codes:
  0  it worked
  1  it failed; stderr says what was wrong
  2  the command was called in a wrong way`;

/** Commands that watch calls, with more to say by their exit codes. */
const WATCHING = ['call', 'resume'];

/** Commands after which the command of a server may stand, behind `--`. */
const BEFORE_A_COMMAND = [...WATCHING, 'proxy', 'doctor'];

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
	if (!['serve', 'proxy'].includes(argv[0] ?? ''))
		process.stdout.on('error', () => process.exit(EXIT_CODES.failed));
	const { own, serverCommand } = splitCommand(argv);
	const program = createProgram((code) => {
		exitCode = code;
	}, serverCommand);
	try {
		await program.parseAsync(markTaskIds(own), { from: 'user' });
		return exitCode;
	} catch (error) {
		// commander has said what is wrong by now.
		if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage;
		process.stderr.write(describeFailure(error, own.includes('--verbose')));
		return exitCodeOf(error);
	}
}

/** Takes the command of a server off, which is what stands after `--` and has options of its own. */
function splitCommand(argv: readonly string[]): {
	readonly own: readonly string[];
	readonly serverCommand: readonly string[] | undefined;
} {
	const at = BEFORE_A_COMMAND.includes(argv[0] ?? '') ? argv.indexOf('--') : -1;
	return at < 0
		? { own: argv, serverCommand: undefined }
		: { own: argv.slice(0, at), serverCommand: argv.slice(at + 1) };
}

function createProgram(end: Ending, serverCommand: readonly string[] | undefined): Command {
	const program = new Command('holdfast')
		.description(
			'Long-running MCP tool calls that survive crashes, restarts, timeouts and people who answer tomorrow.',
		)
		.version(version(), '-V, --version', 'print the version')
		.helpOption('-h, --help', 'print this help')
		.addHelpText('afterAll', ({ command }) =>
			WATCHING.includes(command.name()) ? EXIT_HELP + CALL_EXIT_HELP : EXIT_HELP,
		)
		.showHelpAfterError('(--help shows what is possible)')
		.configureOutput({ writeErr: (text) => process.stderr.write(plain(text, '\n')) })
		// Copied to the commands below, so it comes before them.
		.exitOverride();
	addServeCommand(program, end);
	addTasksCommand(program, end);
	addMigrateCommand(program, end);
	addClientCommands(program, end, serverCommand);
	addGatewayCommands(program, end, serverCommand);
	addDemoCommand(program, end);
	addDoctorCommand(program, end, serverCommand);
	return program;
}

function addServeCommand(program: Command, end: Ending): void {
	withStore(withVerbose(program.command('serve')))
		.summary('serve the tools of a module as durable tasks')
		.description('Serves the tools of a module as durable tasks, over Streamable HTTP or stdio.')
		.argument('<module>', 'JavaScript or TypeScript file that exports `server`')
		.option('--stdio', 'serve one client on stdin and stdout instead of HTTP')
		.addOption(
			new Option(
				'--role <role>',
				'what this process does: `requests` answers and runs no tools, `worker` runs tools and listens nowhere',
			)
				.choices(['all', 'requests', 'worker'])
				.default('all'),
		)
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

function addMigrateCommand(program: Command, end: Ending): void {
	withDatabase(withVerbose(program.command('migrate')), 'address of the database: postgres://…')
		.summary('create the tables in a database, or bring them up to date')
		.description(
			'Creates the tables in a database, or brings them up to date; run it once, before the servers.',
		)
		.action(async (options: Omit<StoreOptions, 'db'>) => {
			const { migrateStore } = await import('./store.ts');
			process.stdout.write(`${await migrateStore(options)}\n`);
			end(EXIT_CODES.ok);
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
