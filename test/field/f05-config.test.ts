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
