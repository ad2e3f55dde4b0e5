import type { Command } from 'commander';
import { type Ending, wholeNumber, withVerbose } from './arguments.ts';
import { header, readTarget } from './client-commands.ts';
import { UsageError } from './failure.ts';
import type { GatewayCommandOptions } from './gateway.ts';
import type { ProxyOptions } from './proxy.ts';

const PROXY_HELP = `
Put it into a host's configuration in place of the server:
  holdfast proxy -- npx -y my-slow-server --its-own-options
  holdfast proxy https://example.com/mcp

Hosts that know Tasks get tasks. For others a long call is held as long as the host waits, then it is answered with a
task_id with which the model waits on. Nothing is lost or run twice on the way.`;

const GATEWAY_HELP = `
The smallest configuration:
  upstreams:
    reports: { command: [npx, -y, my-slow-server] }
    search: { url: "https://example.com/mcp", headers: { Authorization: "Bearer \${TOKEN}" } }
Every key and its default is in docs/gateway.md.`;

/** Adds `holdfast proxy` and `holdfast gateway`. */
export function addGatewayCommands(
	program: Command,
	end: Ending,
	serverCommand: readonly string[] | undefined,
): void {
	withVerbose(program.command('proxy'))
		.summary('stand between a host and a server whose calls take long')
		.description('Serves one host on stdin and stdout, with one server behind it.')
		.argument('[url]', 'URL of the server; or give its command after --')
		.option('--header <name: value>', 'send this with each HTTP request; may be given several times', header)
		.option(
			'--db <file>',
			'SQLite file that keeps the tasks (default: one for each server, in ~/.local/state)',
		)
		.option(
			'--budget-ms <number>',
			'how long a plain call is held, whatever the host',
			wholeNumber(1_000, 2_147_000_000),
		)
		.option('--json', 'log one JSON object a line')
		.option('--quiet', 'log errors only')
		.addHelpText('after', PROXY_HELP)
		.action(async (url: string | undefined, options: ProxyOptions) => {
			const target = readTarget(url, serverCommand);
			if (!target)
				throw new UsageError('Which server? Say holdfast proxy URL, or holdfast proxy -- COMMAND.');
			const { proxy } = await import('./proxy.ts');
			end(await proxy(target, options));
		});
	withVerbose(program.command('gateway'))
		.summary('serve many servers at one endpoint')
		.description('Serves the servers of a configuration file at one endpoint over Streamable HTTP.')
		.requiredOption('--config <file>', 'configuration in YAML')
		.option('--drain-ms <number>', 'how long running calls may take to end', wholeNumber(0, 3_600_000), 5_000)
		.option('--json', 'log one JSON object a line')
		.option('--quiet', 'log errors only')
		.addHelpText('after', GATEWAY_HELP)
		.action(async (options: GatewayCommandOptions) => {
			const { gateway } = await import('./gateway.ts');
			end(await gateway(options));
		});
}
