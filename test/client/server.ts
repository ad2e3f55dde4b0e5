/** A holdfast server over HTTP or in memory, and an SDK client of 2026-07-28 connected to it. */
import { randomUUID } from 'node:crypto';
import {
	Client,
	type ClientOptions,
	InMemoryTransport,
	StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { McpServer } from '@modelcontextprotocol/server';
import { createTaskServer, listen, serveTasksOverStdio, type Tasks } from '../../src/server/index.ts';
import { newBackend } from '../support/backends.ts';

/** Every request that a client sent, by method. */
export class Requests {
	readonly counts: Record<string, number> = {};
	readonly bodies: Record<string, unknown>[] = [];

	readonly fetch: typeof fetch = async (url, init) => {
		if (typeof init?.body === 'string') this.count(JSON.parse(init.body) as Record<string, unknown>);
		return fetch(url, init);
	};

	count(body: Record<string, unknown>): void {
		const method = String(body['method']);
		this.counts[method] = (this.counts[method] ?? 0) + 1;
		this.bodies.push(body);
	}
}

/** An SDK client that negotiates 2026-07-28. */
export function newClient(options: ClientOptions = {}): Client {
	return new Client(
		{ name: 'test-host', version: '1.0.0' },
		{ versionNegotiation: { mode: 'auto' }, ...options },
	);
}

/** The tools that a test server has. */
export type Register = (server: McpServer, tasks: Tasks) => void;

/** A holdfast task server with these tools. */
export function taskServer(
	register: Register,
	options: Partial<Parameters<typeof createTaskServer>[0]> = {},
) {
	return createTaskServer({
		backend: newBackend(),
		server: (tasks) => {
			const server = new McpServer({ name: 'test-server', version: '1.0.0' });
			register(server, tasks);
			return server;
		},
		...options,
	});
}

/** Serves over HTTP on a free port. */
export function serveHttp(register: Register, port = 0) {
	return listen(taskServer(register), { port });
}

/** A client over HTTP, with its requests counted. */
export async function connectHttp(url: string, options: ClientOptions = {}) {
	const requests = new Requests();
	const client = newClient(options);
	const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: requests.fetch });
	await client.connect(transport);
	return { client, requests };
}

/** A client and a server on two ends of an in-memory line, as over stdio. */
export async function connectInMemory(register: Register, options: ClientOptions = {}) {
	const [near, far] = InMemoryTransport.createLinkedPair();
	const serving = serveTasksOverStdio(taskServer(register), { transport: far });
	const requests = new Requests();
	const send = near.send.bind(near);
	near.send = (message, sendOptions) => {
		if ('method' in message) requests.count(message);
		return send(message, sendOptions);
	};
	const client = newClient(options);
	await client.connect(near);
	return { client, requests, serving };
}

/** A text result. */
export function text(words: string) {
	return { content: [{ type: 'text' as const, text: words }] };
}

/** A name that no other test has. */
export function unique(): string {
	return randomUUID().slice(0, 8);
}
