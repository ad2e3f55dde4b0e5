/** Create → complete through raw BullMQ: what the benchmark of Redis compares with. */
import { Queue, QueueEvents, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { inParallel } from './fixture.ts';

const QUEUE = 'bench';

/** Work that is as large as the benchmarks' tasks: some arguments, half a kilobyte of result. */
const ARGUMENTS = { branch: 'main', environment: 'production', build: 1_234 };

/** Raw BullMQ on a server, ready to be measured again and again. */
export interface BullMq {
	/** Jobs per second that were added, done, and heard by the adder to have been completed. */
	throughput(count: number): Promise<number>;
	close(): Promise<void>;
}

export async function startBullMq(
	url: string,
	prefix: string,
	creators: number,
	workers: number,
	result: object,
): Promise<BullMq> {
	const connect = (): Redis => new Redis(url, { maxRetriesPerRequest: null });
	const connections = [connect(), connect(), connect()] as const;
	const queue = new Queue(QUEUE, { connection: connections[0], prefix });
	const worker = new Worker(QUEUE, async () => result, {
		...{ connection: connections[1], prefix, concurrency: workers },
	});
	const events = new QueueEvents(QUEUE, { connection: connections[2], prefix });
	await Promise.all([queue.waitUntilReady(), worker.waitUntilReady(), events.waitUntilReady()]);
	return {
		throughput: async (count) => {
			let ended = 0;
			const all = new Promise<void>((resolve) => {
				const note = (): void => {
					ended += 1;
					if (ended < count) return;
					events.off('completed', note);
					resolve();
				};
				events.on('completed', note);
			});
			const startedAt = performance.now();
			await inParallel(count, creators, async (number) => {
				await queue.add('deploy', { ...ARGUMENTS, build: number });
			});
			await all;
			return (1000 * count) / (performance.now() - startedAt);
		},
		close: async () => {
			await worker.close();
			await events.close();
			await queue.close();
			for (const connection of connections) connection.disconnect();
		},
	};
}
