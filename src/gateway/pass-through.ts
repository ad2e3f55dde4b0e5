import * as z from 'zod';
import { MAX_TIMER_MS } from '../client/clock.ts';
import { ProtocolError } from '../client/sdk.ts';
import { isHoldfastError, messageOf } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import { type McpServer, type ServerContext, UriTemplate } from '../server/sdk.ts';
import type { Catalogue } from './catalogue.ts';
import type { HostConnection } from './forwarded-meta.ts';
import { asHostQuestion, preparedOf } from './prepared-call.ts';
import type { Upstream } from './upstream.ts';

const ANY_PARAMS = { params: z.looseObject({}) };
const ANY_RESULT = z.custom<JsonObject>();

/** What MCP says when a resource is not there. */
const RESOURCE_NOT_FOUND = -32002;

/** Has a server towards a host pass on everything that is neither a list nor a call of a tool. */
export function registerPassThrough(
	{ server }: McpServer,
	host: HostConnection,
	catalogue: Catalogue,
	upstreams: readonly Upstream[],
): void {
	server.setRequestHandler('prompts/get', ANY_PARAMS, async (params, ctx) => {
		const offer = await catalogue.find('prompts', textOf(params['name']));
		if (!offer)
			throw new ProtocolError(WIRE_CODES.invalidParams, `Unknown prompt: ${textOf(params['name'])}`);
		return pass(offer.upstream, 'prompts/get', { ...params, name: offer.name }, ctx, host);
	});
	server.setRequestHandler('resources/read', ANY_PARAMS, async (params, ctx) =>
		toOwner(catalogue, upstreams, params, (upstream) => pass(upstream, 'resources/read', params, ctx, host)),
	);
	server.setRequestHandler('resources/subscribe', ANY_PARAMS, async (params) =>
		toOwner(catalogue, upstreams, params, (upstream) =>
			watch(upstream, ({ resources }, uri) => resources.add(uri), params),
		),
	);
	server.setRequestHandler('resources/unsubscribe', ANY_PARAMS, async (params) =>
		toOwner(catalogue, upstreams, params, (upstream) =>
			watch(upstream, ({ resources }, uri) => resources.remove(uri), params),
		),
	);
	server.setRequestHandler('completion/complete', ANY_PARAMS, async (params, ctx) => {
		const ref: JsonObject = isJsonObject(params['ref']) ? params['ref'] : {};
		const isPrompt = ref['type'] === 'ref/prompt';
		const offer = isPrompt
			? await catalogue.find('prompts', textOf(ref['name']))
			: await catalogue.find('resourceTemplates', textOf(ref['uri']));
		if (!offer)
			throw new ProtocolError(WIRE_CODES.invalidParams, 'There is no such prompt or resource template');
		const own = isPrompt ? { ...ref, name: offer.name } : ref;
		return pass(offer.upstream, 'completion/complete', { ...params, ref: own }, ctx, host);
	});
	server.setRequestHandler('logging/setLevel', ANY_PARAMS, async (params, ctx) => {
		host.logLevel = textOf(params['level']);
		const logging = upstreams.filter(
			(upstream) => catalogue.known(upstream)?.capabilities['logging'] !== undefined,
		);
		await Promise.all(
			logging.map((upstream) => pass(upstream, 'logging/setLevel', params, ctx, host).catch(() => {})),
		);
		return {};
	});
}

/** Sends a host's request on to an upstream, and what it asks back in a round of its own. */
async function pass(
	upstream: Upstream,
	method: string,
	params: Readonly<Record<string, unknown>>,
	ctx: ServerContext,
	host: HostConnection,
): Promise<JsonObject> {
	return used(upstream, async () => {
		const { meta, capabilities, inputResponses, requestState } = preparedOf(ctx.mcpReq, ctx, host, '');
		const sent = {
			...params,
			...(inputResponses && { inputResponses }),
			...(requestState !== null && { requestState }),
			_meta: { ...meta, ...upstream.capabilitiesMeta(capabilities) },
		};
		const options = { signal: ctx.mcpReq.signal, timeout: MAX_TIMER_MS, allowInputRequired: true };
		const result = await upstream.client.request({ method, params: sent }, ANY_RESULT, options);
		return result['resultType'] === 'input_required' ? asHostQuestion(result) : result;
	});
}

async function watch(
	upstream: Upstream,
	change: (upstream: Upstream, uri: string) => Promise<void>,
	params: Readonly<Record<string, unknown>>,
): Promise<JsonObject> {
	await used(upstream, () => change(upstream, textOf(params['uri'])));
	return {};
}

/** Uses an upstream; what is wrong with it is the host's to know. */
async function used<T>(upstream: Upstream, work: () => Promise<T>): Promise<T> {
	try {
		return await upstream.use(work);
	} catch (error) {
		if (!isHoldfastError(error)) throw error;
		throw new ProtocolError(WIRE_CODES.internalError, messageOf(error));
	}
}

/**
 * Has the upstream answer to which a resource belongs: the one that lists it, or has a template for it, or else the
 * first that knows it.
 */
async function toOwner(
	catalogue: Catalogue,
	upstreams: readonly Upstream[],
	params: Readonly<Record<string, unknown>>,
	send: (upstream: Upstream) => Promise<JsonObject>,
): Promise<JsonObject> {
	const uri = textOf(params['uri']);
	const listed = await catalogue.find('resources', uri);
	if (listed) return send(listed.upstream);
	for (const [template, { upstream }] of await catalogue.list('resourceTemplates'))
		if (matches(template, uri)) return send(upstream);
	for (const upstream of upstreams) {
		if (catalogue.known(upstream)?.capabilities['resources'] === undefined) continue;
		try {
			return await send(upstream);
		} catch (error) {
			const isUnknown =
				error instanceof ProtocolError && [RESOURCE_NOT_FOUND, WIRE_CODES.invalidParams].includes(error.code);
			if (!isUnknown || upstream === upstreams.at(-1)) throw error;
		}
	}
	throw new ProtocolError(RESOURCE_NOT_FOUND, `Resource not found: ${uri}`);
}

function textOf(value: unknown): string {
	return typeof value === 'string' ? value : '';
}

function matches(template: string, uri: string): boolean {
	try {
		return new UriTemplate(template).match(uri) !== null;
	} catch {
		return false;
	}
}
