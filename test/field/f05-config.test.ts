/** F05: a number whose unit is mistaken, and a wrong value that quietly becomes "no limit". */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../../src/gateway/config-file.ts';
import { Cli, run } from '../cli/harness.ts';

const config = (line: string): string => `upstreams:
  reports:
    command: [node, reports.js]
${line}
`;

function problemsOf(text: string, environment: Record<string, string> = {}): readonly string[] {
	try {
		readConfig(text, 'gateway.yaml', environment);
		return [];
	} catch (error) {
		return error instanceof Error ? error.message.split('\n') : [];
	}
}

function configFile(text: string): string {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-f05-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const file = join(folder, 'gateway.yaml');
	writeFileSync(file, text);
	return file;
}

describe('F05: durations in the configuration', () => {
	it.each(['0.5', '1', '60', '-1', '.nan', '1e12', '.inf', '"60"', '60s', 'null', 'true'])(
		'F05: startTimeoutMs: %s is refused with its line and the reason',
		(value) => {
			const problems = problemsOf(config(`    startTimeoutMs: ${value}`));
			expect(problems).toHaveLength(1);
			expect(problems[0]).toMatch(/^gateway\.yaml:4: upstreams\.reports\.startTimeoutMs: \S+/);
		},
	);

	it.each(['500', '60000'])('F05: startTimeoutMs: %s is taken as milliseconds', (value) => {
		const { upstreams } = readConfig(config(`    startTimeoutMs: ${value}`), 'gateway.yaml', {});
		expect(upstreams['reports']?.startTimeoutMs).toBe(Number(value));
	});

	it.each(['timeout', 'startTimeout', 'startTimeoutSeconds', 'budget'])(
		'F05: a key without the unit that is meant, %s, is refused',
		(key) => {
			const [problem = ''] = problemsOf(config(`    ${key}: 60`));
			expect(problem).toMatch(/^gateway\.yaml:4: /);
			expect(problem).toContain(key);
		},
	);

	it('F05: a bare timeout is answered with where the unit belongs', () => {
		expect(problemsOf(config('    timeout: 60'))[0]).toContain('startTimeoutMs');
	});

	it("F05: a host's budget of null is for ever, as it says, and nothing else is", () => {
		const hosts = (budgetMs: string): string => `hosts:\n  my-host: { budgetMs: ${budgetMs} }\n${config('')}`;
		expect(problemsOf(hosts('null'))).toEqual([]);
		for (const value of ['0', '0.5', '60', '-1', '.nan', '1e12', '"60"'])
			expect([value, problemsOf(hosts(value))[0]]).toEqual([
				value,
				expect.stringMatching(/^gateway\.yaml:2: hosts\.my-host\.budgetMs: /),
			]);
	});

	it('F05: everything that is wrong is said at once, each with its line', () => {
		const text = `listen: { port: 70000 }\nupstreams:\n  a: { url: "http://x/\${HOST}", startTimeoutMs: 1 }\n  b: {}\n`;
		const lines = problemsOf(text).map((problem) => /^gateway\.yaml:(\d+): /.exec(problem)?.[1]);
		expect(lines.map(Number).sort((a, b) => a - b)).toEqual([1, 3, 3, 4]);
	});

	it('F05: a file that is no YAML is refused with the line', () => {
		expect(problemsOf('upstreams:\n  a: {\n')[0]).toMatch(/^gateway\.yaml:\d+: /);
	});

	it.each([
		['', 'gateway.yaml: upstreams: needs at least one upstream'],
		['upstreams:', 'gateway.yaml:1: upstreams: needs at least one upstream'],
		['upstreams: {}', 'gateway.yaml:1: upstreams: needs at least one upstream'],
		['upstreams:\n  a: *nowhere', /^gateway\.yaml: Unresolved alias .*nowhere$/],
		[
			'upstreams: { a: { command: x } }\n---\nb: 1',
			'gateway.yaml:2: the file may have one document, and a second one begins here',
		],
		['upstreams:\n  a b: { command: x }', /^gateway\.yaml:2: upstreams\.a b: a name is made of letters/],
		['upstreams:\n  1: { command: x, b: 1 }', /^gateway\.yaml:2: upstreams\.1: Unrecognized key: "b"/],
		[
			config('    headers: { a: b }'),
			/^gateway\.yaml:2: upstreams\.reports: headers and transport are for a url/,
		],
		['upstreams:\n  a: { url: "http://b/", args: [c] }', /^gateway\.yaml:2: upstreams\.a: args, env and cwd/],
		[
			'upstreams:\n  a: { url: "http://b:c@d/" }',
			/^gateway\.yaml:2: upstreams\.a\.url: must have no name and/,
		],
		[
			'upstreams:\n  a: { url: "ftp://b/" }',
			'gateway.yaml:2: upstreams.a.url: must be a URL with http or https',
		],
		['upstreams:\n  a: { url: "http://b/", headers: { c d: e } }', /^gateway\.yaml:2: .*as HTTP allows/],
	])('F05: %j is refused, and it is said what is wrong', (text, problem) => {
		const problems = problemsOf(text);
		expect(problems).toHaveLength(1);
		expect(problems[0]).toEqual(typeof problem === 'string' ? problem : expect.stringMatching(problem));
	});

	it('F05: the command prints what is in effect, defaults included, without secrets', async () => {
		const file = configFile(`listen: { port: 0 }
upstreams:
  search: { url: "http://127.0.0.1:1/mcp", headers: { Authorization: "Bearer \${TOKEN}" } }
`);
		const cli = new Cli(['gateway', '--config', file, '--json'], { env: { TOKEN: 'a-secret-token' } });
		await cli.said(/"msg":"listening"/);
		const [line = ''] = cli.stderr.split('\n');
		expect(JSON.parse(line)).toMatchObject({
			config: { upstreams: { search: { startTimeoutMs: 30_000, maxConcurrentCalls: 64 } } },
		});
		expect(cli.stderr).not.toContain('a-secret-token');
		cli.signal('SIGTERM');
		expect(await cli.ended()).toBe(0);
	});

	it('F05: what is printed has no secret from the environment or in a command or URL', async () => {
		const file = configFile(`listen: { port: 0 }
upstreams:
  search: { url: "http://127.0.0.1:1/mcp?team=\${SECRET}" }
  mail: { url: "http://127.0.0.1:1/mcp?key=in-the-file" }
  reports: { command: [node, reports.js, --token, in-the-file, "\${SECRET}"], args: ["--key=\${SECRET}"] }
`);
		const cli = new Cli(['gateway', '--config', file], { env: { SECRET: 'from-outside' } });
		await cli.said(/listening/);
		expect(cli.stderr).toContain('127.0.0.1:1/mcp');
		expect(cli.stderr).toContain('reports.js');
		expect(cli.stderr).not.toMatch(/from-outside|in-the-file/);
		cli.signal('SIGTERM');
		expect(await cli.ended()).toBe(0);
	});

	it('F05: a place to listen that cannot be taken is told by the key of the file', async () => {
		const file = configFile('listen: { host: 0.0.0.0, port: 0 }\nupstreams: { a: { command: node } }\n');
		const { code, stderr } = await run(['gateway', '--config', file]);
		expect(code).toBe(2);
		expect(stderr).toContain('listen.allowUnauthenticated: true');
		expect(stderr).not.toContain('--host');
	});

	it('F05: the command does not start with a wrong value, and says why', async () => {
		const file = configFile(config('    startTimeoutMs: 60'));
		const { code, stderr } = await run(['gateway', '--config', file]);
		expect(code).toBe(1);
		expect(stderr).toMatch(/gateway\.yaml:4: upstreams\.reports\.startTimeoutMs: /);
	});

	it('F05: --budget-ms of the proxy takes whole milliseconds only', async () => {
		for (const value of ['0.5', '60', '-1', 'NaN', '1e12', '60s']) {
			const { code, stderr } = await run(['proxy', `--budget-ms=${value}`, '--', 'node']);
			expect([value, code, stderr]).toEqual([value, 2, expect.stringContaining('budget-ms')]);
		}
	});
});
