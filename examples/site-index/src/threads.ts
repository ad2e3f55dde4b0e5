/**
 * The threads of the index: one writes the file, others read pages and hand them to it. The thread that serves
 * requests does neither, so that a crawl in full swing does not hold up an answer.
 */
import { availableParallelism } from 'node:os';
import { MessageChannel } from 'node:worker_threads';
import type { PageReader } from './page-reader.ts';
import type { SiteStore } from './site-store.ts';
import type { StoreWorkerData } from './store-worker.ts';
import { type Calls, Thread } from './worker-calls.ts';

export type StoreCalls = Calls<SiteStore>;

export class IndexThreads {
	readonly store: StoreCalls;
	readonly #store: Thread<SiteStore>;
	readonly #readers: { thread: Thread<PageReader>; open: number }[];

	constructor(file: string, readers = Math.max(1, Math.min(4, availableParallelism() - 1))) {
		const channels = Array.from({ length: readers }, () => new MessageChannel());
		const ports = channels.map(({ port1 }) => port1);
		const data: StoreWorkerData = { file, readers: ports };
		this.#store = new Thread<SiteStore>(new URL('./store-worker.ts', import.meta.url), data, ports);
		this.store = this.#store.calls;
		const reader = new URL('./reader-worker.ts', import.meta.url);
		this.#readers = channels.map(({ port2 }) => ({
			thread: new Thread<PageReader>(reader, port2, [port2]),
			open: 0,
		}));
	}

	/** Has one of the reading threads do something, the one with the least to do. */
	async read<T>(work: (reader: Calls<PageReader>) => Promise<T>): Promise<T> {
		const reader = this.#readers.reduce((best, one) => (one.open < best.open ? one : best));
		reader.open += 1;
		try {
			return await work(reader.thread.calls);
		} finally {
			reader.open -= 1;
		}
	}

	/** Waits until all threads have started. */
	async ready(): Promise<void> {
		await Promise.all([
			this.store.call('index', false),
			...this.#readers.map(({ thread }) => thread.calls.call('ready')),
		]);
	}

	async close(): Promise<void> {
		// The file needs no closing: an answered call is committed.
		await this.store.call('index', true);
		await Promise.all([this.#store.close(), ...this.#readers.map(({ thread }) => thread.close())]);
	}
}
