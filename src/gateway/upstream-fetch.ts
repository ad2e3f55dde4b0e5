import type { FetchLike } from '../client/sdk.ts';
import { taskFetch } from '../client/task-fetch.ts';

/** Largest message that is read, in bytes. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

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
		return taskFetch(async (url, init) => limitBody(await send(url, init)));
	});
	return shared;
}

/** A response that fails when a message in it is too long, instead of taking all memory. */
function limitBody(response: Response): Response {
	const { body, status, statusText, headers } = response;
	const length = headers.get('content-length');
	if (!response.ok || !body || (length !== null && Number(length) <= MAX_MESSAGE_BYTES)) return response;
	const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
	let bytes = 0;
	const counter = new TransformStream<Uint8Array, Uint8Array>({
		transform(chunk, controller) {
			// A chunk of a stream that has the end of an event in it begins a new message.
			const end = isStream
				? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).lastIndexOf('\n\n')
				: -1;
			bytes = end < 0 ? bytes + chunk.byteLength : chunk.byteLength - end;
			if (bytes > MAX_MESSAGE_BYTES)
				controller.error(new Error(`A message has more than ${MAX_MESSAGE_BYTES} bytes`));
			else controller.enqueue(chunk);
		},
	});
	return new Response(body.pipeThrough(counter), { status, statusText, headers: new Headers([...headers]) });
}
