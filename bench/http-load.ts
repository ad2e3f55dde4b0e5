/**
 * Asks a server over and over again, on many connections, one request at a time on each. It speaks just enough
 * HTTP to cost less than any server, so that the server is what is measured. Forked by http.ts.
 */
import { connect } from 'node:net';

/** What to ask. */
export interface LoadOrder {
	readonly port: number;
	/** Whole requests, head and body; asked one after the other. */
	readonly requests: readonly string[];
	readonly connections: number;
	readonly durationMs: number;
}

/** What came of it. */
export interface LoadResult {
	readonly answers: number;
	readonly elapsedMs: number;
	/** How long each answer took, in milliseconds; the first ten thousand. */
	readonly latenciesMs: readonly number[];
	/** Bytes of the last answer's body. */
	readonly bodyBytes: number;
	/** The first answer that was no result, if any. */
	readonly failure: string | null;
}

process.on('message', (order: LoadOrder) => {
	void load(order).then((result) => process.send?.(result));
});

async function load(order: LoadOrder): Promise<LoadResult> {
	const requests = order.requests.map((request) => Buffer.from(request));
	const startedAt = performance.now();
	const endsAt = startedAt + order.durationMs;
	const latenciesMs: number[] = [];
	let answers = 0;
	let bodyBytes = 0;
	let failure: string | null = null;
	let next = 0;

	const one = (): Promise<void> =>
		new Promise((resolve) => {
			const socket = connect({ port: order.port, host: '127.0.0.1', noDelay: true });
			let text = '';
			let askedAt = 0;
			const ask = (): void => {
				askedAt = performance.now();
				socket.write(requests[next++ % requests.length] ?? '');
			};
			socket.on('connect', ask);
			socket.on('data', (chunk) => {
				text += chunk.toString('latin1');
				const body = bodyOf(text);
				if (body === undefined) return;
				if (failure === null && !(text.startsWith('HTTP/1.1 200') && body.includes('"result":')))
					failure = text;
				text = '';
				bodyBytes = body.length;
				answers += 1;
				const now = performance.now();
				if (latenciesMs.length < 10_000) latenciesMs.push(now - askedAt);
				if (now < endsAt && failure === null) ask();
				else socket.end();
			});
			socket.on('error', (error) => {
				failure ??= error.message;
			});
			socket.on('close', () => resolve());
		});
	await Promise.all(Array.from({ length: order.connections }, one));
	return { answers, elapsedMs: performance.now() - startedAt, latenciesMs, bodyBytes, failure };
}

/** The body of a whole answer; undefined while there is more to come. */
function bodyOf(text: string): string | undefined {
	const end = text.indexOf('\r\n\r\n');
	if (end < 0) return undefined;
	const head = text.slice(0, end);
	const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
	const body = text.slice(end + 4);
	if (length !== undefined) return body.length >= Number(length) ? body : undefined;
	return body.endsWith('\r\n0\r\n\r\n') ? body : undefined;
}
