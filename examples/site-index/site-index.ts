/** One index file and what is going on in it: shared by all requests of the process, and by other processes. */
import { mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Answered, Question } from './src/asker.ts';
import type { SiteEntry, SiteReport } from './src/catalogue.ts';
import { crawl } from './src/crawl.ts';
import type { CrawlPorts } from './src/crawl-ports.ts';
import { HostGates } from './src/host-gate.ts';
import type { IndexReader } from './src/index-reader.ts';
import type { CrawlOptions } from './src/options.ts';
import { IndexThreads } from './src/threads.ts';
import { Thread } from './src/worker-calls.ts';

/** One reading of a site, for one owner and task. */
export interface Reading extends Omit<CrawlPorts, 'threads' | 'hosts' | 'allowPrivate'> {
	readonly taskId: string;
	readonly owner: string;
	readonly options: CrawlOptions;
}

export class SiteIndex {
	readonly #file: string;
	readonly #allowPrivate: boolean;
	readonly #hosts = new HostGates();
	/** The crawls of this process by task, each until it has stored what it had in hand. */
	readonly #crawls = new Map<string, Promise<unknown>>();
	#opened: { readonly threads: IndexThreads; readonly reader: Thread<IndexReader> } | undefined;

	constructor(file: string, allowPrivate: boolean) {
		this.#file = resolve(file);
		this.#allowPrivate = allowPrivate;
	}

	/** Makes the file where there is none, and starts the threads. */
	async open(): Promise<void> {
		mkdirSync(dirname(this.#file), { recursive: true });
		const threads = new IndexThreads(this.#file);
		// Only the thread that writes makes the file and its tables.
		await threads.ready();
		const reader = new Thread<IndexReader>(
			new URL('./src/index-reader-worker.ts', import.meta.url),
			this.#file,
		);
		this.#opened = { threads, reader };
	}

	async close(): Promise<void> {
		await Promise.all(this.#crawls.values());
		await Promise.all([this.#parts.threads.close(), this.#parts.reader.close()]);
	}

	/**
	 * Reads a site from wherever its task stands, to its end or its limit.
	 *
	 * @throws when the signal fires, and when another task reads the same site, here or in another process.
	 */
	async read({ taskId, owner, options, ...ports }: Reading): Promise<SiteReport> {
		const { threads, reader } = this.#parts;
		// An entry of this very task that was left behind may still be storing the pages it had in hand.
		await this.#crawls.get(taskId);
		const crawling = crawl(taskId, owner, options, {
			...ports,
			threads,
			hosts: this.#hosts,
			allowPrivate: this.#allowPrivate,
		});
		const ended = crawling.catch(() => undefined);
		this.#crawls.set(taskId, ended);
		try {
			const { siteId } = await crawling;
			const report = await reader.calls.call('report', owner, siteId);
			if (report === undefined) throw new Error(`${options.startAddress} was forgotten meanwhile.`);
			return report;
		} finally {
			if (this.#crawls.get(taskId) === ended) this.#crawls.delete(taskId);
		}
	}

	/** @throws when the owner has no such site. */
	async options(owner: string, siteId: number): Promise<CrawlOptions> {
		const options = await this.#parts.reader.calls.call('options', owner, siteId);
		if (options === undefined)
			throw new Error(`There is no site ${siteId}. list_sites tells which sites there are.`);
		return options;
	}

	ask(question: Question): Promise<Answered> {
		return this.#parts.reader.calls.call('ask', question);
	}

	sites(owner: string): Promise<SiteEntry[]> {
		return this.#parts.reader.calls.call('sites', owner);
	}

	/**
	 * The tasks that began to read a site and have not come to its end, though they do not read it now: they may
	 * wait for an answer, or be over long since.
	 *
	 * @throws when a task reads the site now.
	 */
	async unfinished(siteId: number, startAddress: string): Promise<string[]> {
		const { reading, tasks } = await this.#parts.threads.store.call('unfinished', siteId, Date.now());
		if (reading === undefined) return tasks;
		throw new Error(`${startAddress} is being read by task ${reading}; cancel that first.`);
	}

	async forget(siteId: number): Promise<void> {
		await this.#parts.threads.store.call('forget', siteId);
	}

	get #parts(): { readonly threads: IndexThreads; readonly reader: Thread<IndexReader> } {
		if (this.#opened === undefined) throw new Error('The index is not open.');
		return this.#opened;
	}
}
