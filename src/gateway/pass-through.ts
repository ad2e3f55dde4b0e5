import * as z from 'zod';
import { MAX_TIMER_MS } from '../client/clock.ts';
import { ProtocolError } from '../client/sdk.ts';
import { isHoldfastError, messageOf } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import { type McpServer, type ServerContext, UriTemplate } from '../server/sdk.ts';
import type { Catalogue } from './catalogue.ts';
import { forwardedMeta } from './forwarded-meta.ts';
import type { Upstream } from './upstream.ts';

const ANY_PARAMS = { params: z.looseObject({}) };
const ANY_RESULT = z.custom<JsonObject>();

/** What MCP says when a resource is not there. */
const RESOURCE_NOT_FOUND = -32002;

/** Has a server towards a host pass on everything that is neither a list nor a call of a tool. */
export function registerPassThrough(
	{ server }: McpServer,
	catalogue: Catalogue,
	upstreams: readonly Upstream[],
): void {
	server.setRequestHandler('prompts/get', ANY_PARAMS, async (params, ctx) => {
		const offer = await catalogue.find('prompts', textOf(params['name']));
		if (!offer)
			throw new ProtocolError(WIRE_CODES.invalidParams, `Unknown prompt: ${textOf(params['name'])}`);
		return pass(offer.upstream, 'prompts/get', { ...params, name: offer.name }, ctx);
	});
	server.setRequestHandler('resources/read', ANY_PARAMS, async (params, ctx) =>
		toOwner(catalogue, upstreams, params, (upstream) => pass(upstream, 'resources/read', params, ctx)),
	);
	for (const method of ['resources/subscribe', 'resources/unsubscribe'] as const)
		server.setRequestHandler(method, ANY_PARAMS, async (params, ctx) =>
			toOwner(catalogue, upstreams, params, (upstream) => pass(upstream, method, params, ctx)),
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
		return pass(offer.upstream, 'completion/complete', { ...params, ref: own }, ctx);
	});
	server.setRequestHandler('logging/setLevel', ANY_PARAMS, async (params, ctx) => {
		const logging = upstreams.filter(
			(upstream) => catalogue.known(upstream)?.capabilities['logging'] !== undefined,
		);
		await Promise.all(
			logging.map((upstream) => pass(upstream, 'logging/setLevel', params, ctx).catch(() => {})),
		);
		return {};
	});
}

/** Sends a host's request on to an upstream. */
async function pass(
	upstream: Upstream,
	method: string,
	params: object,
	ctx: ServerContext,
): Promise<JsonObject> {
	try {
		const meta = forwardedMeta(ctx);
		const sent = { ...params, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
		return await upstream.use(() =>
			upstream.client.request({ method, params: sent }, ANY_RESULT, {
				signal: ctx.mcpReq.signal,
				timeout: MAX_TIMER_MS,
			}),
		);
	} catch (error) {
		if (error instanceof ProtocolError || !isHoldfastError(error)) throw error;
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
