/** What a caller may ask of a crawl, and what holds when nothing is said. */

import { normalAddress } from './address.ts';

export interface CrawlOptions {
	readonly startAddress: string;
	/** The caller's own limit; without one the whole site is read. */
	readonly maxPages?: number;
	readonly maxDepth: number;
	readonly maxBytesPerPage: number;
	readonly include: readonly string[];
	readonly exclude: readonly string[];
	/** Further origins that belong to the site. */
	readonly origins: readonly string[];
	/** Requests at one host at the same time. */
	readonly perHost: number;
	/** Pages between their request and their commit at the same time: what a kill can at most cost. */
	readonly inFlight: number;
	/** The caller is asked before the crawl goes on past a site of this many known pages. */
	readonly askAbove?: number;
	readonly requestTimeoutMs: number;
	readonly userAgent: string;
}

export const usualOptions: Omit<CrawlOptions, 'startAddress'> = {
	maxDepth: 40,
	maxBytesPerPage: 8_000_000,
	include: [],
	exclude: [],
	origins: [],
	perHost: 6,
	inFlight: 16,
	requestTimeoutMs: 30_000,
	userAgent: 'holdfast-site-index/1.0',
};

/** Throws when the start address is not the address of a web page. */
export const completeOptions = (options: Partial<CrawlOptions> & { startAddress: string }): CrawlOptions => {
	const startAddress = normalAddress(options.startAddress);
	if (startAddress === undefined)
		throw new TypeError(`not the address of a web page: ${options.startAddress}`);
	return { ...usualOptions, ...options, startAddress };
};
