/** What 10,000 open tasks cost the process whose background manager watches them. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { fork } from 'node:child_process';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { setTimeout as sleep } from 'node:timers/promises';
import { BackgroundTasks, fileJournal, TaskClient } from '../src/client/index.ts';
import type { Figure } from './figures.ts';
import { inParallel, withFolder } from './fixture.ts';
import { each, settled } from './memory.ts';
import { next } from './wire.ts';

const TASKS = 10_000;
const WARM_UP = 1_000;
const POLL_MS = 30_000;
/** One interval, in which each task is asked for once. */
const OBSERVED_MS = POLL_MS;

export function measure(): Promise<readonly Figure[]> {
	return withFolder(async (folder) => {
		const server = fork(join(import.meta.dirname, 'client-server.ts'), [`${POLL_MS}`]);
		try {
			return await observe(await next<string>(server), join(folder, 'journal.db'));
		} finally {
			server.kill();
		}
	});
}

async function observe(url: string, journalFile: string): Promise<readonly Figure[]> {
	// The manager sends each call at once, and no system takes so many connections at once.
	const sockets = pLimit(64);
	let requests = 0;
	const client = new Client(
		{ name: 'bench', version: '1.0.0' },
		{ versionNegotiation: { mode: { pin: '2026-07-28' } } },
	);
	await client.connect(
		new StreamableHTTPClientTransport(new URL(url), {
			fetch: (target, init) => {
				requests += 1;
				return sockets(() => fetch(target, init));
			},
		}),
	);
	const journal = fileJournal(journalFile);
	const tasks = new TaskClient(client, { journal, listen: false });
	const manager = new BackgroundTasks({ onEnd: () => {}, maxOpen: TASKS + WARM_UP, inlineWindowMs: 1 });
	const start = async (count: number): Promise<void> => {
		const call = async (number: number): Promise<void> => {
			await manager.start(tasks, { name: 'work', arguments: { number } });
		};
		await inParallel(count, 16, call);
		while (manager.open.some(({ state }) => state === undefined)) await sleep(50);
	};
	await start(WARM_UP);
	const before = await settled();
	await start(TASKS);
	const cost = each(before, await settled(), TASKS);
	const open = manager.open.length;
	if (open !== TASKS + WARM_UP) throw new Error(`${open} tasks are open`);

	const requestsBefore = requests;
	const cpuBefore = process.cpuUsage();
	const startedAt = performance.now();
	await sleep(OBSERVED_MS);
	const seconds = (performance.now() - startedAt) / 1_000;
	const { user, system } = process.cpuUsage(cpuBefore);
	const sent = requests - requestsBefore;
	await manager.close('detach');
	tasks.close();
	await client.close();
	await journal.close();
	return [
		{ what: 'heap of one of 10,000 tasks in a manager', value: cost.heap, unit: 'KB', goal: { atMost: 20 } },
		{ what: 'resident memory of one', value: cost.resident, unit: 'KB' },
		{ what: `requests for 11,000 tasks at an interval of 30 s`, value: sent / seconds, unit: '/s' },
		{
			...{ what: 'of a core, to poll them', value: (user + system) / 10_000 / seconds, unit: '%' },
			goal: { atMost: 50 },
		},
		{ what: 'processor time of one poll', value: (user + system) / 1_000 / sent, unit: 'ms' },
	];
}
