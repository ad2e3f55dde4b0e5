import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { envelopeOf } from '../server/call-site.ts';
import type { ServerContext } from '../server/sdk.ts';

/** What holds for all requests of one host's connection, on protocol versions that have such a thing. */
export interface HostConnection {
	/** How much the host wants to hear. */
	logLevel: string | undefined;
}

/** How much a host wants to hear, on 2026-07-28; of the protocol's own keys the one that concerns the upstream. */
const LOG_LEVEL_META = 'io.modelcontextprotocol/logLevel';

/** What of a host's `_meta` concerns the upstream: all but what the protocol and holdfast themselves put there. */
export function forwardedMeta(ctx: ServerContext, host: HostConnection): JsonObject {
	const meta: unknown = ctx.mcpReq._meta;
	const own = Object.entries(isJsonObject(meta) ? meta : {}).filter(
		([key]) => key !== 'progressToken' && !/^(io\.modelcontextprotocol|holdfast)\//.test(key),
	);
	const logLevel = envelopeOf(ctx)[LOG_LEVEL_META] ?? host.logLevel;
	return { ...Object.fromEntries(own), ...(logLevel !== undefined && { [LOG_LEVEL_META]: logLevel }) };
}
