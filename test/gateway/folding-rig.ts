/** A server with a family of tools over HTTP, a gateway that folds it, and a host in front that declares Tasks. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { afterEach } from 'vitest';
import type { Log } from '../../src/engine/options.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { listen } from '../../src/server/index.ts';
import { httpWire, type Wire } from '../support/wire.ts';
import { type Behind, gatewayOptions, type GatewayRigOptions, overHttp } from './folding-gateway.ts';
import { standInServer, type StandInTools } from './folding-stand-in.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

/** Has something done when the test is over. */
export function atEnd(end: () => unknown): void {
	ends.push(end);
}

/** A server that stands in for one whose tools are known. */
export interface StandIn {
	readonly url: string;
	/** Every call that arrived, in order. */
	readonly calls: readonly { readonly tool: string; readonly arguments: JsonObject }[];
	/** The arguments of each call of a tool. */
	of(tool: string): readonly JsonObject[];
	/** From now on every connection is cut, until it is called again with false. */
	cut(isCut: boolean): void;
}

/** Serves a stand-in over HTTP. */
export async function serveStandIn(tools: StandInTools): Promise<StandIn> {
	const calls: { tool: string; arguments: JsonObject }[] = [];
	const handler = createMcpHandler(() =>
		standInServer(tools, (tool, args) => void calls.push({ tool, arguments: args })),
	);
	const listener = toNodeHandler(handler);
	let isCut = false;
	const http = createServer((request, response) => {
		if (isCut) request.socket.destroy();
		else void listener(request as IncomingMessage & Parameters<typeof listener>[0], response);
	});
	await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
	atEnd(async () => {
		await handler.close();
		http.closeAllConnections();
		await new Promise((resolve) => http.close(resolve));
	});
	return {
		url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
		calls,
		of: (tool) => calls.filter((call) => call.tool === tool).map((call) => call.arguments),
		cut: (cut) => {
			isCut = cut;
		},
	};
}

/** Log lines of a test. */
export class Lines implements Log {
	readonly lines: string[] = [];
	readonly info = (facts: object, message: string): void => this.#add(facts, message);
	readonly warn = (facts: object, message: string): void => this.#add(facts, message);
	readonly error = (facts: object, message: string): void => this.#add(facts, message);
	#add(facts: object, message: string): void {
		this.lines.push(`${message} ${JSON.stringify(facts)}`);
	}
}

/** How a gateway on one stand-in differs from the usual one. */
export interface RigOptions extends GatewayRigOptions {
	/** Default: the stand-in's URL. */
	readonly target?: Behind['target'];
	readonly tools?: Behind['tools'];
}

/** A gateway on a stand-in, and a host in front of it. */
export async function openGateway(url: string, fold: unknown, options: RigOptions = {}): Promise<Wire> {
	const { target = overHttp(url), tools = {}, ...rest } = options;
	const gateway = new Gateway(gatewayOptions([{ name: 'stand-in', target, fold, tools }], rest));
	const listening = await listen(gateway.server, { port: 0 });
	const wire = httpWire(listening.url);
	atEnd(async () => {
		await wire.close();
		await listening.close(0);
		await gateway.close();
	});
	return wire;
}
