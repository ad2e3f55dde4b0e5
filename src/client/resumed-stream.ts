import type { FetchLike } from './sdk.ts';

/**
 * A `fetch` that keeps the place in a resumed stream of events (F19): the SDK forgets from where it resumed a stream
 * that drops again before anything new has come, and then asks for the stream without its place, so that the answer
 * is never sent again. Each resumed stream here begins with an empty event of the id that it was resumed from.
 */
export function resumingFetch(inner: FetchLike): FetchLike {
	return async (url, init) => {
		const response = await inner(url, init);
		const lastEventId = new Headers(init?.headers).get('last-event-id');
		const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
		if (lastEventId === null || !response.ok || !response.body || !isStream) return response;
		const place = new TextEncoder().encode(`id: ${lastEventId}\ndata:\n\n`);
		const body = response.body.pipeThrough(
			new TransformStream<Uint8Array, Uint8Array>({ start: (controller) => controller.enqueue(place) }),
		);
		const { status, statusText, headers } = response;
		return new Response(body, { status, statusText, headers });
	};
}
