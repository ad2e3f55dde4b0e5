/** Programs that speak an earlier protocol version, as they are, against the server. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client as NewerClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as NewerStdioTransport } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Fixture, overHttp } from '../support/fixture-server.ts';
import { field } from '../support/legacy-wire.ts';
import { eventually, TASKS } from '../support/wire.ts';

const root = join(import.meta.dirname, '../..');
const home = mkdtempSync(join(tmpdir(), 'holdfast-peers-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Nothing of the machine's user: peers keep catalogs and tokens in their home. */
const env = { PATH: process.env['PATH'] ?? '', HOME: home, MCP_REMOTE_CONFIG_DIR: home };

let fixture: Fixture | undefined;
const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
	for (const close of closing.splice(0)) await close();
	await fixture?.close();
	fixture = undefined;
});

async function serve(): Promise<string> {
	fixture = await overHttp();
	return fixture.url ?? '';
}

/** The SDK's 1.x client, which is asked and accepts. */
async function sdkClient(transport: Transport): Promise<{ client: Client; asked: string[] }> {
	const asked: string[] = [];
	const client = new Client(
		{ name: 'sdk-1', version: '1' },
		{ capabilities: { elicitation: { form: {} }, tasks: { list: {}, cancel: {} } } },
	);
	client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
		asked.push(params.message);
		return { action: 'accept', content: { answer: 'yes' } };
	});
	await client.connect(transport);
	closing.push(() => client.close());
	return { client, asked };
}

/** What a task stream of the 1.x client said, and with what it ended. */
async function stream(client: Client, name: string, args: Record<string, unknown>) {
	const types: string[] = [];
	const statuses: string[] = [];
	for await (const message of client.experimental.tasks.callToolStream(
		{ name, arguments: args },
		CallToolResultSchema,
		{ task: { ttl: 60_000 } },
	)) {
		types.push(message.type);
		if (message.type === 'taskStatus') statuses.push(message.task.status);
		if (message.type === 'result') return { types, statuses, result: message.result };
		if (message.type === 'error') throw message.error;
	}
	throw new Error('the stream ended without a result');
}

const PEERS: readonly [string, (url: string) => Transport][] = [
	['over Streamable HTTP', (url) => new StreamableHTTPClientTransport(new URL(url))],
	[
		'through mcp-remote',
		(url) =>
			new StdioClientTransport({
				command: process.execPath,
				args: [join(root, 'node_modules/mcp-remote/dist/proxy.js'), url, '--allow-http', '--silent'],
				env,
				stderr: 'ignore',
			}),
	],
];

describe.each(PEERS)('the 1.x client of the SDK %s', (_route, transport) => {
	it('calls a plain tool, and sees which tools are task tools', async () => {
		const { client } = await sdkClient(transport(await serve()));
		expect(await client.callTool({ name: 'plain' })).toMatchObject({ content: [{ text: 'plain' }] });
		const { tools } = await client.listTools();
		const support = new Map(tools.map(({ name, execution }) => [name, execution?.taskSupport]));
		expect(support.get('required')).toBe('required');
		expect(support.get('slow')).toBe('optional');
	});

	it('is held while a long call runs, with progress and a question on the way', async () => {
		const { client, asked } = await sdkClient(transport(await serve()));
		const notes: unknown[] = [];
		const long = client.callTool({ name: 'noisy', arguments: { gate: 'a' } }, undefined, {
			onprogress: (note) => void notes.push(note.message),
		});
		await eventually(() => expect(notes).toContain('one of four'));
		fixture?.control.open('a', 'long');
		expect(await long).toMatchObject({ content: [{ text: 'long' }] });
		await client.callTool({ name: 'asking', arguments: { keys: ['red', 'blue'] } });
		expect(asked).toEqual(['red?', 'blue?']);
	});

	it('streams a task to its result', async () => {
		const { client } = await sdkClient(transport(await serve()));
		const pending = stream(client, 'slow', { gate: 'a' });
		await eventually(() => expect(fixture?.control.log).toContain('slow a'));
		fixture?.control.open('a', 'streamed');
		const { types, result } = await pending;
		expect(types[0]).toBe('taskCreated');
		expect(result).toMatchObject({ content: [{ text: 'streamed' }] });
	});

	it('is asked in the middle of a task, by the tasks/result that it sends then', async () => {
		const { client, asked } = await sdkClient(transport(await serve()));
		const { statuses, result } = await stream(client, 'asking', { keys: ['red'] });
		expect(statuses).toContain('input_required');
		expect(asked).toEqual(['red?']);
		expect(field(result, 'content', '0', 'text')).toContain('yes');
	});

	it('calls a tool that can only be called as a task, lists and cancels its tasks', async () => {
		const { client } = await sdkClient(transport(await serve()));
		await client.listTools();
		expect((await stream(client, 'required', {})).result).toMatchObject({ content: [{ text: 'required' }] });
		const cancelled = stream(client, 'polite', { gate: 'never' });
		cancelled.catch(() => {});
		const working = await eventually(async () => {
			const { tasks } = await client.experimental.tasks.listTasks();
			const found = tasks.find(({ status }) => status === 'working');
			expect(found).toBeDefined();
			return found;
		});
		const answer = await client.experimental.tasks.cancelTask(working?.taskId ?? '');
		expect(answer.status).toBe('cancelled');
		await expect(cancelled).rejects.toThrow();
	});
});

describe('the 1.x client of the SDK over stdio', () => {
	it('is held, streams a task and is asked by a process that serves 2026-07-28 next', async () => {
		const file = join(home, 'stdio.db');
		const args = [join(root, 'test/field/stdio-server.ts'), file];
		const command = { command: process.execPath, args, env };
		const { client, asked } = await sdkClient(new StdioClientTransport(command));
		expect(await client.callTool({ name: 'ask', arguments: {} })).toMatchObject({
			content: [{ text: 'gone' }],
		});
		const { statuses, result } = await stream(client, 'ask', {});
		expect(statuses).toContain('input_required');
		expect(result).toMatchObject({ content: [{ text: 'gone' }] });
		expect(asked).toEqual(['Go?', 'Go?']);
		const { tasks } = await client.experimental.tasks.listTasks();
		await client.close();
		const newer = new NewerClient(
			{ name: 'sdk-2', version: '1' },
			{ versionNegotiation: { mode: 'auto' }, capabilities: { extensions: { [TASKS]: {} } } },
		);
		await newer.connect(new NewerStdioTransport(command));
		closing.push(() => newer.close());
		expect(newer.getNegotiatedProtocolVersion()).toBe('2026-07-28');
		const read = await newer.request(
			{ method: 'tasks/get', params: { taskId: tasks[0]?.taskId ?? '' } },
			z.looseObject({}),
		);
		expect(read).toMatchObject({ status: 'completed', result: { content: [{ text: 'gone' }] } });
	});
});

/** Runs the Inspector's command line to its end. */
async function inspector(url: string, tool: string, args: readonly string[]): Promise<string> {
	const command = [
		join(root, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js'),
		...[
			'--cli',
			url,
			'--transport',
			'http',
			'--protocol-era',
			'legacy',
			'--method',
			'tools/call',
			'--tool-name',
			tool,
		],
		...args.flatMap((arg) => ['--tool-arg', arg]),
	];
	const child = spawn(process.execPath, command, { env, cwd: home });
	closing.push(async () => void child.kill('SIGKILL'));
	let output = '';
	let errors = '';
	child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
	child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
	const code = await new Promise((resolve) => child.once('close', resolve));
	if (code !== 0) throw new Error(`the Inspector exited with ${String(code)}: ${output}${errors}`);
	return output;
}

describe('the command line of the Inspector', () => {
	it('calls a plain tool', async () => {
		expect(await inspector(await serve(), 'plain', [])).toContain('plain');
	});

	it('is held while a long call runs', async () => {
		const pending = inspector(await serve(), 'slow', ['gate=a']);
		await eventually(() => expect(fixture?.control.log).toContain('slow a'), 20_000);
		fixture?.control.open('a', 'for the Inspector');
		expect(await pending).toContain('for the Inspector');
	});

	it('calls a tool that can only be called as a task', async () => {
		expect(await inspector(await serve(), 'required', [])).toContain('required');
	});
});
