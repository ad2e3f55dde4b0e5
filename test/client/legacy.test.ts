/** Tasks of 2025-11-25: the official SDK 1.x server, driven by the task client over HTTP and over stdio. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import { afterEach, describe, expect, it } from 'vitest';
import type { CallRoute } from '../../src/client/call-route.ts';
import { fileJournal } from '../../src/client/journal/file-journal.ts';
import { memoryJournal } from '../../src/client/journal/memory-journal.ts';
import { readReference } from '../../src/client/reference.ts';
import { TaskClient } from '../../src/client/task-client.ts';
import type { TaskClientOptions } from '../../src/client/task-client-options.ts';
import { taskFetch } from '../../src/client/task-fetch.ts';
import { LegacyHttp, type LegacyServerOptions, legacyServer, SharedTaskStore } from './legacy-server.ts';
import { text } from './server.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

const ASKABLE: ClientOptions = { capabilities: { elicitation: { form: {} }, sampling: {} } };

/** A host with handlers for questions, which writes down what it was asked. */
function host(asked: string[] = []): Client {
	const client = new Client({ name: 'host', version: '1' }, ASKABLE);
	client.setRequestHandler('elicitation/create', async ({ params }) => {
		asked.push(params.message);
		return { action: 'accept', content: { sure: true } };
	});
	client.setRequestHandler('sampling/createMessage', async () => {
		asked.push('sampling');
		return { role: 'assistant', model: 'test', content: { type: 'text', text: 'An old silent pond' } };
	});
	return client;
}

async function overHttp(
	options: TaskClientOptions & { readonly server_?: LegacyServerOptions; readonly sdk?: Client } = {},
) {
	const { server_, sdk, ...taskOptions } = options;
	const events = { starts: [] as string[], answers: [] as string[] };
	const store = server_?.store ?? new InMemoryTaskStore();
	const http = await LegacyHttp.open(() => legacyServer({ events, ...server_, store }));
	ends.push(() => http.close());
	const asked: string[] = [];
	const client = sdk ?? host(asked);
	await client.connect(new StreamableHTTPClientTransport(http.url, { fetch: taskFetch() }));
	ends.push(() => client.close());
	const tasks = new TaskClient(client, taskOptions);
	ends.push(() => tasks.close());
	return { http, client, tasks, asked, events, store };
}

async function overStdio(options: TaskClientOptions = {}) {
	const asked: string[] = [];
	const client = host(asked);
	const script = join(import.meta.dirname, 'legacy-server.ts');
	const transport = new StdioClientTransport({ command: process.execPath, args: [script] });
	await client.connect(transport);
	ends.push(() => {
		// The store's timers would keep it for as long as its tasks live.
		if (transport.pid !== null) process.kill(transport.pid, 'SIGKILL');
		return client.close();
	});
	const tasks = new TaskClient(client, options);
	ends.push(() => tasks.close());
	return { client, tasks, asked };
}

const TRANSPORTS = [
	['HTTP', overHttp],
	['stdio', overStdio],
] as const;

describe.each(TRANSPORTS)('a server of the SDK 1.x over %s', (_name, connect) => {
	it('gives the result of a tool whose tasks are optional, and of one whose tasks are required (L02)', async () => {
		const { tasks } = await connect();
		expect((await tasks.callTool({ name: 'delay' })).content).toEqual(text('waited').content);
		expect((await tasks.callTool({ name: 'must' })).content).toEqual(text('as a task').content);
	});

	it('journals a handle of 2025-11-25 before it is asked for, and shows the states of the task (L02)', async () => {
		const journal = memoryJournal();
		const { tasks } = await connect({ journal });
		const execution = await tasks.startTool({ name: 'must' });
		const [entry] = await journal.list('legacy');
		expect(entry).toMatchObject({ protocolVersion: '2025-11-25', tool: 'must', ttlMs: 86_400_000 });
		expect(readReference(execution.reference ?? '').protocolVersion).toBe('2025-11-25');
		const states: unknown[] = [];
		for await (const state of execution.updates()) states.push([state.status, state.statusMessage]);
		expect(states).toContainEqual(['working', 'halfway']);
		expect(states.at(-1)).toEqual(['completed', 'halfway']);
	});

	it('asks its questions over tasks/result, each answered once by the handlers of the host (L04)', async () => {
		const { tasks, asked } = await connect();
		const [confirmed, haiku] = await Promise.all([
			tasks.callTool({ name: 'confirm' }),
			tasks.callTool({ name: 'haiku' }),
		]);
		expect(confirmed.content).toEqual(text('accept {"sure":true}').content);
		expect(haiku.content).toEqual(text('An old silent pond').content);
		expect(asked.toSorted()).toEqual(['Delete it?', 'sampling']);
	});

	it('gives a tool error of a failed task as the result that it is, and throws where there is none', async () => {
		const { tasks } = await connect();
		expect(await tasks.callTool({ name: 'broken' })).toMatchObject({
			isError: true,
			...text('It broke'),
		});
		await expect(tasks.callTool({ name: 'dropped' })).rejects.toThrow('The disk is full');
	});

	it('ends a task on cancel, and takes it that an ended task refuses a cancel', async () => {
		const { tasks } = await connect();
		const execution = await tasks.startTool({ name: 'forever' });
		await execution.cancel();
		await expect(execution.result()).rejects.toMatchObject({ code: 'TASK_CANCELLED' });
		const ended = await tasks.startTool({ name: 'broken' });
		await ended.cancel();
		expect(await ended.result()).toMatchObject({ isError: true });
		const abort = new AbortController();
		const call = tasks.callTool({ name: 'forever' }, { signal: abort.signal });
		setTimeout(() => abort.abort(), 100);
		await expect(call).rejects.toThrow();
	});

	it('runs a tool without tasks as one held call, with its progress', async () => {
		const { tasks } = await connect();
		const heard: unknown[] = [];
		const result = await tasks.callTool(
			{ name: 'plain' },
			{ onprogress: (progress) => heard.push(progress) },
		);
		expect(result.content).toEqual(text('plain').content);
		expect(heard).toEqual([{ progress: 1, total: 2, message: 'half' }]);
	});
});

describe('a task of 2025-11-25', () => {
	it('is resumed by its reference and by the journal of a host that crashed, with its questions (L04)', async () => {
		const journal = memoryJournal();
		const first = await overHttp({ journal });
		const execution = await first.tasks.startTool({ name: 'confirm' });
		// What is in the journal came before anything was asked.
		expect(await journal.list('legacy')).toHaveLength(1);
		expect(first.http.count('tasks/get')).toBe(0);
		first.tasks.close();
		// The same session: a server of the SDK 1.x shows a task to the session that made it only.
		const again = new TaskClient(first.client, { journal });
		ends.push(() => again.close());
		const [resumed] = await again.resumeAll();
		const byReference = await again.resume(execution.reference ?? '');
		expect((await resumed?.result())?.content).toEqual(text('accept {"sure":true}').content);
		expect((await byReference.result()).content).toEqual(text('accept {"sure":true}').content);
		expect(first.asked).toEqual(['Delete it?']);
	});

	it('is come back to by another process, on another connection (C7, L02)', async () => {
		const folder = mkdtempSync(join(tmpdir(), 'holdfast-legacy-'));
		ends.push(() => rmSync(folder, { recursive: true, force: true }));
		const file = join(folder, 'journal.db');
		const store = new SharedTaskStore();
		const { http, client, tasks, events } = await overHttp({
			journal: fileJournal(file),
			server_: { store },
		});
		await tasks.startTool({ name: 'must' });
		tasks.close();
		await client.close();
		const next = host();
		await next.connect(new StreamableHTTPClientTransport(http.url, { fetch: taskFetch() }));
		ends.push(() => next.close());
		const again = new TaskClient(next, { journal: fileJournal(file) });
		ends.push(() => again.close());
		const [resumed] = await again.resumeAll();
		expect((await resumed?.result())?.content).toEqual(text('as a task').content);
		expect(events.starts).toEqual(['must']);
	});

	it('is come back to by a host that was killed, and is not made again (C7)', async () => {
		const folder = mkdtempSync(join(tmpdir(), 'holdfast-legacy-'));
		ends.push(() => rmSync(folder, { recursive: true, force: true }));
		const { http, events } = await overHttp({ server_: { store: new SharedTaskStore() } });
		const log = (): string[] => {
			const file = join(folder, 'log');
			return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
		};
		const run = () => {
			const args = [join(import.meta.dirname, 'crash-host.ts'), http.url.href, folder, '3'];
			const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
			const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
			return { child, ended };
		};
		const first = run();
		await expect.poll(log, { timeout: 15_000, interval: 20 }).toContain('started 2');
		first.child.kill('SIGKILL');
		await first.ended;
		expect(await run().ended).toBe(0);
		const results = log().filter((line) => line.startsWith('result '));
		expect(results).toHaveLength(3);
		expect(new Set(results.map((line) => line.split(' ')[1]))).toEqual(new Set(['0', '1', '2']));
		expect(events.starts).toEqual(['work', 'work', 'work']);
	}, 40_000);

	it('that the server does not know any more is said to be lost, with its outcome unknown', async () => {
		const { http, tasks } = await overHttp();
		const execution = await tasks.startTool({ name: 'forever' });
		await http.restart();
		await expect(execution.result()).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
	}, 15_000);

	it('has its questions answered by the input option, with the defaults of the form filled in', async () => {
		const keys: string[] = [];
		const sdk = new Client({ name: 'host', version: '1' }, ASKABLE);
		const { tasks } = await overHttp({
			sdk,
			onInput: async (request, { key, tool }) => {
				keys.push(`${tool} ${request.method} ${key.split(':')[0]}`);
				return { action: 'accept', content: { sure: false } };
			},
		});
		const result = await tasks.callTool({ name: 'confirm' });
		expect(result.content).toEqual(text('accept {"why":"no reason","sure":false}').content);
		expect(keys).toEqual(['confirm elicitation/create request']);
	});

	it('whose question is open when the connection drops has it answered once all the same (L04)', async () => {
		const asked: string[] = [];
		const think = Promise.withResolvers<void>();
		const sdk = new Client({ name: 'host', version: '1' }, ASKABLE);
		sdk.setRequestHandler('elicitation/create', async ({ params }) => {
			asked.push(params.message);
			await think.promise;
			return { action: 'accept', content: {} };
		});
		const problems: unknown[] = [];
		const { http, tasks } = await overHttp({ sdk, onProblem: (error) => problems.push(error) });
		const call = tasks.callTool({ name: 'confirm' });
		await expect.poll(() => asked).toEqual(['Delete it?']);
		http.cut();
		await expect.poll(() => http.count('tasks/result'), { timeout: 15_000 }).toBe(2);
		think.resolve();
		expect((await call).content).toEqual(text('accept {}').content);
		expect(asked).toEqual(['Delete it?']);
	}, 20_000);

	it('takes no slot from the polls of other tasks while its question is open', async () => {
		const think = Promise.withResolvers<void>();
		const sdk = new Client({ name: 'host', version: '1' }, ASKABLE);
		sdk.setRequestHandler('elicitation/create', async () => {
			await think.promise;
			return { action: 'accept', content: {} };
		});
		const { tasks } = await overHttp({ sdk, maxConcurrentRequests: 1 });
		const asking = [tasks.callTool({ name: 'confirm' }), tasks.callTool({ name: 'confirm' })];
		expect((await tasks.callTool({ name: 'must' })).content).toEqual(text('as a task').content);
		think.resolve();
		await Promise.all(asking);
	});

	it('is asked for with the lifetime of the option', async () => {
		const { tasks } = await overHttp({ legacyTtlMs: 120_000 });
		const execution = await tasks.startTool({ name: 'must' });
		expect(execution.state?.ttlMs).toBe(120_000);
		await execution.result();
	});
});

describe('the tools of a server of 2025-11-25', () => {
	it('are listed once for many calls, and again when the server says that they changed', async () => {
		const { http, tasks } = await overHttp();
		await Promise.all([tasks.callTool({ name: 'delay' }), tasks.callTool({ name: 'delay' })]);
		await tasks.callTool({ name: 'plain' });
		expect(http.count('tools/list')).toBe(1);
		// The stream on which the server says so.
		await expect.poll(() => http.requests.some((request) => request.http === 'GET')).toBe(true);
		http.sendToolListChanged();
		await expect
			.poll(async () => {
				await tasks.callTool({ name: 'plain' });
				return http.count('tools/list');
			})
			.toBe(2);
	});

	it('that are not in the list are looked for once more, and then called as they are', async () => {
		const routes: CallRoute[] = [];
		const { http, tasks } = await overHttp({ onRoute: (route) => routes.push(route) });
		await tasks.callTool({ name: 'plain' });
		await tasks.callTool({ name: 'unheard' }).catch(() => {});
		expect(http.count('tools/list')).toBe(2);
		expect(routes.map(({ kind }) => kind)).toEqual(['plain', 'plain']);
	});
});

describe('a process of an older server', () => {
	it('that dies in the middle of a held call leaves it with its outcome unknown', async () => {
		const asked: string[] = [];
		const client = host(asked);
		const script = join(import.meta.dirname, 'legacy-server.ts');
		const transport = new StdioClientTransport({ command: process.execPath, args: [script] });
		await client.connect(transport);
		const tasks = new TaskClient(client);
		ends.push(() => tasks.close());
		const heard = Promise.withResolvers<unknown>();
		const call = tasks.callTool(
			{ name: 'plain', arguments: { label: 'hold' } },
			{ onprogress: heard.resolve },
		);
		const failed = expect(call).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
		await heard.promise;
		process.kill(transport.pid ?? 0, 'SIGKILL');
		await failed;
	});
});

describe('a host that uses an older server', () => {
	it('is told its own mistakes: a lifetime that a timer cannot hold is refused', () => {
		const client = new Client({ name: 'host', version: '1' });
		expect(() => new TaskClient(client, { legacyTtlMs: 30 * 86_400_000 })).toThrow(
			'legacyTtlMs is 2592000000; it must be an integer from 60000 to 2073600000',
		);
	});
});
