/** The official conformance fixtures' task tools, called by our client in processes of their own. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TaskClient } from '../../src/client/task-client.ts';

const SCRIPT = join(import.meta.dirname, '../conformance/server.ts');

/** Connects the client; returns what ends the server. */
type Connect = (client: Client) => Promise<() => Promise<void>>;

async function overHttp(client: Client): Promise<() => Promise<void>> {
	// What a test file is told by this variable does not hold for its child.
	const env = { ...process.env, VITEST: undefined };
	const child = spawn(process.execPath, [SCRIPT, '0'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
	const ended = once(child, 'exit');
	const failed = ended.then(([code]) => {
		throw new Error(`The server ended with ${code}`);
	});
	failed.catch(() => {});
	const listening = once(createInterface({ input: child.stdout }), 'line') as Promise<[string]>;
	const [url] = await Promise.race([listening, failed]);
	await client.connect(new StreamableHTTPClientTransport(new URL(url)));
	return async () => {
		await client.close();
		child.kill();
		await ended;
	};
}

async function overStdio(client: Client): Promise<() => Promise<void>> {
	const { execPath: command } = process;
	await client.connect(new StdioClientTransport({ command, args: [SCRIPT, '--stdio'], stderr: 'inherit' }));
	return () => client.close();
}

describe.each<[string, Connect]>([
	['HTTP', overHttp],
	['stdio', overStdio],
])('the fixtures of the conformance suite over %s', (_name, connect) => {
	const client = new Client(
		{ name: 'test-host', version: '1.0.0' },
		{ versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
	);
	const asked: string[] = [];
	client.setRequestHandler('elicitation/create', async ({ params }) => {
		asked.push(params.message);
		return {
			action: 'accept',
			content: params.message === 'Your name?' ? { name: 'Ada' } : { confirm: true },
		};
	});
	let tasks: TaskClient;
	let close: () => Promise<void>;
	beforeAll(async () => {
		close = await connect(client);
		tasks = new TaskClient(client);
	});
	afterAll(async () => {
		tasks.close();
		await close();
	});

	it('greet answers at once, without a task', async () => {
		const execution = await tasks.startTool({ name: 'greet', arguments: { name: 'Ada' } });
		expect(execution.reference).toBeNull();
		expect(await execution.result()).toMatchObject({ content: [{ text: 'Hello, Ada!' }] });
	});

	it('slow_compute is a task whose result is what callTool returns', async () => {
		const execution = await tasks.startTool({ name: 'slow_compute', arguments: { seconds: 1, label: 'pi' } });
		expect(execution.reference).toMatch(/^holdfast-task:/);
		expect(await execution.result()).toEqual({ content: [{ type: 'text', text: 'Computed pi in 1 s' }] });
	});

	it('failing_job ends with a result that says isError, which is no error to throw (T22)', async () => {
		expect(await tasks.callTool({ name: 'failing_job', arguments: {} })).toMatchObject({
			isError: true,
			content: [{ text: 'The job failed' }],
		});
	});

	it('protocol_error_job throws the JSON-RPC error of the task, as callTool throws one (T21)', async () => {
		await expect(tasks.callTool({ name: 'protocol_error_job', arguments: {} })).rejects.toMatchObject({
			...{ name: 'ProtocolError', code: -32603, message: 'The job broke the protocol' },
		});
	});

	it('confirm_delete asks once, and does what was answered (T34)', async () => {
		asked.length = 0;
		expect(await tasks.callTool({ name: 'confirm_delete', arguments: { filename: 'a.txt' } })).toMatchObject({
			content: [{ text: 'Deleted a.txt' }],
		});
		expect(asked).toEqual(['Delete a.txt?']);
	});

	it('multi_input asks both of its questions, each once, and has both answers (T30, T34)', async () => {
		asked.length = 0;
		const result = await tasks.callTool({ name: 'multi_input', arguments: {} });
		const [content] = result.content;
		expect(JSON.parse(content?.type === 'text' ? content.text : '')).toEqual([
			{ action: 'accept', content: { name: 'Ada' } },
			{ action: 'accept', content: { confirm: true } },
		]);
		expect(asked.sort()).toEqual(['Go on?', 'Your name?']);
	});

	it('test_tool_with_task asks before it becomes a task, and the same handler answers (T13)', async () => {
		asked.length = 0;
		const execution = await tasks.startTool({ name: 'test_tool_with_task', arguments: {} });
		expect(asked).toEqual(['Your name?']);
		expect(execution.reference).toMatch(/^holdfast-task:/);
		expect(await execution.result()).toMatchObject({ content: [{ text: 'Hello, "Ada"!' }] });
	});
});
