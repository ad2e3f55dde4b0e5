/** Serves a folder on loopback and keeps count of what was asked for. */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';

const types: Readonly<Record<string, string>> = {
	'.html': 'text/html',
	'.css': 'text/css',
	'.js': 'text/javascript',
	'.txt': 'text/plain',
	'.png': 'image/png',
	'.svg': 'image/svg+xml',
};

export type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => unknown;

export class LoopbackServer {
	readonly requests: string[] = [];
	readonly #server: Server;
	#onRequest: ((path: string) => void) | undefined;

	private constructor(handler: Handler) {
		this.#server = createServer((request, response) => {
			const url = new URL(request.url ?? '/', 'http://localhost');
			const path = url.pathname + url.search;
			this.requests.push(path);
			this.#onRequest?.(path);
			Promise.resolve(handler(request, response, url)).catch(() => response.destroy());
		});
	}

	static async start(handler: Handler): Promise<LoopbackServer> {
		const server = new LoopbackServer(handler);
		await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
		return server;
	}

	static folder(root: string): Promise<LoopbackServer> {
		return LoopbackServer.start(async (_request, response, url) => {
			const path = normalize(decodeURIComponent(url.pathname));
			const body = await readFile(join(root, path.endsWith('/') ? `${path}index.html` : path)).catch(
				() => undefined,
			);
			if (body === undefined) response.writeHead(404).end();
			else response.writeHead(200, { 'content-type': types[extname(path)] ?? 'text/html' }).end(body);
		});
	}

	get origin(): string {
		return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
	}

	address(path: string): string {
		return this.origin + path;
	}

	/** Calls back at each request, as it comes in. */
	watch(onRequest: ((path: string) => void) | undefined): void {
		this.#onRequest = onRequest;
	}

	/** How often each address was asked for. */
	counts(): Map<string, number> {
		const counts = new Map<string, number>();
		for (const path of this.requests) counts.set(path, (counts.get(path) ?? 0) + 1);
		return counts;
	}

	async close(): Promise<void> {
		this.#server.closeAllConnections();
		await new Promise((resolve) => this.#server.close(resolve));
	}
}
