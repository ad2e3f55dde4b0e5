import { type FetchLike, SdkErrorCode, SdkHttpError } from './sdk.ts';

/** Longest `Retry-After` that is believed, in milliseconds; a typo must not silence a client for a year. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * A `fetch` for the SDK's HTTP transport that lets the client honour `Retry-After` on 429 and 503 (T71), which
 * the SDK does not pass on. The error is the one that the SDK throws itself, with `data.retryAfterMs` added.
 * Without it such answers are backed off from like any outage.
 *
 * @param inner - what sends the requests. Default: the global `fetch`.
 */
export function taskFetch(inner: FetchLike = fetch): FetchLike {
	return async (url, init) => {
		const response = await inner(url, init);
		if (response.status !== 429 && response.status !== 503) return response;
		const retryAfterMs = parseRetryAfter(response.headers.get('retry-after'), Date.now());
		if (retryAfterMs === undefined) return response;
		const { status, statusText } = response;
		const text = await response.text();
		throw new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `Error POSTing to endpoint: ${text}`, {
			...{ status, statusText, text, retryAfterMs },
		});
	};
}

/** Milliseconds from `nowMs` that a `Retry-After` header asks for: seconds or a date. */
export function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
	const text = header?.trim() ?? '';
	const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs;
	return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}
