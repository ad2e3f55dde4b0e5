import { sessionFetch } from './http-session.ts';
import { resumingFetch } from './resumed-stream.ts';
import { type FetchLike, SdkErrorCode, SdkHttpError } from './sdk.ts';

/** Longest `Retry-After` that is believed, in milliseconds; a typo must not silence a client for a year. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * A `fetch` for the SDK's HTTP transport that makes good what the SDK leaves to its host:
 *
 * - `Retry-After` on 429 and 503 (T71) is honoured: the error is the one that the SDK throws itself, with
 *   `data.retryAfterMs` added. Without it such answers are backed off from like any outage.
 * - A server before 2026-07-28 that has lost the session gets a new one, once for all requests that wait; a request
 *   that was turned away for it is sent once more. Without it such a server is out of reach until the host connects
 *   the client anew.
 * - A resumed stream that drops again before anything new came is resumed from the same place.
 *
 * @param inner - what sends the requests. Default: the global `fetch`.
 */
export function taskFetch(inner: FetchLike = fetch): FetchLike {
	const send = resumingFetch(sessionFetch(inner));
	return async (url, init) => {
		const response = await send(url, init);
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
