import { type Command, Option } from 'commander';
import { type Ending, wholeNumber, withVerbose } from './arguments.ts';
import { header, readTarget } from './client-commands.ts';
import type { DoctorOptions } from './doctor.ts';
import { UsageError } from './failure.ts';

const HELP = `
Examples:
  holdfast doctor https://example.com/mcp --header "authorization: Bearer …"
  holdfast doctor -- npx -y some-mcp-server --its-own-options

No tool is called. The proposals for folding are made from names: read docs/folding.md before you use one.`;

/** Adds `holdfast doctor`. */
export function addDoctorCommand(
	program: Command,
	end: Ending,
	serverCommand: readonly string[] | undefined,
): void {
	withVerbose(program.command('doctor'))
		.summary('look at a server before it is put behind the gateway')
		.description(
			'Connects to a server once and says what it supports, and which of its tools belong together.',
		)
		.argument('[url]', 'URL of the server; or give its command after --')
		.option('--header <name: value>', 'send this with each HTTP request; may be given several times', header)
		.addOption(new Option('--transport <kind>', 'of a URL').choices(['http', 'sse']).default('http'))
		.option(
			'--limit-ms <number>',
			'how long the server may take to answer',
			wholeNumber(100, 600_000),
			30_000,
		)
		.option('--json', 'print JSON')
		.addHelpText('after', HELP)
		.action(async (url: string | undefined, options: DoctorOptions) => {
			const target = readTarget(url, serverCommand);
			if (!target)
				throw new UsageError('Which server? Say holdfast doctor URL, or holdfast doctor -- COMMAND.');
			const { doctor } = await import('./doctor.ts');
			end(await doctor(target, options));
		});
}
