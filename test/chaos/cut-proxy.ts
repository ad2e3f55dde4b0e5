/** A way to a server that can be cut: nothing comes through any more, and neither end is told. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class CutProxy {
	readonly #server: Server;
	readonly #sockets = new Set<Socket>();
	#isCut = false;

	private constructor(server: Server) {
		this.#server = server;
	}

	/** Listens on a free port and passes everything on to another one of this machine. */
	static async to(port: number): Promise<CutProxy> {
		const server = createServer({ allowHalfOpen: true });
		const proxy = new CutProxy(server);
		server.on('connection', (incoming) => proxy.#join(incoming, connect(port, '127.0.0.1')));
		server.listen(0, '127.0.0.1');
		await once(server, 'listening');
		return proxy;
	}

	get port(): number {
		const address = this.#server.address();
		if (address === null || typeof address === 'string') throw new Error('the proxy does not listen');
		return address.port;
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
			from.on('data', (chunk) => void to.write(chunk));
			from.on('end', () => to.end());
			from.on('error', () => to.destroy());
			from.on('close', () => {
				this.#sockets.delete(from);
				to.destroy();
			});
			if (this.#isCut) from.pause();
		}
	}
}
