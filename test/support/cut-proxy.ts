/** A way to a server that can be cut: nothing comes through any more, and neither end is told. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class CutProxy {
	readonly #server: Server;
	readonly #sockets = new Set<Socket>();
	readonly #answering = new Set<Socket>();
	readonly #port: number;
	#isCut = false;

	private constructor(server: Server, port: number) {
		this.#server = server;
		this.#port = port;
	}

	/** Listens on a free port, or this one, and passes everything on to another port of this machine. */
	static async to(port: number, ownPort = 0): Promise<CutProxy> {
		const server = createServer({ allowHalfOpen: true });
		server.listen(ownPort, '127.0.0.1');
		await once(server, 'listening');
		const address = server.address();
		if (address === null || typeof address === 'string') throw new Error('the proxy does not listen');
		const proxy = new CutProxy(server, address.port);
		server.on('connection', (incoming) => proxy.#join(incoming, connect(port, '127.0.0.1')));
		return proxy;
	}

	get port(): number {
		return this.#port;
	}

	/** From now on nothing comes through, in either direction. */
	cut(): void {
		this.#isCut = true;
		for (const socket of this.#sockets) socket.pause();
	}

	/** What was held up arrives. */
	mend(): void {
		this.#isCut = false;
		for (const socket of this.#sockets) socket.resume();
	}

	/** From now on what is asked comes through on the connections that there are, and no answer does. */
	loseAnswers(): void {
		for (const socket of this.#answering) socket.pause();
	}

	/** Ends every connection; new ones work. */
	breakAll(): void {
		for (const socket of this.#sockets) socket.destroy();
	}

	async close(): Promise<void> {
		for (const socket of this.#sockets) socket.destroy();
		this.#server.close();
		await once(this.#server, 'close');
	}

	#join(one: Socket, other: Socket): void {
		for (const [from, to] of [
			[one, other],
			[other, one],
		] as const) {
			this.#sockets.add(from);
			if (from === other) this.#answering.add(from);
			from.on('data', (chunk) => void to.write(chunk));
			from.on('end', () => to.end());
			from.on('error', () => to.destroy());
			from.on('close', () => {
				this.#sockets.delete(from);
				this.#answering.delete(from);
				to.destroy();
			});
			if (this.#isCut) from.pause();
		}
	}
}
