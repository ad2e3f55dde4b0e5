/** A gateway with real servers behind it: child processes, and servers on loopback that a test writes by hand. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Transport } from '@modelcontextprotocol/server';
import { onTestFinished } from 'vitest';
import type { Backend } from '../../src/backend/backend.ts';
import { memory } from '../../src/backend/memory/index.ts';
import type { Clock } from '../../src/engine/clock.ts';
import type { CatalogueStore } from '../../src/gateway/catalogue.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import type { BudgetOverrides } from '../../src/gateway/host-budget.ts';
import type { UpstreamOptions, UpstreamTarget } from '../../src/gateway/upstream-options.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { listen, serveTasksOverStdio } from '../../src/server/index.ts';
import { Wire } from '../field/wire.ts';
import { stdioPair, type StdioPair } from '../support/wire.ts';

const CHILD = join(import.meta.dirname, 'fixtures/child.ts');

/** An upstream as a test names it. */
export type UpstreamChoice = Partial<Omit<UpstreamOptions, 'name' | 'target'>> & {
	readonly target: UpstreamTarget;
};

export interface GatewayChoice {
	readonly upstreams: Readonly<Record<string, UpstreamChoice>>;
	readonly backend?: Backend;
	readonly catalogue?: CatalogueStore;
	/** Default: what the table says. */
	readonly budgets?: BudgetOverrides;
	/** Default: the machine. */
	readonly clock?: Clock;
}

export interface Complaint {
	readonly message: string;
	readonly facts: Readonly<Record<string, unknown>>;
}

export interface GatewayRig {
	readonly gateway: Gateway;
	readonly backend: Backend;
	readonly complaints: readonly Complaint[];
}

/** Keeps lists in memory. */
export function memoryCatalogue(): CatalogueStore {
	const lists = new Map<string, string>();
	return {
		read: async (upstream) => {
			const text = lists.get(upstream);
			return text === undefined ? undefined : (JSON.parse(text) as never);
		},
		write: async (upstream, found) => void lists.set(upstream, JSON.stringify(found)),
	};
}

function newGateway({ upstreams, backend = memory(), catalogue, budgets, clock }: GatewayChoice): GatewayRig {
	const complaints: Complaint[] = [];
	const complain = (facts: Readonly<Record<string, unknown>>, message: string): void =>
		void complaints.push({ facts, message });
	const entries = Object.entries(upstreams);
	const gateway = new Gateway({
		backend,
		upstreams: entries.map(([name, choice]) => ({
			name,
			prefix: entries.length === 1 ? '' : `${name}_`,
			maxConcurrentCalls: 64,
			maxResultBytes: 10 * 1_048_576,
			startTimeoutMs: 10_000,
			tools: {},
			folds: [],
			...choice,
		})),
		catalogue: catalogue ?? memoryCatalogue(),
		budgets: budgets ?? (() => undefined),
		...(clock && { clock }),
		log: { info: () => {}, warn: complain, error: complain },
	});
	return { gateway, backend, complaints };
}

/** A gateway over HTTP until the test ends. */
export async function gatewayOverHttp(
	choice: GatewayChoice,
): Promise<GatewayRig & { readonly url: string; connect(capabilities?: JsonObject): Wire }> {
	const rig = newGateway(choice);
	const { gateway } = rig;
	const listening = await listen(gateway.server, { port: 0, bus: gateway.bus });
	const wires: Wire[] = [];
	onTestFinished(async () => {
		for (const wire of wires) wire.close();
		await listening.close(0);
		await gateway.close();
	});
	const connect = (capabilities?: JsonObject): Wire => {
		const wire = new Wire(listening.url, capabilities ? { capabilities } : {});
		wires.push(wire);
		return wire;
	};
	return { ...rig, url: listening.url, connect };
}

/** A gateway on a pair of pipes until the test ends. */
export function gatewayOverStdio(choice: GatewayChoice): GatewayRig & StdioPair {
	const pair = stdioPair();
	return { ...gatewayOn(pair.server, choice), ...pair };
}

/** A gateway on one end of a connection until the test ends. */
export function gatewayOn(transport: Transport, choice: GatewayChoice): GatewayRig {
	const rig = newGateway(choice);
	const serving = serveTasksOverStdio(rig.gateway.server, { transport });
	onTestFinished(async () => {
		await serving.close(0);
		await rig.gateway.close();
	});
	return rig;
}

/** An empty folder for one test. */
export function scratch(): string {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-gateway-test-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
	return folder;
}

/** The misbehaving child of `fixtures/child.ts`, and what it has read so far. */
export function childUpstream({ startMs = 0 } = {}): {
	readonly target: UpstreamTarget;
	readonly log: () => readonly JsonObject[];
	/** How often a tool was called. */
	readonly calls: (tool: string) => number;
} {
	const file = join(scratch(), 'log');
	const log = (): readonly JsonObject[] => {
		try {
			const lines = readFileSync(file, 'utf8').split('\n');
			return lines.slice(0, -1).map((line) => JSON.parse(line) as JsonObject);
		} catch {
			return [];
		}
	};
	return {
		target: {
			kind: 'command',
			command: process.execPath,
			args: [CHILD, file, String(startMs)],
			env: { PATH: process.env['PATH'] ?? '' },
		},
		log,
		calls: (tool) => log().filter(({ method, name }) => method === 'tools/call' && name === tool).length,
	};
}

/** One request at a hand-written server. */
export interface RawRequest {
	readonly id: string | number;
	readonly method: string;
	readonly params: JsonObject;
	readonly http: IncomingMessage;
	readonly response: ServerResponse;
	/** Answers with a result. */
	readonly result: (result: JsonObject) => void;
	readonly error: (code: number, message: string) => void;
	/** Begins an event stream; `message` may then be called as often as wanted. */
	readonly stream: () => { message(message: JsonObject): void; end(): void };
}

export interface RawServer {
	readonly target: UpstreamTarget & { kind: 'http' };
	readonly port: number;
	/** Every request, in order. */
	readonly requests: readonly RawRequest[];
	/** Ends all connections and stops listening. */
	stop(): Promise<void>;
}

/** A server of 2026-07-28 over HTTP that is written by hand: one function for each method. */
export async function rawServer(
	tools: readonly JsonObject[],
	methods: Readonly<Record<string, (request: RawRequest) => void>>,
	{ port = 0, extensions = {} }: { port?: number; extensions?: JsonObject } = {},
): Promise<RawServer> {
	const requests: RawRequest[] = [];
	const known: typeof methods = {
		'server/discover': ({ result }) =>
			result({
				resultType: 'complete',
				supportedVersions: ['2026-07-28'],
				capabilities: { tools: { listChanged: true }, extensions },
				serverInfo: { name: 'raw', version: '1' },
				ttlMs: 0,
				cacheScope: 'private',
			}),
		'tools/list': ({ result }) =>
			result({ resultType: 'complete', tools: [...tools], ttlMs: 0, cacheScope: 'private' }),
		...methods,
	};
	const server = createServer((http, response) => {
		const chunks: Buffer[] = [];
		http.on('data', (chunk: Buffer) => chunks.push(chunk));
		http.on('end', () => {
			if (http.method !== 'POST') return void response.writeHead(405).end();
			const {
				id,
				method,
				params = {},
			} = JSON.parse(Buffer.concat(chunks).toString()) as Pick<RawRequest, 'id' | 'method'> & {
				params?: JsonObject;
			};
			const answer = (message: JsonObject): void => {
				response.writeHead(200, { 'content-type': 'application/json' });
				response.end(JSON.stringify({ jsonrpc: '2.0', id, ...message }));
			};
			const request: RawRequest = {
				...{ id, method, params, http, response },
				result: (result) => answer({ result }),
				error: (code, message) => answer({ error: { code, message } }),
				stream: () => {
					response.writeHead(200, { 'content-type': 'text/event-stream' });
					response.flushHeaders();
					return {
						message: (message) =>
							void response.write(
								`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`,
							),
						end: () => void response.end(),
					};
				},
			};
			requests.push(request);
			if (id === undefined) return void response.writeHead(202).end();
			const handle = known[method];
			if (handle) handle(request);
			else request.error(-32601, `Method not found: ${method}`);
		});
	});
	await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
	const stop = (): Promise<void> => {
		const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
		server.closeAllConnections();
		return stopped;
	};
	onTestFinished(stop);
	const found = (server.address() as AddressInfo).port;
	return {
		target: { kind: 'http', url: `http://127.0.0.1:${found}/mcp`, headers: {} },
		port: found,
		requests,
		stop,
	};
}

/** A tool as `tools/list` shows it. */
export function tool(name: string, annotations?: JsonObject): JsonObject {
	return { name, inputSchema: { type: 'object' }, ...(annotations && { annotations }) };
}

/** A complete result of one text. */
export function complete(words: string): JsonObject {
	return { resultType: 'complete', content: [{ type: 'text', text: words }] };
}
