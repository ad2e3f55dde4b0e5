/** The server under test. `node test/conformance/server.ts [PORT]`; prints its URL once it listens. */
import { createMcpHandler } from '@modelcontextprotocol/server';
import {
	localhostHostValidation,
	localhostOriginValidation,
	toNodeHandler,
} from '@modelcontextprotocol/node';
import { createServer } from 'node:http';
import { buildServer, fixtureHost } from './everything.ts';

const handler = createMcpHandler(() => buildServer(), { bus: fixtureHost.bus });
const serve = toNodeHandler(handler);
const hostAllowed = localhostHostValidation();
const originAllowed = localhostOriginValidation();

const http = createServer((request, response) => {
	if (!hostAllowed(request, response) || !originAllowed(request, response)) return;
	if (new URL(request.url ?? '/', 'http://localhost').pathname !== '/mcp') {
		response.writeHead(404).end();
		return;
	}
	// Requests that reach a server always have both; the node types say they may be undefined.
	void serve(request as typeof request & { method: string; url: string }, response);
});

http.listen(Number(process.argv[2] ?? process.env['PORT'] ?? 0), '127.0.0.1', () => {
	const address = http.address();
	if (address === null || typeof address === 'string') throw new Error('the server has no port');
	console.log(`http://127.0.0.1:${address.port}/mcp`);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
	process.once(signal, () => {
		void handler.close().finally(() => {
			http.close();
			http.closeAllConnections();
		});
	});
}
