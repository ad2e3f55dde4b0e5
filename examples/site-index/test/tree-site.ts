/** A site of 111 pages as a tree: each page leads to ten more, three levels deep. */
import { LoopbackServer } from './static-server.ts';

export class TreeSite {
	/** How long a page takes. */
	delayMs = 0;
	/** Further words of the first page. */
	news = '';
	readonly #server: LoopbackServer;

	private constructor(server: LoopbackServer) {
		this.#server = server;
	}

	static readonly pages = 111;

	static async start(): Promise<TreeSite> {
		let site: TreeSite | undefined;
		const server = await LoopbackServer.start(async (request, response, { pathname }) => {
			if (!/^\/(\d\/){0,2}$/u.test(pathname)) return response.writeHead(404).end();
			await new Promise((resolve) => setTimeout(resolve, site?.delayMs ?? 0));
			const news = pathname === '/' ? (site?.news ?? '') : '';
			const etag = `"${pathname}${news}"`;
			if (request.headers['if-none-match'] === etag) return response.writeHead(304).end();
			response.writeHead(200, { 'content-type': 'text/html', etag });
			const links = Array.from({ length: 10 }, (_, at) => `<a href="${pathname}${at}/">page ${at}</a>`);
			const below = pathname.length > 4 ? '' : links.join(' ');
			return response.end(
				`<title>Page ${pathname}</title><main><h1>Page ${pathname}</h1><p>The leaf${pathname.replaceAll('/', '')} of the tree. ${news} ${below}</main>`,
			);
		});
		site = new TreeSite(server);
		return site;
	}

	get url(): string {
		return this.#server.address('/');
	}

	/** What was asked for, in order; only pages. */
	get asked(): string[] {
		return this.#server.requests.filter((path) => path.endsWith('/'));
	}

	forgetAsked(): void {
		this.#server.requests.length = 0;
	}

	/** How many requests were for a page that had been asked for before. */
	get repeats(): number {
		return this.asked.length - new Set(this.asked).size;
	}

	close(): Promise<void> {
		return this.#server.close();
	}
}
