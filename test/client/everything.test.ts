/** The reference server of the protocol, `@modelcontextprotocol/server-everything`, with every tool that it has. */
import { createRequire } from 'node:module';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallRoute, TaskClient, taskFetch } from '../../src/client/index.ts';
import { startChildServer } from './child-server.ts';

const SCRIPT = createRequire(import.meta.url).resolve(
	'@modelcontextprotocol/server-everything/dist/index.js',
);

/** A host that can be asked everything. */
function host(): Client {
	const client = new Client(
		{ name: 'host', version: '1' },
		{ capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } },
	);
	client.setRequestHandler('elicitation/create', async ({ params }) => {
		if (params.mode === 'url') return { action: 'accept' };
		const fields = Object.keys(params.requestedSchema.properties);
		const content = fields.includes('interpretation') ? { interpretation: 'snake' } : { name: 'Ada' };
		return { action: 'accept', content };
	});
	client.setRequestHandler('sampling/createMessage', async () => ({
		...{ role: 'assistant', model: 'test-model' },
		content: { type: 'text', text: 'A sampled answer' },
	}));
	client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///home', name: 'Home' }] }));
	return client;
}

async function overStdio(client: Client): Promise<() => Promise<void>> {
	const args = [SCRIPT, 'stdio'];
	await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
	return () => client.close();
}

async function overHttp(client: Client): Promise<() => Promise<void>> {
	const server = await startChildServer(SCRIPT, ['streamableHttp'], 'PORT', 'listening');
	await client.connect(new StreamableHTTPClientTransport(server.url, { fetch: taskFetch() }));
	return async () => {
		await client.close();
		await server.kill();
	};
}

/** Each tool with arguments, and what its result must contain. */
const CALLS: readonly (readonly [string, Record<string, unknown>, string])[] = [
	['echo', { message: 'hello' }, 'Echo: hello'],
	['get-annotated-message', { messageType: 'success', includeImage: true }, 'completed successfully'],
	['get-env', {}, 'PATH'],
	['get-resource-links', { count: 2 }, 'resource_link'],
	['get-resource-reference', { resourceType: 'Text', resourceId: 1 }, 'demo://resource'],
	['get-structured-content', { location: 'Chicago' }, 'structuredContent'],
	['get-sum', { a: 2, b: 40 }, '42'],
	['get-tiny-image', {}, 'image/png'],
	['gzip-file-as-resource', { name: 'a.gz', data: 'data:text/plain,hi', outputType: 'resource' }, 'gzip'],
	['toggle-simulated-logging', {}, 'Started simulated'],
	['toggle-simulated-logging', {}, 'Stopped simulated'],
	['toggle-subscriber-updates', {}, 'Started simulated'],
	['toggle-subscriber-updates', {}, 'Stopped simulated'],
	['trigger-long-running-operation', { duration: 0.4, steps: 4 }, 'Steps: 4'],
	['get-roots-list', {}, 'file:///home'],
	['trigger-elicitation-request', {}, 'Ada'],
	['trigger-url-elicitation', { url: 'https://example.com/', elicitationId: 'e1' }, 'accept'],
	['trigger-sampling-request', { prompt: 'Say', maxTokens: 10 }, 'A sampled answer'],
	['simulate-research-query', { topic: 'owls' }, 'Research Report: owls'],
	['simulate-research-query', { topic: 'python', ambiguous: true }, 'Research Report: python (snake)'],
];

describe.each([
	['stdio', overStdio],
	['HTTP', overHttp],
] as const)('the everything server over %s', (_name, connect) => {
	const client = host();
	const routes: CallRoute[] = [];
	let tasks: TaskClient;
	let close: () => Promise<void>;
	beforeAll(async () => {
		close = await connect(client);
		tasks = new TaskClient(client, { onRoute: (route) => routes.push(route) });
	}, 30_000);
	afterAll(async () => {
		tasks.close();
		await close();
	});

	it.for(CALLS)('answers %s %j', { timeout: 20_000 }, async ([name, args, expected]) => {
		const result = await tasks.callTool({ name, arguments: args });
		expect(result.isError ?? false).toBe(false);
		expect(JSON.stringify(result)).toContain(expected);
	});

	it('was called with each of its tools, the one with tasks by tasks, the others plainly', async () => {
		const { tools } = await client.listTools();
		expect(new Set(CALLS.map(([name]) => name))).toEqual(new Set(tools.map(({ name }) => name)));
		const byTask = routes.filter(({ kind }) => kind === 'legacy_task').map(({ tool }) => tool);
		expect(new Set(byTask)).toEqual(new Set(['simulate-research-query']));
		expect(routes.filter(({ kind }) => kind === 'plain')).toHaveLength(CALLS.length - byTask.length);
	});

	it('tells the progress of a held call, and the words of a task', { timeout: 20_000 }, async () => {
		const steps: number[] = [];
		await tasks.callTool(
			{ name: 'trigger-long-running-operation', arguments: { duration: 0.4, steps: 4 } },
			{ onprogress: ({ progress }) => steps.push(progress) },
		);
		expect(steps.slice(0, 3)).toEqual([1, 2, 3]);
		const execution = await tasks.startTool({
			name: 'simulate-research-query',
			arguments: { topic: 'owls' },
		});
		const said = new Set<string | undefined>();
		for await (const { statusMessage } of execution.updates()) said.add(statusMessage);
		expect([...said]).toEqual(expect.arrayContaining(['Gathering sources...', 'Generating report...']));
	});
});
