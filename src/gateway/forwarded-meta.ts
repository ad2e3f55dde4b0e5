import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import type { ServerContext } from '../server/sdk.ts';

/** How much a host wants to hear; of the protocol's own keys the one that concerns the upstream. */
const LOG_LEVEL_META = 'io.modelcontextprotocol/logLevel';

/** What of a host's `_meta` concerns the upstream: all but what the protocol and holdfast themselves put there. */
export function forwardedMeta(ctx: ServerContext): JsonObject {
	const meta: unknown = ctx.mcpReq._meta;
	if (!isJsonObject(meta)) return {};
	const kept = Object.entries(meta).filter(
		([key]) =>
			key === LOG_LEVEL_META ||
			(key !== 'progressToken' && !/^(io\.modelcontextprotocol|holdfast)\//.test(key)),
	);
	return Object.fromEntries(kept);
}
