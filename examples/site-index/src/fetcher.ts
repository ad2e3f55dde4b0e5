/** One request at a time to a site: no redirect followed, no more bytes taken than asked for, in bounded time. */
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Readable } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import { assertPublicLiteral, PrivateAddressError, publicLookup } from './address-guard.ts';
import { essenceOf } from './media-type.ts';

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
		// A page that drips for ever keeps the idle timers happy: the whole exchange has a limit of its own.
		const deadline = AbortSignal.timeout(this.#options.timeoutMs);
		try {
			if (!this.#options.allowPrivate) assertPublicLiteral(ask.address);
			const url = new URL(ask.address);
			const response = await this.#agent.request({
				origin: url.origin,
				path: url.pathname + url.search,
				method: 'GET',
				headers: this.#headers(ask),
				signal: AbortSignal.any([signal, deadline]),
			});
			return await this.#judge(ask, response, now);
		} catch (error) {
			signal.throwIfAborted();
			if (deadline.aborted)
				return { kind: 'failed', reason: `no whole answer in ${this.#options.timeoutMs} ms`, again: true };
			return { kind: 'failed', reason: reasonOf(error), again: !(error instanceof PrivateAddressError) };
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

	async #judge(ask: Ask, response: Dispatcher.ResponseData, now: () => number): Promise<Answer> {
		const { statusCode: status, headers, body } = response;
		const header = (name: string): string | undefined => {
			const value = headers[name];
			return Array.isArray(value) ? value[0] : value;
		};
		const contentType = header('content-type') ?? '';
		const give = async (answer: Answer): Promise<Answer> => {
			await body.dump({ limit: 65_536 }).catch(() => undefined);
			return answer;
		};
		if (status === 304) return give({ kind: 'unchanged' });
		if (status >= 300 && status < 400) return give({ kind: 'redirect', location: header('location') ?? '' });
		if (status === 429 || status >= 500)
			return give({ kind: 'busy', status, retryAfterMs: retryAfterMs(header('retry-after'), now()) });
		if (status < 200 || status >= 300) return give({ kind: 'refused', status });
		if (ask.types !== undefined && contentType !== '' && !ask.types.test(essenceOf(contentType)))
			return give({ kind: 'unwanted', contentType: essenceOf(contentType) });
		const { bytes, cut } = await this.#read(body, header('content-encoding'));
		return {
			kind: 'body',
			body: bytes,
			contentType,
			cut,
			etag: header('etag'),
			lastModified: header('last-modified'),
		};
	}

	async #read(
		body: Readable,
		encoding: string | undefined,
	): Promise<{ bytes: Uint8Array<ArrayBuffer>; cut: boolean }> {
		const { maxBytes } = this.#options;
		const decoded = decode(body, encoding);
		const chunks: Uint8Array[] = [];
		let length = 0;
		let cut = false;
		// Counted after unpacking, so that a small packed body cannot become a huge one. Leaving the loop early
		// destroys the stream and with it the connection.
		for await (const chunk of decoded as AsyncIterable<Uint8Array>) {
			chunks.push(chunk);
			length += chunk.byteLength;
			if (length >= maxBytes) {
				cut = length > maxBytes;
				break;
			}
		}
		if (decoded !== body) body.destroy();
		const bytes = new Uint8Array(Math.min(length, maxBytes));
		let at = 0;
		for (const chunk of chunks) {
			const fits = chunk.subarray(0, bytes.length - at);
			bytes.set(fits, at);
			at += fits.length;
		}
		return { bytes, cut };
	}
}

const decode = (body: Readable, encoding: string | undefined): Readable => {
	const unpack = unpackers[encoding?.trim().toLowerCase() ?? ''];
	if (unpack === undefined) return body;
	const unpacked = unpack();
	body.on('error', (error) => unpacked.destroy(error));
	return body.pipe(unpacked);
};

const unpackers: Readonly<Record<string, () => ReturnType<typeof createGunzip>>> = {
	gzip: createGunzip,
	'x-gzip': createGunzip,
	deflate: createInflate,
	br: createBrotliDecompress,
	zstd: createZstdDecompress,
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
