/**
 * One run over a site, from wherever the store says it stands: it can be killed at any point and started again
 * with the same task id, and goes on with what is still queued.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { normalAddress, originOf } from './address.ts';
import type { CrawlOutcome, CrawlPorts } from './crawl-ports.ts';
import { type Answer, Fetcher } from './fetcher.ts';
import type { HostGate } from './host-gate.ts';
import type { CrawlOptions } from './options.ts';
import type { Robots } from './robots.ts';
import { RobotsShelf } from './robots-shelf.ts';
import { SiteClaim } from './site-claim.ts';
import type { Found, PageKind, PageState, QueuedPage, Run } from './stored.ts';
import { type Sleep, usualSleep, Wakeup } from './wakeup.ts';

interface Work {
	readonly page: QueuedPage;
	readonly kind: PageKind;
	readonly origin: string;
	tries: number;
	notBefore: number;
}

const mostTries = 6;
const firstSetBackMs = 1_000;
const deepestSitemap = 3;
// How long pages in hand may take to be stored when the caller goes away: they are not fetched again then.
const windDownMs = 2_000;
const pageTypes = /^(text\/(html|plain|markdown|x-rst)|application\/xhtml\+xml)$/u;

export const crawl = async (
	taskId: string,
	owner: string,
	options: CrawlOptions,
	ports: CrawlPorts,
): Promise<CrawlOutcome> => {
	const now = (ports.now ?? Date.now)();
	const run = await ports.threads.store.call('begin', taskId, owner, options, now);
	const site = new SiteCrawl(run, taskId, options, ports);
	try {
		return await site.run();
	} finally {
		await site.close();
	}
};

class SiteCrawl {
	readonly #run: Run;
	readonly #options: CrawlOptions;
	readonly #ports: CrawlPorts;
	readonly #now: () => number;
	readonly #sleep: Sleep;
	readonly #fetcher: Fetcher;
	readonly #robots: RobotsShelf;
	readonly #claim: SiteClaim;
	readonly #gates = new Map<string, HostGate>();
	readonly #inHand = new Set<Promise<void>>();
	// Aborted when the caller has been gone for a while and when one page's handling fails, so that nothing goes on
	// behind an error.
	readonly #stop = new AbortController();
	/** From here on nothing new is begun; what is in hand has a moment to be stored. */
	readonly #leaving: AbortSignal;
	#ready: Work[] = [];
	#later: Work[] = [];
	#cursor = 0;
	#visited: number;
	#reading = 0;
	#known: number;
	#limit: number | undefined;
	#asked = false;
	readonly #changes: Wakeup;

	constructor(run: Run, taskId: string, options: CrawlOptions, ports: CrawlPorts) {
		this.#run = run;
		this.#options = options;
		this.#ports = ports;
		this.#now = ports.now ?? Date.now;
		this.#sleep = ports.sleep ?? usualSleep;
		this.#leaving = AbortSignal.any([ports.signal, this.#stop.signal]);
		this.#changes = new Wakeup(this.#sleep, this.#leaving);
		this.#visited = run.visited;
		this.#known = run.known;
		this.#limit = run.pageLimit;
		this.#fetcher = new Fetcher({
			userAgent: options.userAgent,
			maxBytes: options.maxBytesPerPage,
			timeoutMs: options.requestTimeoutMs,
			allowPrivate: ports.allowPrivate,
			perHost: options.perHost,
		});
		this.#robots = new RobotsShelf(run.siteId, options.userAgent, ports.threads.store, this.#fetcher, {
			now: this.#now,
			sleep: (durationMs) => this.#sleep(durationMs, this.#leaving),
			signal: this.#leaving,
		});
		this.#claim = new SiteClaim(ports.threads.store, run.siteId, taskId, this.#now, (reason) =>
			this.#stop.abort(reason),
		);
	}

	async run(): Promise<CrawlOutcome> {
		const { runId, siteId, refresh, finished } = this.#run;
		const { store } = this.#ports.threads;
		if (!finished) {
			await this.#seed();
			await this.#drain('sitemap');
			await this.#drain('page');
			await store.call('finish', runId, this.#now());
		}
		const left = await store.call('take', siteId, 'page', 0, 1);
		return { siteId, refresh, stoppedAtLimit: left.length > 0 };
	}

	async close(): Promise<void> {
		const inHand = Promise.allSettled(this.#inHand);
		const isEmpty = new AbortController();
		const windDown = wait(windDownMs, undefined, { signal: isEmpty.signal }).catch(() => undefined);
		await Promise.race([inHand, windDown]);
		isEmpty.abort();
		this.#stop.abort(new Error('the crawl has ended'));
		await inHand;
		for (const origin of this.#gates.keys()) this.#ports.hosts.part(origin, this.#changes.wake);
		await Promise.all([this.#fetcher.close(), this.#claim.release()]);
	}

	async #seed(): Promise<void> {
		const { startAddress } = this.#options;
		const robots = await this.#firstRobots(originOf(startAddress));
		const named = [...robots.sitemaps, '/sitemap.xml'].map((address) => normalAddress(address, startAddress));
		const sitemaps = new Set(named.filter((address) => address !== undefined));
		await this.#admit([
			{ address: startAddress, kind: 'page', depth: 0 },
			...[...sitemaps].map((address) => ({ address, kind: 'sitemap' as const, depth: 0 })),
		]);
	}

	/** What the site's own host asks for, asked when no other crawl asks too much of it already. */
	async #firstRobots(origin: string): Promise<Robots> {
		const gate = this.#gate(origin);
		for (let waitMs = gate.waitMs(this.#now()); waitMs !== 0; waitMs = gate.waitMs(this.#now())) {
			await this.#changes.next(waitMs ?? Infinity);
			this.#leaving.throwIfAborted();
		}
		gate.enter(this.#now());
		let robots: Robots;
		try {
			robots = await this.#robots.of(origin);
		} finally {
			gate.leave();
		}
		gate.keepApart(robots.delayMs, this.#now());
		return robots;
	}

	async #admit(found: readonly Found[]): Promise<void> {
		if (found.length === 0) return;
		const { store } = this.#ports.threads;
		this.#known += await store.call(
			'admit',
			this.#run.siteId,
			found,
			this.#options.startAddress,
			this.#now(),
		);
	}

	/** Works until nothing of a kind is queued, or the limit is reached. */
	async #drain(kind: PageKind): Promise<void> {
		this.#cursor = 0;
		this.#ready = [];
		this.#later = [];
		for (;;) {
			this.#leaving.throwIfAborted();
			if (kind === 'page' && this.#mustAsk()) {
				// Pages in hand would be fetched again if the answer let this crawl end.
				if (this.#inHand.size === 0) await this.#askAboutSize();
				else await this.#changes.next(Infinity);
				continue;
			}
			if (this.#ready.length < this.#options.inFlight) await this.#refill(kind);
			const waitMs = this.#launch();
			if (this.#inHand.size === 0 && waitMs === undefined) return;
			await this.#changes.next(waitMs ?? Infinity);
		}
	}

	async #refill(kind: PageKind): Promise<void> {
		const pages = await this.#ports.threads.store.call('take', this.#run.siteId, kind, this.#cursor, 64);
		this.#cursor = pages.at(-1)?.id ?? this.#cursor;
		for (const page of pages)
			this.#ready.push({ page, kind, origin: originOf(page.address), tries: 0, notBefore: 0 });
	}

	/**
	 * Starts all that may start. Tells how long until more may: Infinity when a request has to come back first, nothing
	 * when it is not time that is in the way.
	 */
	#launch(): number | undefined {
		if (this.#inHand.size >= this.#options.inFlight) return undefined;
		const now = this.#now();
		let waitMs: number | undefined;
		const due = this.#later.filter((work) => work.notBefore <= now);
		for (const work of this.#later)
			if (work.notBefore > now) waitMs = Math.min(waitMs ?? Infinity, work.notBefore - now);
		this.#later = this.#later.filter((work) => work.notBefore > now);
		const candidates = [...due, ...this.#ready];
		const left: Work[] = [];
		const closed = new Set<string>();
		for (const [at, work] of candidates.entries()) {
			if (this.#inHand.size >= this.#options.inFlight) {
				left.push(...candidates.slice(at));
				break;
			}
			if (work.kind === 'page' && this.#visited + this.#reading >= (this.#limit ?? Infinity)) {
				// What is in hand may still turn out not to count; once it is empty, the limit is reached for good.
				if (this.#inHand.size === 0) return undefined;
				left.push(...candidates.slice(at));
				break;
			}
			if (closed.has(work.origin)) left.push(work);
			else {
				const gate = this.#gate(work.origin);
				const gateMs = gate.waitMs(now);
				if (gateMs === 0) this.#start(work, gate);
				else {
					closed.add(work.origin);
					left.push(work);
					// Another crawl may have the host to itself, so that nothing here is in hand and much is left.
					waitMs = Math.min(waitMs ?? Infinity, gateMs ?? Infinity);
				}
			}
		}
		this.#ready = left;
		return waitMs;
	}

	#start(work: Work, gate: HostGate): void {
		// The first address of a host starts alone: its robots.txt decides how the others may follow.
		gate.enter(this.#now());
		if (work.kind === 'page') this.#reading += 1;
		const job = this.#visit(work)
			.catch((error: unknown) => {
				if (!this.#leaving.aborted) this.#stop.abort(error);
			})
			.finally(() => {
				if (work.kind === 'page') this.#reading -= 1;
				this.#inHand.delete(job);
				this.#changes.wake();
			});
		this.#inHand.add(job);
	}

	#mustAsk(): boolean {
		const { askAbove } = this.#options;
		const isAnswerable = !this.#asked && this.#ports.confirm !== undefined;
		return isAnswerable && askAbove !== undefined && this.#known > askAbove;
	}

	async #askAboutSize(): Promise<void> {
		const { confirm, threads } = this.#ports;
		this.#asked = true;
		const answer = (await confirm?.(this.#known)) ?? true;
		if (answer === true) return;
		this.#limit = Math.min(
			this.#limit ?? Infinity,
			answer === false ? (this.#options.askAbove ?? 0) : answer,
		);
		await threads.store.call('limit', this.#run.runId, this.#limit);
	}

	async #visit(work: Work): Promise<void> {
		const { page, kind } = work;
		const { store } = this.#ports.threads;
		const { runId, refresh } = this.#run;
		const gate = this.#gate(work.origin);
		let answer: Answer;
		try {
			const robots = await this.#robots.of(work.origin);
			gate.keepApart(robots.delayMs, this.#now());
			if (!robots.allows(page.address)) {
				await store.call('settle', page.id, runId, 'skipped', 'robots.txt asks not to read it');
				return;
			}
			const { changedAt, fetchedAt, hash } = page;
			if (refresh && hash !== undefined && changedAt !== undefined && changedAt < (fetchedAt ?? 0)) {
				this.#count(await store.call('unchanged', page.id, runId, this.#now(), false));
				return;
			}
			// Without the page's content nothing may be left out: a page that is not indexed is asked for in full.
			const { etag, lastModified } = hash === undefined || kind === 'sitemap' ? {} : page;
			const types = kind === 'page' ? { types: pageTypes } : {};
			answer = await this.#fetcher.get(
				{ address: page.address, etag, lastModified, ...types },
				this.#stop.signal,
				this.#now,
			);
		} finally {
			gate.leave();
		}
		if (answer.kind === 'busy' || answer.kind === 'failed') return this.#setBack(work, answer, gate);
		gate.calm();
		if (answer.kind === 'body')
			return kind === 'page' ? this.#keep(page, answer) : this.#keepSitemap(page, answer);
		if (answer.kind === 'unchanged')
			return this.#count(await store.call('unchanged', page.id, runId, this.#now(), true));
		if (answer.kind === 'redirect') return this.#redirect(work, answer.location);
		if (answer.kind === 'unwanted')
			return store.call('settle', page.id, runId, 'skipped', `no page but ${answer.contentType}`);
		const gone = answer.status === 404 || answer.status === 410;
		await store.call(
			'settle',
			page.id,
			runId,
			gone ? 'gone' : 'failed',
			`the server answered ${answer.status}`,
		);
	}

	async #keep(page: QueuedPage, answer: Answer & { kind: 'body' }): Promise<void> {
		const { threads } = this.#ports;
		const { runId, siteId } = this.#run;
		const bytes = answer.body.byteLength;
		const { body, contentType, etag, lastModified, cut } = answer;
		const { state, added } = await threads.read((reader) =>
			reader.move([body.buffer], 'keep', {
				...{ pageId: page.id, runId, siteId, address: page.address, depth: page.depth, at: this.#now() },
				...{ body, contentType, etag, lastModified, cut, bytes },
			}),
		);
		this.#known += added;
		this.#count(state);
	}

	async #keepSitemap(page: QueuedPage, answer: Answer & { kind: 'body' }): Promise<void> {
		const { threads } = this.#ports;
		const { pages, sitemaps } = await threads.read((reader) =>
			reader.move([answer.body.buffer], 'sitemap', answer.body, answer.contentType),
		);
		await this.#admit([
			...pages.map(({ address, changedAt }) => ({ address, kind: 'page' as const, depth: 1, changedAt })),
			...(page.depth < deepestSitemap ? sitemaps : []).flatMap((address) => {
				const normal = normalAddress(address, page.address);
				return normal === undefined
					? []
					: [{ address: normal, kind: 'sitemap' as const, depth: page.depth + 1 }];
			}),
		]);
		await threads.store.call('settle', page.id, this.#run.runId, 'indexed', undefined);
	}

	async #redirect({ page, kind }: Work, location: string): Promise<void> {
		const { store } = this.#ports.threads;
		const { runId, siteId } = this.#run;
		if (kind === 'page') {
			this.#known += await store.call('redirect', siteId, page, runId, location, this.#now());
			return;
		}
		const address = normalAddress(location, page.address);
		if (address !== undefined && page.depth < deepestSitemap)
			await this.#admit([{ address, kind: 'sitemap', depth: page.depth + 1 }]);
		await store.call('settle', page.id, runId, 'redirected', undefined);
	}

	/** Puts an address back for later, the whole host's when the host asked for it. */
	async #setBack(work: Work, answer: Answer & { kind: 'busy' | 'failed' }, gate: HostGate): Promise<void> {
		work.tries += 1;
		const reason = answer.kind === 'busy' ? `the server answered ${answer.status}` : answer.reason;
		const again = answer.kind === 'busy' || answer.again;
		if (!again || work.tries >= (work.kind === 'page' ? mostTries : 2)) {
			await this.#ports.threads.store.call('settle', work.page.id, this.#run.runId, 'failed', reason);
			return;
		}
		const whole = answer.kind === 'busy' && (answer.status === 429 || answer.status === 503);
		if (whole) gate.backOff(this.#now(), answer.retryAfterMs);
		else work.notBefore = this.#now() + firstSetBackMs * 2 ** (work.tries - 1);
		this.#later.push(work);
	}

	#count(state: PageState): void {
		if (state !== 'indexed' && state !== 'duplicate') return;
		this.#visited += 1;
		const total = Math.min(this.#known, this.#limit ?? Infinity);
		this.#ports.onProgress?.({
			visited: this.#visited,
			known: this.#known,
			total,
			message: `Crawling page ${this.#visited} of ${total}`,
		});
	}

	#gate(origin: string): HostGate {
		let gate = this.#gates.get(origin);
		if (gate === undefined) {
			gate = this.#ports.hosts.join(origin, this.#options.perHost, this.#changes.wake);
			this.#gates.set(origin, gate);
		}
		return gate;
	}
}
