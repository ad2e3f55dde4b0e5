import type { TaskRecord } from '../backend/record.ts';
import { toolError } from '../engine/outcome.ts';
import { type InputCapabilities, inputCapabilities } from '../protocol/capabilities.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { CLIENT_CAPABILITIES_META } from '../protocol/names.ts';
import type { Exchange } from './exchange.ts';
import { legacyResult } from './legacy-task.ts';
import type { CallToolResult, ServerContext } from './sdk.ts';
import type { TaskHandler } from './tasks.ts';
import type { CheckedOptions } from './tool-options.ts';
import { wholeResult } from './wire-task.ts';

/** What a tool callback has in hand. */
export interface CallSite<Args> {
	readonly args: Args;
	readonly ctx: ServerContext;
	readonly options: CheckedOptions<Args>;
	readonly handler: TaskHandler<Args>;
	readonly exchange: Exchange;
}

/** The answer to a call whose task has ended: exactly what a call without tasks would give (T21). */
export function endedAnswer<Args>({ exchange, ctx }: CallSite<Args>, record: TaskRecord): CallToolResult {
	if (record.status === 'failed' && record.error)
		return exchange.answer(ctx, { kind: 'error', error: record.error });
	const result = exchange.legacyClientOf(ctx)
		? legacyResult(record)
		: wholeResult(record.result ?? toolError('The task was cancelled'));
	return exchange.answer(ctx, { kind: 'result', result });
}

/** What the client that made a request says it can be asked for. */
export function declaredInputs<Args>({ exchange, ctx }: CallSite<Args>): InputCapabilities {
	const client = exchange.legacyClientOf(ctx);
	return client?.input ?? inputCapabilities(envelopeOf(ctx)[CLIENT_CAPABILITIES_META]);
}

/** The per-request facts of 2026-07-28; empty on earlier protocol versions. */
export function envelopeOf(ctx: ServerContext): JsonObject {
	const envelope: unknown = ctx.mcpReq.envelope;
	return isJsonObject(envelope) ? envelope : {};
}
