/** How often a comment keeps a silent stream alive; hosts and proxies cut at 60 s without a byte. */
export const KEEP_ALIVE_MS = 10_000;

/** The headers of an event stream that no proxy should buffer. */
export const SSE_HEADERS = {
	'content-type': 'text/event-stream',
	'cache-control': 'no-cache, no-transform',
	connection: 'keep-alive',
	'x-accel-buffering': 'no',
} as const;

const encoder = new TextEncoder();

/** One JSON-RPC message as an event. */
export function sseFrame(message: unknown): string {
	return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}

/** Whether a response is an event stream with a body. */
export function isEventStream(
	response: Response,
): response is Response & { body: ReadableStream<Uint8Array> } {
	return (
		response.body !== null && (response.headers.get('content-type') ?? '').startsWith('text/event-stream')
	);
}

/** The frames of an event stream, each with its closing blank line. */
export async function* sseFrames(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
	let rest = '';
	const decoder = new TextDecoder();
	for await (const chunk of body) {
		rest += decoder.decode(chunk, { stream: true });
		for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
			yield rest.slice(0, end + 2);
			rest = rest.slice(end + 2);
		}
	}
}

/** The JSON of a frame's data, or undefined for comments and anything else. */
export function frameData(frame: string): unknown {
	const data = frame
		.split('\n')
		.filter((line) => line.startsWith('data:'))
		.map((line) => line.slice(5).trim())
		.join('\n');
	try {
		return data === '' ? undefined : JSON.parse(data);
	} catch {
		return undefined;
	}
}

/** An event stream that is written to, with keep-alive comments and backpressure. */
export class SseWriter {
	readonly stream: ReadableStream<Uint8Array>;
	#controller: ReadableStreamDefaultController<Uint8Array> | undefined;
	#wanted = Promise.withResolvers<void>();
	readonly #keepAlive: NodeJS.Timeout;

	/** @param onClose - called once when the reader goes away or the stream is closed. */
	constructor(onClose: () => void) {
		let closed = false;
		this.#onClose = () => {
			if (closed) return;
			closed = true;
			clearInterval(this.#keepAlive);
			this.#controller = undefined;
			this.#wanted.resolve();
			onClose();
		};
		this.stream = new ReadableStream<Uint8Array>(
			{
				start: (controller) => {
					this.#controller = controller;
				},
				pull: () => {
					this.#wanted.resolve();
					this.#wanted = Promise.withResolvers<void>();
				},
				cancel: () => this.#onClose(),
			},
			{ highWaterMark: 16 },
		);
		this.#keepAlive = setInterval(() => this.writeNow(': keepalive\n\n'), KEEP_ALIVE_MS);
		this.#keepAlive.unref();
	}

	readonly #onClose: () => void;

	/** Writes without waiting for the reader. */
	writeNow(frame: string): void {
		this.#controller?.enqueue(encoder.encode(frame));
	}

	/** Writes, and resolves when the reader has taken most of what was written before. */
	async write(frame: string): Promise<void> {
		this.writeNow(frame);
		while (this.#controller && (this.#controller.desiredSize ?? 0) <= 0) await this.#wanted.promise;
	}

	close(): void {
		const controller = this.#controller;
		this.#onClose();
		controller?.close();
	}
}
