/** The example servers that the official SDK 1.x ships for its experimental tasks, as they are. */
import { createRequire } from 'node:module';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallRoute, TaskClient, taskFetch } from '../../src/client/index.ts';
import { readReference, toReference } from '../../src/client/reference.ts';
import { type ChildServer, startChildServer } from './child-server.ts';

const { resolve } = createRequire(import.meta.url);
const EXAMPLES = '@modelcontextprotocol/sdk/examples/server';

/** A host that can be asked, connected to an example. */
function connectTo(example: string, portVariable: string, ready: string) {
	const client = new Client(
		{ name: 'host', version: '1' },
		{ capabilities: { elicitation: { form: {} }, sampling: {} } },
	);
	const asked: string[] = [];
	client.setRequestHandler('elicitation/create', async ({ params }) => {
		asked.push(params.message);
		const fields = params.mode === 'url' ? [] : Object.keys(params.requestedSchema.properties);
		const content = fields.includes('confirm') ? { confirm: true } : { name: 'Ada', email: 'a@example.com' };
		return { action: 'accept', content };
	});
	client.setRequestHandler('sampling/createMessage', async () => {
		asked.push('sampling');
		return { role: 'assistant', model: 'test', content: { type: 'text', text: 'An old silent pond' } };
	});
	const routes: CallRoute[] = [];
	const tasks = new TaskClient(client, { onRoute: (route) => routes.push(route) });
	let server: ChildServer;
	beforeAll(async () => {
		server = await startChildServer(resolve(`${EXAMPLES}/${example}.js`), [], portVariable, ready);
		await client.connect(new StreamableHTTPClientTransport(server.url, { fetch: taskFetch() }));
	}, 30_000);
	afterAll(async () => {
		tasks.close();
		await client.close();
		await server.kill();
	});
	const call = async (name: string, args: Record<string, unknown>): Promise<string> => {
		const result = await tasks.callTool({ name, arguments: args });
		return result.content.map((part) => (part.type === 'text' ? part.text : part.type)).join('\n');
	};
	return { call, tasks, asked, routes };
}

describe('the example simpleTaskInteractive', () => {
	const { call, tasks, asked, routes } = connectTo('simpleTaskInteractive', 'PORT', 'Starting server');

	it('asks for a confirmation and for a completion while its tasks need input (L04)', {
		timeout: 20_000,
	}, async () => {
		const answers = await Promise.all([
			call('confirm_delete', { filename: 'a.txt' }),
			call('write_haiku', { topic: 'ponds' }),
		]);
		expect(answers).toEqual(["Deleted 'a.txt'", 'Haiku:\nAn old silent pond']);
		expect(asked.toSorted()).toEqual(["Are you sure you want to delete 'a.txt'?", 'sampling']);
		expect(routes.map(({ kind }) => kind)).toEqual(['legacy_task', 'legacy_task']);
	});

	it('says in its own words that it does not know a task, which is understood', {
		timeout: 20_000,
	}, async () => {
		const execution = await tasks.startTool({ name: 'confirm_delete', arguments: { filename: 'b.txt' } });
		const pointer = readReference(execution.reference ?? '');
		const unknown = await tasks.resume(toReference({ ...pointer, taskId: 'nobody' }));
		await expect(unknown.result()).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
		await execution.result();
	});
});

describe('the example simpleStreamableHttp', () => {
	const { call, asked, routes } = connectTo('simpleStreamableHttp', 'MCP_PORT', 'listening');

	it('runs its delay as a task, collects data in one, and greets without (L02)', {
		timeout: 20_000,
	}, async () => {
		expect(await call('delay', { duration: 300 })).toBe('Completed 300ms delay');
		expect(await call('collect-user-info-task', { infoType: 'contact' })).toContain('"name": "Ada"');
		expect(await call('collect-user-info', { infoType: 'contact' })).toContain('Ada');
		expect(await call('greet', { name: 'Ada' })).toBe('Hello, Ada!');
		expect(await call('list-files', {})).toContain('resource_link');
		expect(asked).toHaveLength(2);
		expect(routes.map(({ kind }) => kind)).toEqual(['legacy_task', 'legacy_task', 'plain', 'plain', 'plain']);
	});
});
