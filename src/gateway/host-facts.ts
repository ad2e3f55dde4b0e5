import type { JsonObject } from '../protocol/json.ts';
import { isJsonObject } from '../protocol/json.ts';
import { CLIENT_INFO_META } from '../protocol/names.ts';
import { envelopeOf } from '../server/call-site.ts';
import type { McpServer, ServerContext } from '../server/sdk.ts';

/** What a host says about itself on one request. */
export interface HostFacts {
	/** The program's name from `clientInfo`; empty when it gives none. */
	readonly name: string;
	readonly version: string;
	readonly transport: 'http' | 'stdio';
}

/** Who sent a request: per request on 2026-07-28, per session before. */
export function hostFacts(server: McpServer, ctx: ServerContext): HostFacts {
	const info: unknown = envelopeOf(ctx)[CLIENT_INFO_META] ?? server.server.getClientVersion();
	const { name, version }: JsonObject = isJsonObject(info) ? info : {};
	return {
		name: typeof name === 'string' ? name : '',
		version: typeof version === 'string' ? version : '',
		transport: ctx.http === undefined ? 'stdio' : 'http',
	};
}
