import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { CLIENT_CAPABILITIES_META } from '../protocol/names.ts';
import { envelopeOf } from '../server/call-site.ts';
import type { ServerContext } from '../server/sdk.ts';
import { forwardedMeta, type HostConnection } from './forwarded-meta.ts';

/** Goes before the request state of an upstream, which may itself look like holdfast's own. */
const STATE_PREFIX = 'upstream:';

/** What of a host's request the call keeps, also after a crash. */
export type PreparedCall = {
	/** Goes to the upstream in `_meta`. */
	readonly meta: JsonObject;
	/** The request that waits for the answer, in this process. */
	readonly hostId: string;
	/**
	 * What the host can be asked for, in its own words; null for a host whose protocol version declares that for its
	 * connection, and not for each request.
	 */
	readonly capabilities: JsonObject | null;
	/** Answers to what the upstream asked in an earlier round, and the state that it wants back. */
	readonly inputResponses: JsonObject | null;
	readonly requestState: string | null;
};

/** What a host sends back in a further round of a request. */
interface FurtherRound {
	readonly inputResponses?: unknown;
	readonly requestState?: unknown;
}

/** Reads a host's request. */
export function preparedOf(
	round: FurtherRound,
	ctx: ServerContext,
	host: HostConnection,
	hostId: string,
): PreparedCall {
	const capabilities = envelopeOf(ctx)[CLIENT_CAPABILITIES_META];
	// The SDK gives the state by a function, which verifies it for servers that sign theirs.
	const given: unknown = typeof round.requestState === 'function' ? round.requestState() : round.requestState;
	const state = typeof given === 'string' ? given : null;
	const answers = isJsonObject(round.inputResponses) ? round.inputResponses : {};
	return {
		meta: forwardedMeta(ctx, host),
		hostId,
		capabilities: isJsonObject(capabilities) ? inputsOf(capabilities) : null,
		inputResponses: Object.keys(answers).length > 0 ? answers : null,
		requestState: state?.startsWith(STATE_PREFIX) === true ? state.slice(STATE_PREFIX.length) : state,
	};
}

/** A result of the upstream that asks something, as the host gets it. */
export function asHostQuestion(result: JsonObject): JsonObject {
	const { requestState, ...rest } = result;
	return typeof requestState === 'string' ? { ...rest, requestState: STATE_PREFIX + requestState } : rest;
}

function inputsOf({ elicitation, sampling, roots }: JsonObject): JsonObject {
	return {
		...(isJsonObject(elicitation) && { elicitation }),
		...(isJsonObject(sampling) && { sampling }),
		...(isJsonObject(roots) && { roots }),
	};
}
