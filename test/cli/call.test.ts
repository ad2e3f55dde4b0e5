import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished, describe, expect, it } from 'vitest';
import { toReference } from '../../src/client/reference.ts';
import {
	Cli,
	ENTRY,
	QUESTIONS,
	REPORTS,
	run,
	scratch,
	serve,
	startTask,
	tasksJson,
	until,
	withSqlite,
} from './harness.ts';

type Json = Record<string, unknown>;

/** A served module, and the environment of a person with a journal of its own. */
async function served(module = REPORTS) {
	const folder = scratch();
	const db = join(folder, 'tasks.db');
	const { url, cli } = await serve(db, { module, env: { JOURNAL: join(folder, 'steps') } });
	const env = { XDG_STATE_HOME: folder };
	return { folder, db, url, env, server: cli, holdfast: (...args: string[]) => run(args, { env }) };
}

/** The arguments of a `count` of so many steps. */
const count = (steps: number, stepMs: number): string[] => [
	'--arg',
	`steps=${steps}`,
	'--arg',
	`stepMs=${stepMs}`,
];

/** The command that serves a module on stdio. */
const onStdio = (db: string, module = REPORTS): string[] => [
	...['--', process.execPath, ENTRY, 'serve', module, '--stdio', '--db', db],
];

const callsOf = async (env: Record<string, string>): Promise<Json[]> =>
	(JSON.parse((await run(['calls', '--json'], { env })).stdout) as { calls: Json[] }).calls;

describe('call', () => {
	it('prints the result on stdout, and how far it is, a line for each change, on stderr', async () => {
		const { url, env, holdfast } = await served();
		const { code, stdout, stderr } = await holdfast('call', url, 'count', ...count(3, 400));
		expect({ code, stdout }).toEqual({ code: 0, stdout: 'counted to 3\n' });
		expect(stderr).toMatch(/^ +0s {2}count {2}\[#{8}-{16}\] {2}33% {2}step 1$/m);
		expect(stderr).toMatch(/^ +\ds {2}count {2}\[#{16}-{8}\] {2}66% {2}step 2$/m);
		const lines = stderr
			.trim()
			.split('\n')
			.map((line) => line.trim().replace(/^\d+s /, ''));
		expect(new Set(lines).size, 'nothing is said twice').toBe(lines.length);
		expect(stderr).not.toContain('\u001b');
		expect(await callsOf(env), 'nothing is left in the journal').toEqual([]);
	});

	it('prints one JSON document with --json, and nothing else with --quiet', async () => {
		const { url, holdfast } = await served();
		const { code, stdout, stderr } = await holdfast(
			'call',
			url,
			'count',
			...count(1, 1),
			'--json',
			'--quiet',
		);
		expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
		expect(JSON.parse(stdout)).toEqual({
			status: 'completed',
			...{ tool: 'count', server: url, taskId: expect.any(String), reference: expect.any(String) },
			elapsedMs: expect.any(Number),
			result: { content: [{ type: 'text', text: 'counted to 1' }] },
		});
	});

	it('takes the arguments as JSON, also from stdin', async () => {
		const { url, env } = await served();
		const args = '{"steps": 2, "stepMs": 1}';
		const words = await run(['call', url, 'count', '--json-args', args], { env });
		const stdin = await run(['call', url, 'count', '--json-args', '-'], { env, input: args });
		expect([words.stdout, stdin.stdout]).toEqual(['counted to 2\n', 'counted to 2\n']);
	});

	it('sends headers and a token, and says what is missing when it is refused', async () => {
		const seen: IncomingHttpHeaders[] = [];
		const refusing = createServer((request, response) => {
			seen.push(request.headers);
			response.writeHead(401).end();
		}).listen(0, '127.0.0.1');
		onTestFinished(() => void refusing.close());
		await until('a port', () => refusing.address() ?? undefined);
		const url = `http://127.0.0.1:${(refusing.address() as AddressInfo).port}/mcp`;
		const env = { XDG_STATE_HOME: scratch(), HOLDFAST_TOKEN: 'from-env' };
		const { code, stderr } = await run(['call', url, 'x', '--header', 'X-Team: blue'], { env });
		expect(code).toBe(7);
		expect(stderr).toMatch(/wants to know who you are\. Give --token, HOLDFAST_TOKEN or --header/);
		expect(seen[0]).toMatchObject({ 'x-team': 'blue', authorization: 'Bearer from-env' });
		await run(['call', url, 'x', '--token', 'given'], { env });
		expect(seen.at(-1)).toMatchObject({ authorization: 'Bearer given' });
	});

	it('escapes what would drive a terminal, and gives it exactly with --json', async () => {
		const { url, holdfast } = await served(QUESTIONS);
		const { stdout } = await holdfast('call', url, 'broken');
		expect(stdout).toBe(String.raw`no paper \u001b[2J\u0007` + '\n');
		const json = await holdfast('call', url, 'broken', '--json');
		expect(json.stdout).not.toMatch(/(?!\n)\p{Cc}/u);
		expect(JSON.parse(json.stdout)).toMatchObject({
			result: { content: [{ text: 'no paper \u001b[2J\u0007' }] },
		});
	});
});

describe('the exit code tells how a call ended', () => {
	it('3 where the tool says that it failed', async () => {
		const { url, holdfast } = await served(QUESTIONS);
		expect(await holdfast('call', url, 'broken')).toMatchObject({
			code: 3,
			stderr: expect.stringContaining('broken says that it failed.'),
		});
	});

	it('4 for an error of the server', async () => {
		const { url, holdfast } = await served(join(import.meta.dirname, 'fixtures/failing.ts'));
		const { code, stdout, stderr } = await holdfast('call', url, 'fail', '--json');
		expect(code).toBe(4);
		expect(JSON.parse(stdout)).toMatchObject({
			status: 'failed',
			error: { code: -32050, message: 'The press is broken', data: { press: 7 } },
		});
		expect(stderr).not.toContain('error:');
		expect((await holdfast('call', url, 'fail')).stderr).toMatch(
			/error: fail failed: The press is broken \(code -32050\)\n$/,
		);
	});

	it('5 where it was cancelled by somebody else', async () => {
		const { url, db, env } = await served();
		const cli = new Cli(['call', url, 'count', ...count(9, 60_000)], { env });
		await cli.said(/step 1/);
		const { tasks } = await tasksJson(db, 'list');
		await run(['tasks', 'cancel', (tasks as { taskId: string }[])[0]?.taskId ?? '', '--db', db]);
		expect(await cli.ended()).toBe(5);
		expect(cli.stderr).toMatch(/count was cancelled/);
	});

	it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('6 after %s, which leaves it running', async (signal) => {
		const { url, db, env } = await served();
		const cli = new Cli(['call', url, 'count', ...count(9, 60_000)], { env });
		await cli.said(/step 1/);
		cli.signal(signal);
		expect(await cli.ended()).toBe(6);
		expect(cli.stdout).toMatch(/^holdfast-task:[\w-]+\n$/);
		expect(await tasksJson(db, 'list')).toMatchObject({ tasks: [{ status: 'working' }] });
	});

	it('6 when --wait-ms is over; 5 for a call that cannot be left', async () => {
		const task = await served();
		const left = await task.holdfast(
			'call',
			task.url,
			'count',
			...count(9, 60_000),
			'--wait-ms',
			'1500',
			'--json',
		);
		expect(left.code).toBe(6);
		expect(JSON.parse(left.stdout)).toMatchObject({ status: 'detached', reason: 'waited' });
		const plain = await served(QUESTIONS);
		const held = await plain.holdfast(
			'call',
			plain.url,
			'held',
			'--arg',
			'holdMs=60000',
			'--wait-ms',
			'1500',
		);
		expect(held).toMatchObject({ code: 5, stdout: '' });
	});

	it('7 where nobody can be reached, in words', async () => {
		const env = { XDG_STATE_HOME: scratch() };
		const { url, cli } = await serve(join(scratch(), 'tasks.db'));
		cli.signal('SIGKILL');
		await cli.ended();
		const call = (...args: string[]) => run(['call', ...args], { env });
		expect(await call(url, 'x')).toMatchObject({
			...{ code: 7, stdout: '' },
			stderr: `error: ${url} could not be reached: nothing listens there\n`,
		});
		expect((await call('x', '--', 'no-such-command')).stderr).toBe(
			'error: no-such-command could not be reached: there is no such command\n',
		);
		const dies = ['--', process.execPath, '-e', 'console.error("no licence \\u001b[2J"); process.exit(1)'];
		const died = await call('x', ...dies);
		expect(died.code).toBe(7);
		expect(died.stderr).toMatch(/the command ended\n {2}no licence \\u001b\[2J\n$/);
		const json = await call(url, 'x', '--json');
		expect(JSON.parse(json.stdout)).toMatchObject({ status: 'unreachable', tool: 'x' });
	});

	it('8 where the server does not know the task any more', async () => {
		const { url, holdfast } = await served();
		const pointer = { server: url, taskId: 'gone', tool: 'count', protocolVersion: '2026-07-28' };
		const reference = toReference({ ...pointer, firstSeenAtMs: Date.now(), ttlMs: null });
		const { code, stderr } = await holdfast('resume', reference);
		expect(code).toBe(8);
		expect(stderr).toMatch(/error: count is lost: The server does not know the task any more/);
	});

	it('9 where it waits for an answer and nobody is there; the question is in the JSON', async () => {
		const { url, holdfast } = await served(QUESTIONS);
		const asked = await holdfast('call', url, 'confirm', '--json');
		expect(asked.code).toBe(9);
		expect(JSON.parse(asked.stdout)).toMatchObject({
			...{ status: 'detached', reason: 'question' },
			inputRequests: { sure: { params: { message: 'Are you sure?' } } },
		});
		const declined = await holdfast('call', url, 'confirm', '--on-question', 'decline');
		expect(declined).toMatchObject({ code: 0, stdout: '{"action":"decline"}\n' });
	});

	it('3 where the server wants a model, which this command does not claim to have', async () => {
		const { url, holdfast } = await served(QUESTIONS);
		const { code, stdout } = await holdfast('call', url, 'think');
		expect(code).toBe(3);
		expect(stdout).toMatch(/cannot be asked \(sampling\/createMessage\)/);
	});

	it.each([
		[['call'], /missing required argument 'words'/],
		[
			['call', 'count'],
			/"count" is no URL. Say holdfast call http:\/\/… TOOL, or holdfast call TOOL -- COMMAND/,
		],
		[['call', 'http://x/mcp'], /Which tool\?/],
		[['call', 'http://x/mcp', 'a', 'b'], /"b" is too much\. .*--arg name=value/],
		[['call', 'http://me:secret@x/mcp', 'a'], /Use --token or --header/],
		[['call', 'a', 'b', '--', 'node'], /Before -- there is the tool alone/],
		[['call', 'a', '--'], /After -- there must be the command/],
		[['call', 'http://x/mcp', 'a', '--arg', 'x'], /--arg x: it must be name=value/],
		[['call', 'http://x/mcp', 'a', '--arg', 'x=1', '--json-args', '{}'], /either --arg or --json-args/],
		[['call', 'http://x/mcp', 'a', '--json-args', '[1]'], /must be a JSON object .* not \[1\]/],
		[['call', 'http://x/mcp', 'a', '--header', 'x'], /must be like "name: value"/],
		[['call', 'http://x/mcp', 'a', '--wait-ms', '1.5'], /whole number/],
		[['call', 'http://x/mcp', 'a', '--on-question', 'guess'], /Allowed choices are ask, decline, leave/],
		[['resume', 'x', 'http://x/mcp', '--', 'node'], /either a URL or a command/],
		[['resume', 'holdfast-task:broken'], /only a part of a reference/],
	])('2 for %j', async (args, message) => {
		const { code, stdout, stderr } = await run(args, { env: { XDG_STATE_HOME: scratch() } });
		expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
		expect(stderr).toMatch(message);
		expect(stderr).not.toMatch(/^\s+at /m);
	});

	it('2 for a tool that is not there, with those that are, and for an argument of a wrong type', async () => {
		const { url, holdfast } = await served();
		expect((await holdfast('call', url, 'cont')).stderr).toBe(
			`error: ${url} has no tool "cont". It has: count, ask.\n`,
		);
		const { code, stderr } = await holdfast('call', url, 'count', '--arg', 'steps=x');
		expect(code).toBe(2);
		expect(stderr).toBe('error: --arg steps=x: the tool wants a number.\n');
	});
});

describe('resume', () => {
	it('comes back to a detached call from a fresh process, by its reference or its task id', async () => {
		const { url, env, holdfast } = await served();
		const detached = await holdfast('call', url, 'count', ...count(2, 400), '--detach', '--quiet');
		expect(detached).toMatchObject({ code: 6, stderr: '' });
		const [open] = await callsOf(env);
		expect(open).toMatchObject({
			status: 'open',
			tool: 'count',
			server: url,
			isDelivered: false,
			endedAt: null,
		});
		expect(`${open?.['reference'] as string}\n`).toBe(detached.stdout);
		const table = await holdfast('calls');
		expect(table.stdout).toMatch(/^TASK +AGE +STATUS +TOOL +SERVER\n\w+ +\d+s +open +count +http/);
		const back = await holdfast('resume', open?.['taskId'] as string);
		expect(back).toMatchObject({ code: 0, stdout: 'counted to 2\n' });
		expect(await callsOf(env)).toEqual([]);
		// The server keeps the result for a while, so whoever has the reference can read it again.
		expect(await holdfast('resume', detached.stdout.trim())).toMatchObject({
			code: 0,
			stdout: 'counted to 2\n',
		});
	});

	it('prints the result of a call whose command was killed', async () => {
		const { url, env, folder, holdfast } = await served();
		const cli = new Cli(['call', url, 'count', ...count(4, 400)], { env });
		await cli.said(/step 2/);
		cli.signal('SIGKILL');
		expect(await cli.ended()).toBe('SIGKILL');
		const { code, stdout } = await holdfast('resume');
		expect(code).toBe(0);
		expect(stdout).toMatch(/^== count \w+\ncounted to 4\n$/);
		expect(readFileSync(join(folder, 'steps'), 'utf8')).toBe('step-1\nstep-2\nstep-3\nstep-4\n');
	});

	it('prints a result that the journal has without asking the server', async () => {
		const { url, env, folder, server, holdfast } = await served();
		await holdfast('call', url, 'count', ...count(1, 60_000), '--detach');
		server.signal('SIGKILL');
		await server.ended();
		// As a crash leaves it between the end of the task and the printing of its result.
		const outcome = JSON.stringify({
			kind: 'completed',
			result: { content: [{ type: 'text', text: 'kept' }] },
		});
		withSqlite(join(folder, 'holdfast/calls.db'), (journal) =>
			journal.prepare('UPDATE tasks SET outcome = ?, ended_at_ms = ?').run(outcome, Date.now()),
		);
		expect(await callsOf(env)).toMatchObject([{ status: 'completed', isDelivered: false }]);
		const [call] = await callsOf(env);
		expect(await holdfast('resume', String(call?.['taskId']))).toMatchObject({ code: 0, stdout: 'kept\n' });
	});

	it('comes back to all calls of all servers at once; a server that is away keeps its own', async () => {
		const first = await served();
		const second = await serve(join(scratch(), 'tasks.db'));
		const gone = await serve(join(scratch(), 'tasks.db'));
		for (const url of [first.url, second.url, gone.url])
			await first.holdfast('call', url, 'count', ...count(1, 300), '--detach');
		gone.cli.signal('SIGKILL');
		await gone.cli.ended();
		const { code, stdout } = await first.holdfast('resume', '--json');
		expect(code).toBe(7);
		const { calls } = JSON.parse(stdout) as { calls: Json[] };
		const byServer = Object.fromEntries(calls.map(({ server, status }) => [server, status]));
		expect(byServer).toEqual({
			[first.url]: 'completed',
			[second.url]: 'completed',
			[gone.url]: 'unreachable',
		});
		expect(await callsOf(first.env)).toMatchObject([{ server: gone.url, status: 'open' }]);
	});

	it('says so when there is nothing to come back to', async () => {
		const env = { XDG_STATE_HOME: scratch() };
		expect(await run(['resume'], { env })).toEqual({
			...{ code: 0, stdout: '', stderr: 'No call is open, and no result waits.\n' },
		});
		expect(await run(['calls'], { env: { XDG_STATE_HOME: scratch() } })).toMatchObject({
			code: 0,
			stdout: '',
		});
		const unknown = await run(['resume', 'nope'], { env });
		expect(unknown).toMatchObject({ code: 1, stderr: expect.stringMatching(/journal has no call nope/) });
	});

	it('finds a server that has moved, where it is told', async () => {
		const { url, db, server, holdfast } = await served();
		const { stdout } = await holdfast('call', url, 'count', ...count(2, 500), '--detach');
		server.signal('SIGTERM');
		await server.ended();
		const moved = await serve(db);
		expect(await holdfast('resume', stdout.trim(), moved.url)).toMatchObject({
			code: 0,
			stdout: 'counted to 2\n',
		});
	});

	it('takes a task that another client started, by a reference made of its id', async () => {
		const { url, holdfast } = await served();
		const taskId = await startTask(url, 'count', { steps: 1, stepMs: 1 });
		const pointer = { server: url, taskId, tool: 'count', protocolVersion: '2026-07-28' };
		const reference = toReference({ ...pointer, firstSeenAtMs: Date.now(), ttlMs: null });
		expect(await holdfast('resume', reference)).toMatchObject({ code: 0, stdout: 'counted to 1\n' });
	});
});

describe('a server that is a command', () => {
	it('is started for the call, and ended after it', async () => {
		const folder = scratch();
		const env = { XDG_STATE_HOME: folder };
		const { code, stdout, stderr } = await run(
			['call', 'count', ...count(2, 100), ...onStdio(join(folder, 'tasks.db'))],
			{ env },
		);
		expect({ code, stdout }).toEqual({ code: 0, stdout: 'counted to 2\n' });
		expect(stderr, 'its log is not mixed in').not.toMatch(/serving on stdio/);
	});

	it('is started again by resume, in the folder that it had', async () => {
		const folder = scratch();
		const env = { XDG_STATE_HOME: folder };
		const detached = await run(['call', 'count', ...count(3, 300), '--detach', ...onStdio('tasks.db')], {
			...{ env, cwd: folder },
		});
		expect(detached.code).toBe(6);
		expect(detached.stderr).toMatch(/server ends with this command; resume starts it again/);
		const back = await run(['resume', detached.stdout.trim()], { env });
		expect(back).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
	});

	it('is started again when it dies in the middle, and the task goes on', async () => {
		const folder = scratch();
		const pidFile = join(folder, 'pid');
		const preload = join(folder, 'note-pid.cjs');
		writeFileSync(preload, `require('fs').writeFileSync(${JSON.stringify(pidFile)}, String(process.pid))`);
		const [dashes = '', node = '', ...rest] = onStdio(join(folder, 'tasks.db'));
		const JOURNAL = join(folder, 'steps');
		const cli = new Cli(['call', 'count', ...count(4, 400), dashes, node, '--require', preload, ...rest], {
			env: { XDG_STATE_HOME: folder, JOURNAL },
		});
		await cli.said(/step 2/);
		process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL');
		await cli.said(/has ended; starting it again/);
		expect(await cli.ended()).toBe(0);
		expect(cli.stdout).toBe('counted to 4\n');
		const steps = readFileSync(JOURNAL, 'utf8').trim().split('\n');
		expect(steps.filter((step) => step === 'step-1')).toHaveLength(1);
	});
});

describe('what is kept', () => {
	it('can be read by its owner only', async () => {
		const { url, folder, holdfast } = await served();
		await holdfast('call', url, 'count', ...count(1, 60_000), '--detach');
		const home = join(folder, 'holdfast');
		const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
		expect(mode(home)).toBe('700');
		expect(mode(join(home, 'calls.db'))).toBe('600');
		expect(mode(join(home, 'calls.db.servers'))).toBe('700');
	});

	it('has no token, no header, no query and no secret of a command', async () => {
		const { url, folder, holdfast } = await served();
		const secrets = ['--token', 'tok-hush', '--header', 'x-key: head-hush'];
		await holdfast('call', `${url}?key=query-hush`, 'count', ...count(1, 60_000), '--detach', ...secrets);
		const env = { XDG_STATE_HOME: folder, API_KEY: 'env-hush' };
		await run(['call', 'confirm', '--detach', ...onStdio(join(folder, 'b.db'), QUESTIONS)], { env });
		const home = join(folder, 'holdfast');
		const files = readdirSync(home, { recursive: true, encoding: 'utf8' }).map((file) => join(home, file));
		const bytes = files
			.filter((file) => statSync(file).isFile())
			.map((file) => readFileSync(file, 'latin1'))
			.join('\n');
		expect(bytes).toContain(url);
		expect(bytes).not.toContain('hush');
		const { code, stderr } = await holdfast('resume');
		expect(code, 'the greatest').toBe(9);
		expect(stderr).toMatch(/a part that may be a secret was not kept\. Give it again/);
		expect(stderr, 'the other call is come back to all the same').toMatch(/confirm waits for an answer/);
	});

	it('is where --journal says', async () => {
		const { url, folder, holdfast } = await served();
		const journal = join(folder, 'mine/calls.db');
		await holdfast('call', url, 'count', ...count(1, 60_000), '--detach', '--journal', journal);
		expect(existsSync(join(folder, 'holdfast'))).toBe(false);
		const { stdout } = await holdfast('calls', '--json', '--journal', journal);
		expect(JSON.parse(stdout)).toMatchObject({ calls: [{ tool: 'count', status: 'open' }] });
	});
});
