/** Which of the addresses found on a site's pages belong to the crawl, as far as an address alone can tell. */
import { looksBinary, normalAddress, originOf } from './address.ts';
import type { CrawlOptions } from './options.ts';
import { PathFilter } from './path-filter.ts';
import { TrapWatch } from './trap.ts';

// Beyond this many addresses the table itself is asked whether one is known.
const mostRemembered = 500_000;

export interface Judged {
	readonly address: string;
	/** Why the address is not to be queued after all. */
	readonly refused: string | undefined;
}

export class SiteScope {
	readonly options: CrawlOptions;
	readonly #origins: Set<string>;
	readonly #filter: PathFilter;
	readonly #traps: TrapWatch;
	readonly #known = new Set<string>();
	/** Links as they are written, under where they were written: menus repeat the same ones on every page. */
	readonly #seen = new Set<string>();

	constructor(options: CrawlOptions, origins: readonly string[], known: Iterable<string>, now: number) {
		this.options = options;
		this.#origins = new Set(origins);
		this.#filter = new PathFilter(options.include, options.exclude);
		this.#traps = new TrapWatch(new Date(now).getUTCFullYear());
		for (const address of known) {
			this.#remember(address);
			this.#traps.refuse(address);
		}
	}

	get origins(): readonly string[] {
		return [...this.#origins];
	}

	addOrigin(origin: string): void {
		this.#origins.add(origin);
	}

	/** The address to queue, or why it is not queued; nothing at all for what is known or no page of the site. */
	judge(raw: string, base: string): Judged | undefined {
		// A link that begins like this leads somewhere else from each page; others depend on the directory at most.
		const seen = /^[\s?#]|^$/u.test(raw) ? undefined : `${directoryOf(base)} ${raw}`;
		if (seen !== undefined) {
			if (this.#seen.has(seen)) return undefined;
			if (this.#seen.size < mostRemembered) this.#seen.add(seen);
		}
		const address = normalAddress(raw, base);
		if (address === undefined || this.#known.has(address)) return undefined;
		if (!this.#origins.has(originOf(address))) return undefined;
		this.#remember(address);
		// Where the caller starts is always read, be it only for its links.
		if (address !== this.options.startAddress && (looksBinary(address) || !this.#filter.wants(address)))
			return undefined;
		return { address, refused: this.#traps.refuse(address) };
	}

	/** Whether an address is on the site at all. */
	holds(address: string): boolean {
		return this.#origins.has(originOf(address));
	}

	#remember(address: string): void {
		if (this.#known.size < mostRemembered) this.#known.add(address);
	}
}

const directoryOf = (base: string): string => {
	const query = base.search(/[?#]/u);
	const path = query === -1 ? base : base.slice(0, query);
	return path.slice(0, path.lastIndexOf('/'));
};
