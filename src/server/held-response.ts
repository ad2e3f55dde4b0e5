import { isEventStream, SSE_HEADERS, sseFrame, SseWriter } from './sse.ts';

/** How long an answer may take before the response is begun without it. */
const FIRST_BYTE_MS = 750;

/**
 * Begins the response of a slow call before its answer is there: event-stream headers within a second, then
 * a comment every {@link KEEP_ALIVE_MS}, then the answer. Hosts cut a call that is silent on the wire, at 60 s
 * or less, whatever their own timeouts say. A fast answer passes unchanged, with its HTTP status.
 *
 * @param abandon - called when the client goes away before the answer.
 */
export async function heldResponse(answer: Promise<Response>, abandon: () => void): Promise<Response> {
	let timer: NodeJS.Timeout | undefined;
	const late = new Promise<undefined>((resolve) => {
		timer = setTimeout(resolve, FIRST_BYTE_MS, undefined);
	});
	const quick = await Promise.race([answer, late]);
	clearTimeout(timer);
	if (quick) return quick;
	let closed = false;
	const writer = new SseWriter(() => {
		closed = true;
		abandon();
	});
	writer.writeNow(': keepalive\n\n');
	const pass = async (): Promise<void> => {
		const response = await answer;
		if (isEventStream(response)) {
			const decoder = new TextDecoder();
			for await (const chunk of response.body) {
				if (closed) break;
				await writer.write(decoder.decode(chunk, { stream: true }));
			}
		} else if (response.body !== null) writer.writeNow(sseFrame(await response.json()));
	};
	// A failed answer ends the stream; the SDK has reported why.
	void pass()
		.catch(() => {})
		.finally(() => writer.close());
	return new Response(writer.stream, { status: 200, headers: SSE_HEADERS });
}
