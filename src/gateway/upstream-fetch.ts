import type { FetchLike } from '../client/sdk.ts';
import { taskFetch } from '../client/task-fetch.ts';

let shared: Promise<FetchLike> | undefined;

/**
 * A `fetch` without limits of its own on how long a server may take to answer or be silent: Node's ends a
 * request after 300 s without headers or without a byte. Loaded when a server over HTTP is first needed.
 */
export function upstreamFetch(): Promise<FetchLike> {
	shared ??= import('undici').then(({ Agent, fetch }) => {
		const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
		// The two kinds of Request and Response differ in their types only.
		const send = (url: string | URL, init?: RequestInit): Promise<Response> =>
			fetch(url, { ...init, dispatcher } as never);
		return taskFetch(send);
	});
	return shared;
}
