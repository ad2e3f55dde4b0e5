/** `holdfast doctor`, as a person runs it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { foldSchema, FOLD_PRESETS, type FoldPresetName } from '../../src/gateway/folding/presets.ts';
import { proposalText, proposeFolds } from '../../src/gateway/folding/propose.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { run } from '../cli/harness.ts';
import { atEnd, serveStandIn } from './folding-rig.ts';
import { texts } from './folding-stand-in.ts';
import { FAMILIES } from './folding-stand-ins.ts';

const STAND_IN = join(import.meta.dirname, 'folding-stand-in-process.ts');

/** A tool with arguments of these names, all of them needed. */
function tool(name: string, args: readonly string[] = [], description = ''): JsonObject {
	const properties = Object.fromEntries(args.map((arg) => [arg, { type: 'string' }]));
	return { name, description, inputSchema: { type: 'object', properties, required: args } };
}

/** The tools of the families that are proposed, start first. */
function proposed(...tools: readonly JsonObject[]): readonly string[] {
	return proposeFolds(tools).map(({ fold }) =>
		typeof fold === 'string'
			? fold
			: `${fold.start.tool} > ${fold.check.tool}${fold.cancel ? ` x ${fold.cancel.tool}` : ''}`,
	);
}

describe('a server that works', () => {
	test('on stdio is told about in words', async () => {
		const { code, stdout } = await run(['doctor', '--', process.execPath, STAND_IN]);
		expect(code).toBe(0);
		expect(stdout).toMatch(/^Server +stand-in 1\.0\.0$/m);
		expect(stdout).toMatch(/^Revision +2026-07-28$/m);
		expect(stdout).toMatch(/^Tasks +none/m);
		expect(stdout).toMatch(/^Handshake +\d+ ms$/m);
		expect(stdout).toMatch(/within 10 s/);
		expect(stdout).toMatch(/^ {2}start_report +no hints/m);
		expect(stdout).toContain('Nothing is folded by itself.');
	});

	test('over HTTP is told about in JSON, and none of its tools is called', async () => {
		const server = await serveStandIn({
			...FAMILIES['apify-actor']().tools,
			slow: {
				properties: { timeout_seconds: { type: 'number' } },
				annotations: { readOnlyHint: true },
				description: 'Long-running: may take 10 minutes.',
				call: () => texts(''),
			},
		});
		const { code, stdout } = await run(['doctor', server.url, '--json']);
		expect(code).toBe(0);
		const report = JSON.parse(stdout) as Record<string, unknown>;
		expect(report).toMatchObject({
			...{ name: 'stand-in', protocolVersion: '2026-07-28', tasks: 'none', counts: { tools: 5 } },
			start: [{ limitMs: 500 }, { limitMs: 2_000, isMet: true }, { limitMs: 10_000, isMet: true }],
			proposals: [{ fold: 'apify-actor', doubts: [] }],
		});
		expect(report['tools']).toContainEqual({
			name: 'slow',
			hints: { readOnlyHint: true },
			mayTakeLong: [
				'its description says that it runs long',
				'its description speaks of minutes or hours',
				'it takes timeout_seconds',
			],
		});
		expect(server.calls).toEqual([]);
	});

	test('gets a proposal that can be put into a configuration as it is', async () => {
		const { stdout } = await run(['doctor', '--', process.execPath, STAND_IN]);
		const yaml = stdout.slice(stdout.indexOf('fold:'));
		const [mapping] = foldSchema.parse((parse(yaml) as { fold: unknown }).fold);
		expect(mapping).toMatchObject({
			start: { tool: 'start_report' },
			check: { tool: 'get_report', arguments: { job: '{job}' } },
			cancel: { tool: 'cancel_report' },
		});
	});
});

describe('a server that does not work', () => {
	test.each<[string, readonly string[], RegExp]>([
		['a command that does not exist', ['no-such-server'], /does not exist, or is not on the PATH/],
		[
			'a command that ends',
			['sh', '-c', 'echo no key >&2; exit 3'],
			/ended before it had answered.*wrote to stderr:\nno key/s,
		],
		[
			'a command that says something else',
			['sh', '-c', 'echo Listening'],
			/no MCP: "Listening"\. Logs belong on stderr/,
		],
	])('as %s is diagnosed', async (_what, command, words) => {
		const { code, stdout, stderr } = await run(['doctor', '--', ...command]);
		expect(code).toBe(1);
		expect(stdout).toBe('');
		expect(stderr).toMatch(words);
	});

	test('as a command that never answers is given up in time', async () => {
		const { code, stderr } = await run(['doctor', '--limit-ms', '300', '--', 'sleep', '60']);
		expect(code).toBe(1);
		expect(stderr).toContain('it did not answer within 300 ms');
	});

	test.each<[number, RegExp]>([
		[401, /wants to know who calls/],
		[404, /no MCP endpoint at this path/],
	])('that answers with HTTP %i is diagnosed', async (status, words) => {
		const http = createServer((_request, response) => response.writeHead(status).end('no'));
		await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
		atEnd(() => http.close());
		const { port } = http.address() as AddressInfo;
		const { code, stderr } = await run(['doctor', `http://127.0.0.1:${port}/`]);
		expect(code).toBe(1);
		expect(stderr).toMatch(words);
	});

	test('that nobody serves is diagnosed', async () => {
		const { stderr } = await run(['doctor', 'http://127.0.0.1:1/mcp']);
		expect(stderr).toContain('Nothing listens there');
	});
});

describe('what is proposed', () => {
	test.each(Object.keys(FOLD_PRESETS) as FoldPresetName[])('is the preset for the tools of %s', (name) => {
		const tools = Object.entries(FAMILIES[name]().tools).map(([own, { properties, required = [] }]) => ({
			...{ name: own, inputSchema: { type: 'object', properties, required } },
		}));
		expect(proposed(...tools)).toContain(name);
	});

	test('is a family whose names go together', () => {
		expect(
			proposed(
				tool('start_research_job', ['topic']),
				tool('get_research_job', ['job_id']),
				tool('cancel_research_job', ['job_id']),
				tool('list_research_jobs'),
			),
		).toEqual(['start_research_job > get_research_job x cancel_research_job']);
		expect(proposed(tool('generateVideo', ['prompt']), tool('getVideoStatus', ['videoId']))).toEqual([
			'generateVideo > getVideoStatus',
		]);
	});

	test('is nothing for tools that read what is there at once', () => {
		expect(
			proposed(
				tool('create_issue', ['title']),
				tool('get_issue', ['issue_number']),
				tool('create_directory', ['path']),
				tool('get_file_info', ['path']),
			),
		).toEqual([]);
	});

	test('names what else it may be, and what is a guess', () => {
		const [first] = proposeFolds([
			tool('start_import_job', ['uri']),
			tool('get_import_job_status', ['job_id']),
			tool('describe_import_job', ['job_id'], 'Poll every 20 seconds.'),
		]);
		expect(first?.doubts).toEqual([
			'Where start_import_job says job_id is a guess: call it once and look.',
			'Say readOnly: true under check if get_import_job_status changes nothing.',
			'The check may be describe_import_job instead.',
		]);
		expect(proposalText(first ? [first] : [])).toMatch(
			/^fold:\n {2}# Where start_import_job .*\n(.*\n)* {2}- start:/,
		);
	});

	test('does what an author asks for between two checks', () => {
		const [only] = proposeFolds([
			tool('start_scan', ['path']),
			tool('get_scan_status', ['scan_id'], 'Poll every 15-30 seconds.'),
		]);
		expect(only?.fold).toMatchObject({ pollMs: 15_000 });
	});

	test('takes the path of the handle from the schema of the reply', () => {
		const start = {
			...tool('start_scan', ['path']),
			outputSchema: { properties: { scanId: {}, title: {} } },
		};
		const [only] = proposeFolds([start, tool('get_scan_status', ['scan_id'])]);
		expect(only?.fold).toMatchObject({ ids: { scan_id: 'scanId' } });
	});
});
