import { declaresTasks } from '../protocol/capabilities.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { CLIENT_CAPABILITIES_META } from '../protocol/names.ts';
import { envelopeOf } from '../server/call-site.ts';
import type { ServerContext } from '../server/sdk.ts';
import { forwardedMeta, type HostConnection } from './forwarded-meta.ts';

/** Goes before the request state of an upstream, which may itself look like holdfast's own. */
const STATE_PREFIX = 'upstream:';

/** The model of a host that gets no task is told of a question, and answers it with a tool. */
const ELICITATION_IN_WORDS = { elicitation: { form: {}, url: {} } };

/** What of a host's request the call keeps, also after a crash. */
export type PreparedCall = {
	/** Goes to the upstream in `_meta`. */
	readonly meta: JsonObject;
	/** The request that waits for the answer, in this process. */
	readonly hostId: string;
	/**
	 * What the upstream may ask for; null for a host whose protocol version declares that for its connection, and not
	 * for each request.
	 */
	readonly capabilities: JsonObject | null;
	/** What of it the host answers itself, in a further round of its request. The rest is answered within the task. */
	readonly hostCapabilities: JsonObject | null;
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
	const envelope = envelopeOf(ctx);
	const declared = envelope[CLIENT_CAPABILITIES_META];
	const hostCapabilities = isJsonObject(declared) ? inputsOf(declared) : null;
	// The SDK gives the state by a function, which verifies it for servers that sign theirs.
	const given: unknown = typeof round.requestState === 'function' ? round.requestState() : round.requestState;
	const state = typeof given === 'string' ? given : null;
	const answers = isJsonObject(round.inputResponses) ? round.inputResponses : {};
	return {
		meta: forwardedMeta(ctx, host),
		hostId,
		capabilities: hostCapabilities && {
			...(isAskedInWords(envelope, hostCapabilities) && ELICITATION_IN_WORDS),
			...hostCapabilities,
		},
		hostCapabilities,
		inputResponses: Object.keys(answers).length > 0 ? answers : null,
		requestState: state?.startsWith(STATE_PREFIX) === true ? state.slice(STATE_PREFIX.length) : state,
	};
}

/** A result of the upstream that asks something, as the host gets it. */
export function asHostQuestion(result: JsonObject): JsonObject {
	const { requestState, ...rest } = result;
	return typeof requestState === 'string' ? { ...rest, requestState: STATE_PREFIX + requestState } : rest;
}

/** A host that answers some questions itself is asked those alone, and the upstream chooses among them. */
function isAskedInWords(envelope: JsonObject, { elicitation, sampling }: JsonObject): boolean {
	return !declaresTasks(envelope) && elicitation === undefined && sampling === undefined;
}

function inputsOf({ elicitation, sampling, roots }: JsonObject): JsonObject {
	return {
		...(isJsonObject(elicitation) && { elicitation }),
		...(isJsonObject(sampling) && { sampling }),
		...(isJsonObject(roots) && { roots }),
	};
}
