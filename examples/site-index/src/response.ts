/** Takes in one response as it arrives: a stream and an abort signal for each page would cost more than the page. */
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Dispatcher } from 'undici';

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface Response {
	readonly status: number;
	readonly headers: Headers;
	/** Unpacked; empty when nobody wanted it. */
	readonly body: Uint8Array<ArrayBuffer>;
	/** Whether there was more of it than was to be taken. */
	readonly cut: boolean;
}

export interface Wish {
	/** Bytes of the unpacked body to take. */
	readonly maxBytes: number;
	/** Whether the body is worth having. */
	readonly wants: (status: number, headers: Headers) => boolean;
	/** How long the whole exchange may take: a page that drips for ever keeps every idle timer happy. */
	readonly timeoutMs: number;
	readonly signal: AbortSignal;
}

class NoWholeAnswer extends Error {}

type Unpacker = ReturnType<typeof createGunzip>;

// A short body that nobody wants is read all the same, to keep the connection.
const worthReading = 65_536;

const unpackers: Readonly<Record<string, () => Unpacker>> = {
	gzip: createGunzip,
	'x-gzip': createGunzip,
	deflate: createInflate,
	br: createBrotliDecompress,
	zstd: createZstdDecompress,
};

/**
 * Sends a request and takes the response.
 *
 * @throws the signal's reason, NoWholeAnswer, and what went wrong on the way.
 */
export const take = (
	dispatcher: Dispatcher,
	request: Dispatcher.DispatchOptions,
	wish: Wish,
): Promise<Response> =>
	new Promise((resolve, reject) => {
		wish.signal.throwIfAborted();
		dispatcher.dispatch(request, new ResponseTaker(wish, resolve, reject));
	});

class ResponseTaker implements Dispatcher.DispatchHandler {
	readonly #wish: Wish;
	readonly #resolve: (response: Response) => void;
	readonly #reject: (error: Error) => void;
	readonly #timer: NodeJS.Timeout;
	readonly #onAbort = (): void => this.#fail(this.#wish.signal.reason as Error);
	#controller: Dispatcher.DispatchController | undefined;
	#status = 0;
	#headers: Headers = {};
	#wanted = false;
	#unpacker: Unpacker | undefined;
	readonly #chunks: Uint8Array[] = [];
	#length = 0;
	#isOver = false;

	constructor(wish: Wish, resolve: (response: Response) => void, reject: (error: Error) => void) {
		this.#wish = wish;
		this.#resolve = resolve;
		this.#reject = reject;
		this.#timer = setTimeout(
			() => this.#fail(new NoWholeAnswer(`no whole answer in ${wish.timeoutMs} ms`)),
			wish.timeoutMs,
		);
		wish.signal.addEventListener('abort', this.#onAbort);
	}

	onRequestStart(controller: Dispatcher.DispatchController): void {
		this.#controller = controller;
		if (this.#isOver) this.#hangUp();
	}

	onResponseStart(_controller: unknown, status: number, headers: Headers): void {
		// What comes before the response proper, such as early hints.
		if (status < 200) return;
		this.#status = status;
		this.#headers = headers;
		this.#wanted = this.#wish.wants(status, headers);
		if (this.#wanted) this.#unpacker = this.#unpack(headers['content-encoding']);
	}

	onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
		if (this.#isOver) return;
		if (this.#unpacker === undefined) this.#add(chunk);
		else if (!this.#unpacker.write(chunk)) controller.pause();
	}

	onResponseEnd(): void {
		if (this.#unpacker === undefined) this.#finish();
		else this.#unpacker.end();
	}

	onResponseError(_controller: unknown, error: Error): void {
		this.#fail(error);
	}

	#unpack(encoding: string | string[] | undefined): Unpacker | undefined {
		const name = Array.isArray(encoding) ? encoding[0] : encoding;
		const unpacker = unpackers[name?.trim().toLowerCase() ?? '']?.();
		return unpacker
			?.on('data', (chunk: Uint8Array) => this.#add(chunk))
			.on('drain', () => this.#controller?.resume())
			.on('end', () => this.#finish())
			.on('error', (error) => this.#fail(error));
	}

	/** Counts what is unpacked, so that a small packed body cannot become a huge one. */
	#add(chunk: Uint8Array): void {
		if (this.#isOver) return;
		this.#length += chunk.byteLength;
		if (this.#wanted) this.#chunks.push(chunk);
		if (this.#length < (this.#wanted ? this.#wish.maxBytes : worthReading)) return;
		this.#finish();
		this.#hangUp();
	}

	#finish(): void {
		if (this.#isOver) return;
		this.#end();
		const { maxBytes } = this.#wish;
		const body = new Uint8Array(this.#wanted ? Math.min(this.#length, maxBytes) : 0);
		let at = 0;
		for (const chunk of this.#chunks) {
			const fits = chunk.subarray(0, body.length - at);
			body.set(fits, at);
			at += fits.length;
		}
		this.#resolve({ status: this.#status, headers: this.#headers, body, cut: this.#length > body.length });
	}

	#fail(error: Error): void {
		if (this.#isOver) return;
		this.#end();
		this.#reject(error);
		this.#hangUp();
	}

	#end(): void {
		this.#isOver = true;
		clearTimeout(this.#timer);
		this.#wish.signal.removeEventListener('abort', this.#onAbort);
	}

	#hangUp(): void {
		this.#unpacker?.destroy();
		this.#controller?.abort(new Error('enough of it was read'));
	}
}
