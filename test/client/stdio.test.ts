/** A server that is the host's own child, as most are: real processes on both ends of real pipes. */
import { Client, type ClientOptions } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Execution } from '../../src/client/execution.ts';
import { fileJournal } from '../../src/client/journal/file-journal.ts';
import { TaskClient } from '../../src/client/task-client.ts';
import type { TaskClientOptions } from '../../src/client/task-client-options.ts';
import { isAlive } from '../support/processes.ts';

const ends: (() => unknown)[] = [];
let folder = '';
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), 'holdfast-stdio-'));
});
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
	rmSync(folder, { recursive: true, force: true });
});

/** What the steps of the server did, over all of its lives. */
function log(): string[] {
	const file = join(folder, 'log');
	return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** Gives a client a new child on the folder of the test. */
async function start(client: Client): Promise<StdioClientTransport> {
	const transport = new StdioClientTransport({
		...{ command: process.execPath, stderr: 'inherit' },
		args: [join(import.meta.dirname, 'stdio-server.ts'), folder],
	});
	await client.connect(transport);
	return transport;
}

/** A host with a child of its own. */
async function setUp(options: TaskClientOptions = {}, clientOptions: ClientOptions = {}) {
	const client = new Client(
		{ name: 'test-host', version: '1.0.0' },
		{ versionNegotiation: { mode: { pin: '2026-07-28' } }, ...clientOptions },
	);
	client.onerror = () => {};
	const transport = await start(client);
	ends.push(() => client.close());
	const tasks = new TaskClient(client, { server: 'child', ...options });
	ends.push(() => tasks.close());
	return { client, transport, tasks };
}

/** Kills a child as a crash does, and waits until the client has noticed. */
async function kill(client: Client, transport: StdioClientTransport): Promise<void> {
	const gone = new Promise<void>((resolve) => {
		client.onclose = () => resolve();
	});
	process.kill(transport.pid ?? 0, 'SIGKILL');
	await gone;
}

/** Resolves when the state of a task says this. */
async function reaches(execution: Execution, said: string): Promise<void> {
	for await (const { status, statusMessage } of execution.updates())
		if (status === said || statusMessage?.includes(said)) return;
	throw new Error(`It ended without ${said}`);
}

const ELICITATION = { capabilities: { elicitation: { form: {} } } };

describe('a task of a child process on stdio', () => {
	it('runs to its result, with its words on the way', async () => {
		const { tasks } = await setUp();
		const execution = await tasks.startTool({ name: 'work', arguments: { name: 'a', sleepMs: 1_500 } });
		await reaches(execution, 'half way');
		expect(await execution.result()).toMatchObject({ content: [{ text: 'a began in this process' }] });
		expect(log()).toEqual(['started a']);
	});

	it('asks its question once and has the answer once (T34)', async () => {
		const { client, tasks } = await setUp({}, ELICITATION);
		let asked = 0;
		client.setRequestHandler('elicitation/create', async () => {
			asked += 1;
			return { action: 'accept', content: { ok: true } };
		});
		expect(await tasks.callTool({ name: 'ask', arguments: {} })).toMatchObject({
			content: [{ text: 'accept' }],
		});
		expect(asked).toBe(1);
		expect(log()).toEqual(['answered accept']);
	});

	it('is stopped by a cancel (T40)', async () => {
		const { tasks } = await setUp();
		const execution = await tasks.startTool({ name: 'endless', arguments: {} });
		await execution.cancel();
		await expect(execution.result()).rejects.toMatchObject({ code: 'TASK_CANCELLED' });
		expect(execution.outcome).toMatchObject({ kind: 'cancelled', confirmed: true });
		expect(log()).toEqual(['stopped']);
	});

	it('goes on in the next child when its own crashed, for the caller that waits all the while (T71)', async () => {
		const { client, transport, tasks } = await setUp();
		const execution = await tasks.startTool({ name: 'work', arguments: { name: 'a', sleepMs: 2_000 } });
		const result = execution.result();
		await reaches(execution, 'half way');
		await kill(client, transport);
		await start(client);
		expect(await result).toMatchObject({ content: [{ text: 'a began in another process' }] });
		expect(log()).toEqual(['started a']);
	});

	it('whose form is open when the child crashes has it answered once, in the next child (T34)', async () => {
		const { client, transport, tasks } = await setUp({}, ELICITATION);
		const answer = Promise.withResolvers<void>();
		const open = Promise.withResolvers<void>();
		let asked = 0;
		client.setRequestHandler('elicitation/create', async () => {
			asked += 1;
			open.resolve();
			await answer.promise;
			return { action: 'accept', content: { ok: true } };
		});
		const result = tasks.callTool({ name: 'ask', arguments: {} });
		await open.promise;
		await kill(client, transport);
		await start(client);
		answer.resolve();
		expect(await result).toMatchObject({ content: [{ text: 'accept' }] });
		expect(asked).toBe(1);
		expect(log()).toEqual(['answered accept']);
	});

	it('is come back to by the next host with the same journal, when host and child have both gone (T72)', async () => {
		const path = join(folder, 'journal.db');
		const first = await setUp({ journal: fileJournal(path) });
		const { reference } = await first.tasks.startTool({
			name: 'work',
			arguments: { name: 'a', sleepMs: 2_000 },
		});
		const { pid } = first.transport;
		await kill(first.client, first.transport);
		first.tasks.close();
		expect(isAlive(pid ?? 0)).toBe(false);

		const second = await setUp({ journal: fileJournal(path) });
		const [execution] = await second.tasks.resumeAll();
		expect(execution?.reference).toBe(reference);
		expect(await execution?.result()).toMatchObject({ content: [{ text: 'a began in another process' }] });
		expect(log()).toEqual(['started a']);
	});
});
