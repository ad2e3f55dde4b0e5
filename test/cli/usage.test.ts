import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { REPORTS, run } from './harness.ts';

describe('help and version', () => {
	it.each([
		[['--help']],
		[['serve', '--help']],
		[['tasks', '--help']],
		[['tasks', 'answer', '--help']],
		[['call', '--help']],
		[['resume', '--help']],
		[['calls', '--help']],
		[['demo', '--help']],
	])('%j goes to stdout, names the exit codes and is no failure', async (args) => {
		const { code, stdout, stderr } = await run(args);
		expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
		expect(stdout).toMatch(/^Usage: holdfast/);
		expect(stdout).toMatch(
			/0 {2}it worked\n {2}1 {2}it failed.*\n {2}2 {2}the command was called in a wrong way/,
		);
	});

	it('prints the version of the package', async () => {
		const manifest = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
			version: string;
		};
		expect(await run(['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
	});
});

describe('a wrong call', () => {
	it.each([
		[[], /Usage: holdfast/],
		[['nonsense'], /unknown command 'nonsense'/],
		[['serve'], /missing required argument 'module'/],
		[['serve', 'x.ts', '--prot', '1'], /unknown option '--prot'.*\n.*--port/],
		[['serve', 'x.ts', '--port', '99999'], /--port.*99999.*whole number from 0 to 65535/],
		[['serve', 'x.ts', '--port', '1e3'], /whole number/],
		[['serve', 'x.ts', '--path', 'mcp'], /--path mcp: it must begin with \//],
		[['serve', REPORTS, '--db', ':memory:'], /is not the path of a file/],
		[['tasks'], /Usage: holdfast tasks/],
		[
			['tasks', 'list', '--status', 'pending'],
			/one of working, input_required, completed, failed, cancelled/,
		],
		[['tasks', 'list', '--limit', '0'], /whole number from 1/],
		[['tasks', 'show'], /missing required argument 'task-id'/],
		[['tasks', 'answer', 'a', 'b'], /either --accept .* or --decline/],
		[['tasks', 'answer', 'a', 'b', '--accept', '{}', '--decline'], /either --accept .* or --decline/],
		[['tasks', 'answer', 'a', 'b', '--accept', 'yes'], /must be a JSON object/],
		[['demo', 'fast'], /too many arguments/],
	])('%j exits with 2 and says what is wrong', async (args, message) => {
		const { code, stdout, stderr } = await run(args);
		expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
		expect(stderr).toMatch(message);
		expect(stderr).not.toMatch(/^\s+at /m);
	});
});
