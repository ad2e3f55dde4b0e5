/** What a crawl needs from the one who has it done, and what that one is told. */
import type { HostGates } from './host-gate.ts';
import type { IndexThreads } from './threads.ts';

export interface Progress {
	readonly visited: number;
	readonly known: number;
	/** How many will be read as far as is known by now: it grows with what is found, up to the limit. */
	readonly total: number;
	readonly message: string;
}

export interface CrawlPorts {
	readonly threads: IndexThreads;
	/** Shared by all crawls of the process. */
	readonly hosts: HostGates;
	readonly signal: AbortSignal;
	readonly allowPrivate: boolean;
	readonly onProgress?: (progress: Progress) => void;
	/**
	 * Asked once when the site turns out larger than `askAbove`: how many pages to read, all of them when true.
	 * No request is open meanwhile; when it throws, the crawl ends there and may be gone on with later.
	 */
	readonly confirm?: (known: number) => Promise<boolean | number>;
	readonly now?: () => number;
	readonly sleep?: (durationMs: number, signal: AbortSignal) => Promise<void>;
}

export interface CrawlOutcome {
	readonly siteId: number;
	readonly refresh: boolean;
	/** Whether the run ended at a limit with addresses still unread. */
	readonly stoppedAtLimit: boolean;
}
