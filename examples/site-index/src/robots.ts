/** What a host's robots.txt allows this crawler. */
import { createRequire } from 'node:module';

interface Rules {
	isAllowed(address: string, userAgent?: string): boolean | undefined;
	getCrawlDelay(userAgent?: string): number | undefined;
	getSitemaps(): string[];
}

// The package's types describe a default export that its CommonJS module does not have.
const robotsParser = createRequire(import.meta.url)('robots-parser') as (
	address: string,
	text: string,
) => Rules;

export class Robots {
	readonly #rules: Rules;
	readonly #userAgent: string;
	readonly #refusesAll: boolean;

	/** @param text The file; '' when there is none; nothing when the host failed to say, which refuses all. */
	constructor(origin: string, text: string | undefined, userAgent: string) {
		this.#rules = robotsParser(`${origin}/robots.txt`, text ?? '');
		this.#userAgent = userAgent;
		this.#refusesAll = text === undefined;
	}

	allows(address: string): boolean {
		return !this.#refusesAll && this.#rules.isAllowed(address, this.#userAgent) !== false;
	}

	get delayMs(): number {
		const seconds = this.#rules.getCrawlDelay(this.#userAgent) ?? 0;
		return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 60) * 1_000 : 0;
	}

	get sitemaps(): readonly string[] {
		return this.#rules.getSitemaps();
	}
}
