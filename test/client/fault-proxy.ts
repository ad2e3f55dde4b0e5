/** A TCP proxy in front of an HTTP server that breaks the network in ways that can be switched at any time. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * - `pass`: bytes go through.
 * - `drop`: every connection is closed without a word, new ones too.
 * - `reset`: every connection is reset, new ones too.
 * - `torn`: a connection is reset once 100 bytes have come from the server, in the middle of an answer or a stream.
 * - `half_open`: connections stand, and nothing that either side sends arrives any more.
 * - `slow`: 500 ms each way.
 * - `trickle`: what the server sends arrives byte by byte.
 * - `unavailable`: each request is answered with 503.
 */
export type Fault = 'pass' | 'drop' | 'reset' | 'torn' | 'half_open' | 'slow' | 'trickle' | 'unavailable';

/** How much of an answer arrives that is torn. */
const TORN_AFTER_BYTES = 100;

const UNAVAILABLE =
	'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\nconnection: close\r\nretry-after: 1\r\n\r\nbusy';

export class FaultProxy {
	/** Connections that were accepted, by the fault of that moment. */
	readonly accepted: Record<string, number> = {};
	#fault: Fault = 'pass';
	readonly #server: Server;
	readonly #sockets = new Set<Socket>();
	readonly #targetPort: number;

	private constructor(targetPort: number) {
		this.#targetPort = targetPort;
		this.#server = createServer((socket) => this.#accept(socket));
	}

	static async open(targetPort: number): Promise<FaultProxy> {
		const proxy = new FaultProxy(targetPort);
		await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
		return proxy;
	}

	get url(): string {
		return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
	}

	/** Switches the fault, for connections that stand as well. */
	set(fault: Fault): void {
		this.#fault = fault;
		if (fault === 'drop') for (const socket of this.#sockets) socket.destroy();
		if (fault === 'reset' || fault === 'unavailable') this.cut();
	}

	/** Resets every connection that stands. */
	cut(): void {
		for (const socket of this.#sockets) socket.resetAndDestroy();
	}

	async close(): Promise<void> {
		this.cut();
		await new Promise<void>((resolve) => this.#server.close(() => resolve()));
	}

	#accept(near: Socket): void {
		this.accepted[this.#fault] = (this.accepted[this.#fault] ?? 0) + 1;
		this.#track(near);
		if (this.#fault === 'drop') return void near.destroy();
		if (this.#fault === 'reset') return void near.resetAndDestroy();
		if (this.#fault === 'unavailable') {
			near.once('data', () => near.end(UNAVAILABLE));
			return;
		}
		const far = this.#track(connect(this.#targetPort, '127.0.0.1'));
		near.on('close', () => far.destroy());
		far.on('close', () => near.destroy());
		this.#pipe(near, far, false);
		this.#pipe(far, near, true);
	}

	/** Forwards in order, as the fault of the moment says. */
	#pipe(from: Socket, to: Socket, fromServer: boolean): void {
		let line = Promise.resolve();
		from.on('data', (chunk: Buffer) => {
			line = line.then(async () => {
				if (this.#fault === 'half_open') return;
				if (this.#fault === 'torn' && fromServer) {
					to.write(chunk.subarray(0, TORN_AFTER_BYTES), () => to.resetAndDestroy());
					return;
				}
				if (this.#fault === 'slow') await pause(500);
				if (this.#fault === 'trickle' && fromServer) {
					for (const byte of chunk) {
						to.write(Buffer.of(byte));
						await pause(0);
					}
				} else to.write(chunk);
			});
		});
	}

	#track(socket: Socket): Socket {
		socket.setNoDelay(true);
		this.#sockets.add(socket);
		socket.on('error', () => {});
		socket.on('close', () => this.#sockets.delete(socket));
		return socket;
	}
}
