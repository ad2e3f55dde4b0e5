/** The robots.txt of each host a crawl comes to: fetched once, kept for a day. */
import { normalAddress } from './address.ts';
import type { Fetcher } from './fetcher.ts';
import { Robots } from './robots.ts';
import type { StoreCalls } from './threads.ts';

export interface Clock {
	readonly now: () => number;
	readonly sleep: (durationMs: number) => Promise<void>;
	readonly signal: AbortSignal;
}

const keptMs = 24 * 60 * 60_000;
const mostTries = 6;
const firstWaitMs = 1_000;
const longestWaitMs = 60_000;
const longestFile = 500_000;

export class RobotsShelf {
	readonly #siteId: number;
	readonly #userAgent: string;
	readonly #store: StoreCalls;
	readonly #fetcher: Fetcher;
	readonly #clock: Clock;
	readonly #robots = new Map<string, Promise<Robots>>();

	constructor(siteId: number, userAgent: string, store: StoreCalls, fetcher: Fetcher, clock: Clock) {
		this.#siteId = siteId;
		this.#userAgent = userAgent;
		this.#store = store;
		this.#fetcher = fetcher;
		this.#clock = clock;
	}

	of(origin: string): Promise<Robots> {
		let robots = this.#robots.get(origin);
		if (robots === undefined) {
			robots = this.#read(origin);
			this.#robots.set(origin, robots);
		}
		return robots;
	}

	async #read(origin: string): Promise<Robots> {
		const { now } = this.#clock;
		const kept = await this.#store.call('robots', this.#siteId, origin, now() - keptMs);
		if (kept !== undefined) return new Robots(origin, kept.text, this.#userAgent);
		const text = await this.#fetch(origin);
		await this.#store.call('keepRobots', this.#siteId, origin, text, now());
		return new Robots(origin, text, this.#userAgent);
	}

	/** The file, '' when the host has none, nothing when it cannot be had: then nothing on the host may be read. */
	async #fetch(origin: string): Promise<string | undefined> {
		const { now, sleep, signal } = this.#clock;
		let address = `${origin}/robots.txt`;
		for (let tries = 0; tries < mostTries; tries += 1) {
			const answer = await this.#fetcher.get({ address }, signal, now);
			if (answer.kind === 'body') return new TextDecoder().decode(answer.body.subarray(0, longestFile));
			if (answer.kind === 'redirect') address = normalAddress(answer.location, address) ?? address;
			else if (answer.kind === 'busy' || (answer.kind === 'failed' && answer.again)) {
				if (tries === mostTries - 1) return undefined;
				const askedMs = answer.kind === 'busy' ? answer.retryAfterMs : undefined;
				await sleep(Math.min(askedMs ?? firstWaitMs * 2 ** tries, longestWaitMs));
			} else return answer.kind === 'failed' ? undefined : '';
		}
		return '';
	}
}
