/** One index file and what is going on in it: opened when first needed, shared by all requests of the process. */
import { mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Answered, Question } from './src/asker.ts';
import type { SiteEntry, SiteReport } from './src/catalogue.ts';
import { crawl } from './src/crawl.ts';
import type { CrawlPorts } from './src/crawl-ports.ts';
import type { IndexReader } from './src/index-reader.ts';
import type { CrawlOptions } from './src/options.ts';
import { IndexThreads } from './src/threads.ts';
import { Thread } from './src/worker-calls.ts';

/** One reading of a site, for one owner and task. */
export interface Reading extends Omit<CrawlPorts, 'threads' | 'allowPrivate'> {
	readonly taskId: string;
	readonly owner: string;
	readonly options: CrawlOptions;
}

interface Opened {
	readonly threads: IndexThreads;
	readonly reader: Thread<IndexReader>;
}

export class SiteIndex {
	readonly #file: string;
	readonly #allowPrivate: boolean;
	readonly #running = new Map<string, { readonly taskId: string; readonly ended: Promise<unknown> }>();
	#opened: Promise<Opened> | undefined;

	constructor(file: string, allowPrivate: boolean) {
		this.#file = resolve(file);
		this.#allowPrivate = allowPrivate;
	}

	/**
	 * Reads a site from wherever its task stands, to its end or its limit.
	 *
	 * @throws when the signal fires, and when another task reads the same site.
	 */
	async read({ taskId, owner, options, ...ports }: Reading): Promise<SiteReport> {
		const { threads, reader } = await this.#open();
		const key = keyOf(owner, options.startAddress);
		const other = this.#running.get(key);
		if (other !== undefined && other.taskId !== taskId)
			throw new Error(`${options.startAddress} is being read already, by task ${other.taskId}.`);
		// An entry of this very task that was left behind may still be storing the pages it had in hand.
		await other?.ended;
		const crawling = crawl(taskId, owner, options, { ...ports, threads, allowPrivate: this.#allowPrivate });
		const running = { taskId, ended: crawling.catch(() => undefined) };
		this.#running.set(key, running);
		try {
			const { siteId } = await crawling;
			const report = await reader.calls.call('report', owner, siteId);
			if (report === undefined) throw new Error(`${options.startAddress} was forgotten meanwhile.`);
			return report;
		} finally {
			if (this.#running.get(key) === running) this.#running.delete(key);
		}
	}

	/** @throws when the owner has no such site. */
	async options(owner: string, siteId: number): Promise<CrawlOptions> {
		const { reader } = await this.#open();
		const options = await reader.calls.call('options', owner, siteId);
		if (options === undefined)
			throw new Error(`There is no site ${siteId}. list_sites tells which sites there are.`);
		return options;
	}

	async ask(question: Question): Promise<Answered> {
		const { reader } = await this.#open();
		return reader.calls.call('ask', question);
	}

	async sites(owner: string): Promise<SiteEntry[]> {
		const { reader } = await this.#open();
		return reader.calls.call('sites', owner);
	}

	/**
	 * Forgets a site and tells where it began.
	 *
	 * @throws when the owner has no such site, or it is being read.
	 */
	async forget(owner: string, siteId: number): Promise<string> {
		const { threads } = await this.#open();
		const { startAddress } = await this.options(owner, siteId);
		const running = this.#running.get(keyOf(owner, startAddress));
		if (running !== undefined)
			throw new Error(`${startAddress} is being read by task ${running.taskId}; cancel that first.`);
		await threads.store.call('forget', siteId);
		return startAddress;
	}

	#open(): Promise<Opened> {
		this.#opened ??= this.#start().catch((error: unknown) => {
			this.#opened = undefined;
			throw error;
		});
		return this.#opened;
	}

	async #start(): Promise<Opened> {
		mkdirSync(dirname(this.#file), { recursive: true });
		const threads = new IndexThreads(this.#file);
		// Only the thread that writes makes the file and its tables.
		await threads.ready();
		return {
			threads,
			reader: new Thread(new URL('./src/index-reader-worker.ts', import.meta.url), this.#file),
		};
	}
}

const keyOf = (owner: string, startAddress: string): string => JSON.stringify([owner, startAddress]);
