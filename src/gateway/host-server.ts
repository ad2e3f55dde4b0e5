import * as z from 'zod';
import type { Clock } from '../client/clock.ts';
import type { Log } from '../engine/options.ts';
import { declaresTasks, type InputCapabilities } from '../protocol/capabilities.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import { envelopeOf } from '../server/call-site.ts';
import { type CallToolResult, McpServer, ProtocolError, type ServerContext } from '../server/sdk.ts';
import type { Tasks } from '../server/tasks.ts';
import type { HandOver, TaskToolOptions } from '../server/tool-options.ts';
import type { Catalogue, Offer } from './catalogue.ts';
import { callFallbackTool, FALLBACK_TOOLS, handOverText } from './fallback-tools.ts';
import type { HostBudgets } from './host-budget.ts';
import { callFolded } from './folding/folded-call.ts';
import { startsWork } from './folding/fold-mapping.ts';
import { CANCEL_GRACE_MS } from './folding/folded-work.ts';
import { hostFacts } from './host-facts.ts';
import type { ListName } from './upstream-lists.ts';
import { callUpstream } from './upstream-call.ts';

/** What every server towards a host is built from. */
export interface HostServerDeps {
	readonly catalogue: Catalogue;
	readonly budgets: HostBudgets;
	readonly name: string;
	readonly version: string;
	readonly nowMs: () => number;
	readonly clock: Clock;
	readonly log: Log;
}

const ANY_PARAMS = { params: z.looseObject({}) };

/**
 * Builds the server that one host's request or connection sees. Nothing is asked of an upstream for it: hosts
 * give up on a handshake soon, and some make one in a process that they throw away.
 */
export function buildHostServer(deps: HostServerDeps, tasks: Tasks): McpServer {
	const { catalogue } = deps;
	const mcp = new McpServer(
		{ name: deps.name, version: deps.version },
		{
			capabilities: {
				prompts: { listChanged: true },
				resources: { listChanged: true },
				completions: {},
			},
		},
	);
	const { server } = mcp;
	server.registerCapabilities({ tools: { listChanged: true } });
	const handOver = handOverTo(deps, mcp);

	const list = (method: string, name: ListName, more: (ctx: ServerContext) => readonly JsonObject[]): void =>
		server.setRequestHandler(method, ANY_PARAMS, async (_params, ctx) => {
			const offers = await catalogue.list(name);
			const hidden = declaresTasks(envelopeOf(ctx)) ? ['tasks', 'everyone'] : ['everyone'];
			const shown = [...offers].filter(([, { hiddenFrom }]) => !hidden.includes(hiddenFrom));
			const entries = shown.map(([hostName, { entry }]) =>
				name === 'tools' || name === 'prompts' ? { ...entry, name: hostName } : entry,
			);
			return { [name]: [...entries, ...more(ctx)] };
		});
	list('tools/list', 'tools', (ctx) => (declaresTasks(envelopeOf(ctx)) ? [] : FALLBACK_TOOLS));
	list('prompts/list', 'prompts', () => []);
	list('resources/list', 'resources', () => []);
	list('resources/templates/list', 'resourceTemplates', () => []);

	server.setRequestHandler('tools/call', async (request, ctx): Promise<CallToolResult> => {
		const { name, arguments: args = {} } = request.params;
		const offer = await catalogue.find('tools', name);
		if (offer)
			return tasks.handler<JsonObject, { meta: JsonObject }>(toolOptions(offer, handOver), (given, task) => {
				const call = {
					upstream: offer.upstream,
					tool: String(offer.entry['name']),
					arguments: given,
					meta: task.prepared.meta,
					repeatable: isRepeatable(offer),
				};
				const mapping = offer.mappings.find((family) => startsWork(family, given));
				if (!mapping) return callUpstream(call, task);
				const tools = catalogue.known(offer.upstream)?.tools ?? [];
				return callFolded({ ...call, mapping, tools, log: deps.log, clock: deps.clock }, task);
			})(args as JsonObject, ctx);
		const answer = await callFallbackTool(tasks, name, args as JsonObject, ctx, handOver);
		if (answer) return answer;
		throw new ProtocolError(WIRE_CODES.invalidParams, `Unknown tool: ${name}`);
	});
	return mcp;
}

/** How a tool of an upstream behaves as a task of the gateway. */
function toolOptions(offer: Offer, handOver: HandOver): TaskToolOptions<JsonObject, { meta: JsonObject }> {
	const { syncWindowMs } = offer.upstream.options.tools[String(offer.entry['name'])] ?? {};
	return {
		handOver,
		...(syncWindowMs !== undefined && { syncWindowMs }),
		// The upstream is told, and looked at until it has stopped.
		...(offer.mappings.length > 0 && { cancelGraceMs: CANCEL_GRACE_MS + 5_000 }),
		// The call itself knows what may be repeated: it is always entered again, and says what it finds.
		onCrash: 'resume',
		// A call in flight lives in this process only; what waits for an answer must not let go of it.
		prepare: (_args, ctx) => ({ meta: forwardedMeta(ctx) }),
	};
}

/** Whether a tool may be called a second time, as the operator or the upstream says. */
export function isRepeatable({ upstream, entry }: Offer): boolean {
	const said = upstream.options.tools[String(entry['name'])]?.idempotent;
	if (said !== undefined) return said;
	const hints = entry['annotations'];
	return isJsonObject(hints) && (hints['idempotentHint'] === true || hints['readOnlyHint'] === true);
}

/** What of a host's `_meta` concerns the upstream: all but what the protocol and holdfast themselves put there. */
function forwardedMeta(ctx: ServerContext): JsonObject {
	const meta: unknown = ctx.mcpReq._meta;
	if (!isJsonObject(meta)) return {};
	return Object.fromEntries(
		Object.entries(meta).filter(
			([key]) => key !== 'progressToken' && !/^(io\.modelcontextprotocol|holdfast)\//.test(key),
		),
	) as Record<string, JsonValue>;
}

/** What happens to calls of hosts without Tasks. */
function handOverTo({ budgets, nowMs }: HostServerDeps, mcp: McpServer): HandOver {
	return {
		budgetMs: (ctx) => {
			const meta: unknown = ctx.mcpReq._meta;
			return budgets(hostFacts(mcp, ctx), isJsonObject(meta) && meta['progressToken'] !== undefined);
		},
		// What such a host cannot ask its user in a form, the model can ask in words, and answer with answer_task.
		inputs: (_ctx, declared): InputCapabilities => ({ ...declared, form: true, url: true }),
		answer: (record) => handOverText(record, nowMs()),
	};
}
