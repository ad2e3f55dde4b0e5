/**
 * Holdfast on Redis against raw BullMQ on the same server, in one run: a `redis-server` from the PATH, once as it
 * is for tasks that may be lost with the machine (`appendfsync everysec`) and once for those that may not (`always`).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Backend } from '../src/backend/backend.ts';
import { redis } from '../src/backend/redis/index.ts';
import type { Engine } from '../src/engine/engine.ts';
import { OwnRedis } from '../test/support/own-redis.ts';
import { startBullMq } from './bullmq.ts';
import { type Figure, median, percentile } from './figures.ts';
import { callOf, Ends, inParallel, RESULT, startEngine } from './fixture.ts';

const CREATORS = 16;
const WORKERS = 10;
const TASKS = 2_000;
const ROUNDS = 7;
const SAMPLES = 300;
const PAUSE_MS = 10;

/** Revisions of a task that is created, claimed and completed. */
const LAST_REVISION = 3;

export async function measure(): Promise<readonly Figure[]> {
	// Nothing of holdfast keeps a process alive that only waits.
	const alive = setInterval(() => {}, 1_000);
	const later = await OwnRedis.create({ appendfsync: 'everysec' });
	const always = await OwnRedis.create({ appendfsync: 'always' });
	try {
		const [replicas, durable] = [await startReplicas(later.url), await startReplicas(always.url)];
		const [bull, durableBull] = [await bullOn(later.url), await bullOn(always.url)];
		const [own, raw, ownAlways, rawAlways] = await rounds([
			() => throughput(replicas),
			() => bull.throughput(TASKS),
			() => throughput(durable),
			() => durableBull.throughput(TASKS),
		]);
		await bull.close();
		await durableBull.close();
		const latencies = [
			...(await latency('everysec', replicas, true)),
			...(await latency('always', durable, false)),
		];
		await replicas.close();
		await durable.close();
		return [
			{ what: 'raw BullMQ, create to complete', value: median(raw), unit: '/s' },
			{ what: 'holdfast, create to complete', value: median(own), unit: '/s' },
			{ what: 'holdfast / raw BullMQ', value: ratio(own, raw), unit: '', goal: { atLeast: 0.7 } },
			{ what: 'raw BullMQ, appendfsync always', value: median(rawAlways), unit: '/s' },
			{ what: 'holdfast, appendfsync always', value: median(ownAlways), unit: '/s' },
			{ what: 'holdfast / raw BullMQ, both always', value: ratio(ownAlways, rawAlways), unit: '' },
			{ what: 'holdfast, always / everysec', value: ratio(ownAlways, own), unit: '' },
			...latencies,
		];
	} finally {
		clearInterval(alive);
		await later.remove();
		await always.remove();
	}
}

function bullOn(url: string): ReturnType<typeof startBullMq> {
	return startBullMq(url, '{bull}', CREATORS, WORKERS, RESULT);
}

/**
 * Measures all contenders in turn, round by round, since neither the disk nor the machine is twice the same. The first
 * round warms up and does not count.
 */
async function rounds<const Contenders extends readonly (() => Promise<number>)[]>(
	contenders: Contenders,
): Promise<{ [Index in keyof Contenders]: number[] }> {
	const values = contenders.map((): number[] => []);
	for (let round = 0; round <= ROUNDS; round++)
		for (const [index, measureOne] of contenders.entries()) {
			const value = await measureOne();
			if (round > 0) values[index]?.push(value);
		}
	return values as { [Index in keyof Contenders]: number[] };
}

/** The median of the rounds' ratios. */
function ratio(values: readonly number[], others: readonly number[]): number {
	return median(values.map((value, round) => value / (others[round] ?? NaN)));
}

/** A request server and a worker, each with its own connections, as if on two machines. */
interface Replicas {
	readonly requests: Engine;
	readonly requestBackend: Backend;
	readonly entered: Map<string, number>;
	readonly returned: Map<string, number>;
	close(): Promise<void>;
}

async function startReplicas(url: string): Promise<Replicas> {
	const [entered, returned] = [new Map<string, number>(), new Map<string, number>()];
	const [requestBackend, workerBackend] = [redis(url), redis(url)];
	const requests = await startEngine(requestBackend, 0, () => Promise.reject(new Error('runs no tools')));
	const worker = await startEngine(workerBackend, WORKERS, async ({ record }) => {
		entered.set(record.taskId, performance.now());
		returned.set(record.taskId, performance.now());
		return { kind: 'returned', result: RESULT };
	});
	return {
		...{ requests, requestBackend, entered, returned },
		close: async () => {
			await requests.stop(0);
			await worker.stop(1_000);
			await requestBackend.close();
			await workerBackend.close();
		},
	};
}

/** Tasks per second that were created here, run there, and heard here to have ended. */
async function throughput({ requests, requestBackend }: Replicas): Promise<number> {
	const ends = new Ends(requestBackend, LAST_REVISION);
	const startedAt = performance.now();
	const ended: Promise<void>[] = [];
	await inParallel(TASKS, CREATORS, async (number) => {
		const { taskId } = await requests.call(callOf('deploy', number));
		ended.push(ends.of(taskId));
	});
	await Promise.all(ended);
	ends.stop();
	return (1000 * TASKS) / (performance.now() - startedAt);
}

async function latency(
	fsync: string,
	{ requests, requestBackend, entered, returned }: Replicas,
	hasGoals: boolean,
): Promise<readonly Figure[]> {
	const [pickups, notices]: [number[], number[]] = [[], []];
	for (let sample = 0; sample < SAMPLES; sample++) {
		const ends = new Ends(requestBackend, LAST_REVISION);
		const calledAt = performance.now();
		const { taskId } = await requests.call(callOf('deploy', sample));
		await ends.of(taskId);
		const heardAt = performance.now();
		ends.stop();
		pickups.push((entered.get(taskId) ?? NaN) - calledAt);
		notices.push(heardAt - (returned.get(taskId) ?? NaN));
		await sleep(PAUSE_MS);
	}
	const figures = (what: string, values: readonly number[], atMost: number): readonly Figure[] => [
		{
			...{ what: `${what}, ${fsync}, p50`, value: percentile(values, 0.5), unit: 'ms' },
			...(hasGoals && { goal: { atMost } }),
		},
		{ what: `${what}, ${fsync}, p99`, value: percentile(values, 0.99), unit: 'ms' },
	];
	return [
		...figures('called to entered', pickups, 4),
		...figures('handler returned to heard on another replica', notices, 25),
	];
}
