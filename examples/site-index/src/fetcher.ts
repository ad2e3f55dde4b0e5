/** One request at a time to a site: no redirect followed, no more bytes taken than asked for, in bounded time. */
import { Agent } from 'undici';
import { assertPublicLiteral, PrivateAddressError, publicLookup } from './address-guard.ts';
import { essenceOf } from './media-type.ts';
import { type Headers, type Response, take } from './response.ts';

export interface Ask {
	readonly address: string;
	readonly etag?: string | undefined;
	readonly lastModified?: string | undefined;
	/** Content types worth the body; all when left out. */
	readonly types?: RegExp;
}

export type Answer =
	| {
			readonly kind: 'body';
			readonly body: Uint8Array<ArrayBuffer>;
			readonly contentType: string;
			readonly cut: boolean;
			readonly etag: string | undefined;
			readonly lastModified: string | undefined;
	  }
	| { readonly kind: 'redirect'; readonly location: string }
	| { readonly kind: 'unchanged' }
	| { readonly kind: 'busy'; readonly status: number; readonly retryAfterMs: number | undefined }
	| { readonly kind: 'unwanted'; readonly contentType: string }
	| { readonly kind: 'refused'; readonly status: number }
	| { readonly kind: 'failed'; readonly reason: string; readonly again: boolean };

export interface FetcherOptions {
	readonly userAgent: string;
	readonly maxBytes: number;
	readonly timeoutMs: number;
	/** Lets private and link-local addresses through. */
	readonly allowPrivate: boolean;
	readonly perHost: number;
}

export class Fetcher {
	readonly #agent: Agent;
	readonly #options: FetcherOptions;

	constructor(options: FetcherOptions) {
		this.#options = options;
		this.#agent = new Agent({
			connections: options.perHost,
			connectTimeout: options.timeoutMs,
			headersTimeout: options.timeoutMs,
			bodyTimeout: options.timeoutMs,
			connect: options.allowPrivate ? {} : { lookup: publicLookup },
		});
	}

	async get(ask: Ask, signal: AbortSignal, now: () => number = Date.now): Promise<Answer> {
		try {
			if (!this.#options.allowPrivate) assertPublicLiteral(ask.address);
			const { origin, pathname, search } = new URL(ask.address);
			const response = await take(
				this.#agent,
				{ origin, path: pathname + search, method: 'GET', headers: this.#headers(ask) },
				{
					maxBytes: this.#options.maxBytes,
					timeoutMs: this.#options.timeoutMs,
					wants: (status, headers) => status >= 200 && status < 300 && isWanted(ask, headers),
					signal,
				},
			);
			return judge(ask, response, now);
		} catch (error) {
			signal.throwIfAborted();
			const again = !(error instanceof PrivateAddressError);
			return { kind: 'failed', reason: reasonOf(error), again };
		}
	}

	close(): Promise<void> {
		return this.#agent.destroy();
	}

	#headers({ etag, lastModified }: Ask): Record<string, string> {
		const headers: Record<string, string> = {
			'user-agent': this.#options.userAgent,
			accept: 'text/html, application/xhtml+xml, text/plain;q=0.8, */*;q=0.1',
			'accept-encoding': 'gzip, br, zstd, deflate',
		};
		if (etag !== undefined) headers['if-none-match'] = etag;
		if (lastModified !== undefined) headers['if-modified-since'] = lastModified;
		return headers;
	}
}

const isWanted = ({ types }: Ask, headers: Headers): boolean => {
	const contentType = one(headers, 'content-type') ?? '';
	return types === undefined || contentType === '' || types.test(essenceOf(contentType));
};

const judge = (ask: Ask, { status, headers, body, cut }: Response, now: () => number): Answer => {
	const contentType = one(headers, 'content-type') ?? '';
	if (status === 304) return { kind: 'unchanged' };
	if (status >= 300 && status < 400) return { kind: 'redirect', location: one(headers, 'location') ?? '' };
	if (status === 429 || status >= 500)
		return { kind: 'busy', status, retryAfterMs: retryAfterMs(one(headers, 'retry-after'), now()) };
	if (status < 200 || status >= 300) return { kind: 'refused', status };
	if (!isWanted(ask, headers)) return { kind: 'unwanted', contentType: essenceOf(contentType) };
	return {
		...{ kind: 'body', body, contentType, cut },
		etag: one(headers, 'etag'),
		lastModified: one(headers, 'last-modified'),
	};
};

const one = (headers: Headers, name: string): string | undefined => {
	const value = headers[name];
	return Array.isArray(value) ? value[0] : value;
};

const retryAfterMs = (value: string | undefined, now: number): number | undefined => {
	if (value === undefined) return undefined;
	if (/^\d+$/u.test(value.trim())) return Number(value) * 1_000;
	const date = Date.parse(value);
	return Number.isNaN(date) ? undefined : Math.max(0, date - now);
};

const reasonOf = (error: unknown): string => {
	if (!(error instanceof Error)) return String(error);
	const cause = error.cause instanceof Error ? error.cause : error;
	return cause.message === '' ? cause.name : cause.message;
};
