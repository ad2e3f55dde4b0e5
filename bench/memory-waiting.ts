/** What tasks cost that have asked a question and wait for the answer: first in memory, then parked. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type Clock, systemClock } from '../src/engine/clock.ts';
import { createTaskServer, type TaskServer } from '../src/server/index.ts';
import type { Figure } from './figures.ts';
import { backendOn, callOf, FixedDatabase, inParallel, LIMITS, LOG, withFolder } from './fixture.ts';
import { each, settled } from './memory.ts';

const TASKS = 10_000;
/** So many that the heap has become as large as this load makes it, which Node never gives back. */
const WARM_UP = 10_000;

/** As many handlers as a task server runs at once by default. */
const BATCH = 64;

/** How many are held in memory together, to see what one costs there. */
const LIVE = 2_000;

/** How long a waiting handler stays in memory by default, in milliseconds. */
const PARK_AFTER_MS = callOf('ask', 0).policy.parkAfterMs;

/** The machine's clock, but handlers are parked when the measurement says so. */
class ParkingClock implements Clock {
	readonly #parks = new Set<() => void>();

	nowMs(): number {
		return systemClock.nowMs();
	}

	after(delayMs: number, action: () => void): () => void {
		if (delayMs !== PARK_AFTER_MS) return systemClock.after(delayMs, action);
		this.#parks.add(action);
		return () => void this.#parks.delete(action);
	}

	park(): void {
		const parks = [...this.#parks];
		this.#parks.clear();
		for (const park of parks) park();
	}
}

export function measure(): Promise<readonly Figure[]> {
	return withFolder(async (folder) => {
		const clock = new ParkingClock();
		const server = serverOn(join(folder, 'tasks.db'), clock);
		await server.start();
		await askAndPark(server, clock, WARM_UP);
		const before = await settled();
		await askAndPark(server, clock, TASKS);
		const afterwards = await settled();
		const parked = each(before, afterwards, TASKS);
		// Only now: Node keeps the memory that so many handlers took, also when they are gone.
		await ask(server, LIVE);
		const live = each(afterwards, await settled(), LIVE);
		await server.stop(0);
		return [
			{ what: 'heap of one of 10,000 parked tasks', value: parked.heap, unit: 'KB', goal: { atMost: 2 } },
			{ what: 'resident memory of one', value: parked.resident, unit: 'KB', goal: { atMost: 2 } },
			{ what: 'heap of one before it is parked', value: live.heap, unit: 'KB' },
			{ what: 'resident memory of one before it is parked', value: live.resident, unit: 'KB' },
			{ what: 'resident memory before the first', value: before.resident / 2 ** 20, unit: 'MB' },
		];
	});
}

function serverOn(file: string, clock: Clock): TaskServer {
	return createTaskServer({
		backend: backendOn(new FixedDatabase(file, 'normal')),
		clock,
		concurrency: LIVE,
		limits: LIMITS,
		log: LOG,
		server: (tasks) => {
			const mcp = new McpServer({ name: 'bench', version: '1.0.0' });
			const handler = tasks.handler({}, async (_args, task) => {
				const requestedSchema = { type: 'object', properties: { approve: { type: 'boolean' } } };
				await task.requireInput('approve', { mode: 'form', message: 'Deploy?', requestedSchema });
				return { content: [] };
			});
			mcp.registerTool('ask', { inputSchema: z.looseObject({}) }, handler);
			return mcp;
		},
	});
}

/** Takes tasks to where they are parked, a batch at a time. */
async function askAndPark(server: TaskServer, clock: ParkingClock, tasks: number): Promise<void> {
	for (let left = tasks; left > 0; left -= BATCH) {
		await ask(server, Math.min(left, BATCH));
		await park(server, clock);
	}
}

/** Begins tasks and waits until each has asked its question. */
async function ask({ engine }: TaskServer, tasks: number): Promise<void> {
	await inParallel(tasks, 16, async (number) => {
		const call = await engine.call(callOf('ask', number));
		await call.until((record) => record.status === 'input_required', 10_000);
	});
}

async function park({ engine }: TaskServer, clock: ParkingClock): Promise<void> {
	clock.park();
	const givesUpAt = performance.now() + 60_000;
	while (engine.running > 0) {
		if (performance.now() > givesUpAt) throw new Error(`${engine.running} handlers were not parked`);
		await sleep(1);
	}
}
