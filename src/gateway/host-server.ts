import * as z from 'zod';
import type { Clock } from '../client/clock.ts';
import type { Log } from '../engine/options.ts';
import type { TaskContext } from '../engine/task-context.ts';
import { HoldfastError } from '../errors.ts';
import { declaresTasks, type InputCapabilities } from '../protocol/capabilities.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { IDEMPOTENCY_KEY_META, WIRE_CODES } from '../protocol/names.ts';
import { envelopeOf } from '../server/call-site.ts';
import {
	type CallToolResult,
	McpServer,
	type McpRequestContext,
	ProtocolError,
	type ServerContext,
} from '../server/sdk.ts';
import type { Tasks } from '../server/tasks.ts';
import type { HandOver, TaskToolOptions } from '../server/tool-options.ts';
import { noteSupportRule } from '../server/tool-support.ts';
import type { Catalogue, Offer } from './catalogue.ts';
import { callFallbackTool, FALLBACK_TOOLS, handOverText, isFallbackTool } from './fallback-tools.ts';
import { type BudgetOverrides, budgetMs } from './host-budget.ts';
import type { HostConnection } from './forwarded-meta.ts';
import { callFolded } from './folding/folded-call.ts';
import { startsWork } from './folding/fold-mapping.ts';
import { CANCEL_GRACE_MS } from './folding/folded-work.ts';
import { hostFacts } from './host-facts.ts';
import type { HostNews } from './host-news.ts';
import { registerPassThrough } from './pass-through.ts';
import { type PreparedCall, preparedOf } from './prepared-call.ts';
import type { Upstream } from './upstream.ts';
import type { WaitingHosts } from './waiting-hosts.ts';
import type { ListName } from './upstream-lists.ts';
import { callUpstream } from './upstream-call.ts';

/** What every server towards a host is built from. */
export interface HostServerDeps {
	readonly catalogue: Catalogue;
	readonly upstreams: readonly Upstream[];
	readonly news: HostNews;
	readonly waiting: WaitingHosts;
	readonly budgets: BudgetOverrides;
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
export function buildHostServer(deps: HostServerDeps, tasks: Tasks, context: McpRequestContext): McpServer {
	const { catalogue, upstreams, news, waiting } = deps;
	const mcp = new McpServer(
		{ name: deps.name, version: deps.version },
		{
			capabilities: {
				prompts: { listChanged: true },
				resources: { listChanged: true, subscribe: true },
				completions: {},
				logging: {},
			},
		},
	);
	const { server } = mcp;
	// The SDK looks here for arguments that are to stand in headers as well, and knows registered tools only.
	Object.assign(mcp, {
		toolInputSchemaJson: (name: string) => catalogue.peek('tools', name)?.entry['inputSchema'],
	});
	server.registerCapabilities({ tools: { listChanged: true } });
	// 2025-11-25 wants to hear of each tool whether it may be a task.
	noteSupportRule(mcp, (tool) => (isFallbackTool(tool) ? undefined : 'optional'));
	const handOver = handOverTo(deps, mcp);
	// Earlier hosts hear what a server finds worth saying until they ask for something else.
	const host: HostConnection = { logLevel: context.era === 'legacy' ? 'info' : undefined };
	registerPassThrough(mcp, host, catalogue, upstreams);
	// Over HTTP a server of 2026-07-28 lives for one request, and such hosts listen on the bus.
	if (context.requestInfo === undefined || context.era === 'legacy') news.add(mcp);

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
		// Before any upstream is asked: one that cannot be reached keeps nobody from a result that is there.
		const answer = await callFallbackTool(tasks, name, args as JsonObject, ctx, handOver);
		if (answer) return answer;
		const offer = await catalogue.find('tools', name);
		if (offer)
			return waiting.while(ctx, (hostId) => {
				const raw = tasks.rawCall(ctx);
				const hasKey = raw?.meta[IDEMPOTENCY_KEY_META] !== undefined;
				const options = toolOptions(offer, hasKey, handOver, () => preparedOf(raw ?? {}, ctx, host, hostId));
				return tasks.handler(options, runsElsewhere)(args as JsonObject, ctx);
			});
		throw new ProtocolError(WIRE_CODES.invalidParams, `Unknown tool: ${name}`);
	});
	return mcp;
}

/** The task server enters calls by {@link enterCall}, and never by what it is given as a tool's handler. */
function runsElsewhere(): never {
	throw new HoldfastError('NOT_STARTED', 'A call of an upstream is entered directly');
}

/** Runs a call that was begun in this process or in an earlier one; undefined when no upstream has such a tool. */
export async function enterCall(
	{ catalogue, waiting, log, clock }: HostServerDeps,
	tool: string,
	args: JsonObject,
	task: TaskContext,
): Promise<CallToolResult | undefined> {
	const offer = await catalogue.find('tools', tool);
	if (!offer) return undefined;
	const prepared = task.prepared as PreparedCall;
	const call = {
		upstream: offer.upstream,
		tool: offer.entry,
		arguments: args,
		prepared,
		repeatable: isRepeatable(offer),
		onLog: (params: object) => waiting.notify(prepared.hostId, 'notifications/message', params),
	};
	const mapping = offer.mappings.find((family) => startsWork(family, args));
	if (!mapping) return callUpstream(call, task);
	const tools = catalogue.known(offer.upstream)?.tools ?? [];
	return callFolded({ ...call, mapping, tools, log, clock }, task);
}

/** How a tool of an upstream behaves as a task of the gateway. */
function toolOptions(
	offer: Offer,
	hasKey: boolean,
	handOver: HandOver,
	prepare: () => PreparedCall,
): TaskToolOptions<JsonObject, PreparedCall> {
	const { syncWindowMs } = offer.upstream.options.tools[offer.name] ?? {};
	return {
		handOver,
		joinsRunning: isRepeatable(offer),
		// A plain call that its host cannot find again, by calling once more, is of no use to anybody without it.
		onDisconnect: hasKey || isRepeatable(offer) || offer.mappings.length > 0 ? 'continue' : 'cancel',
		...(syncWindowMs !== undefined && { syncWindowMs }),
		// The upstream is told, and looked at until it has stopped.
		...(offer.mappings.length > 0 && { cancelGraceMs: CANCEL_GRACE_MS + 5_000 }),
		// The call itself knows what may be repeated: it is always entered again, and says what it finds.
		onCrash: 'resume',
		prepare,
	};
}

/** Whether a tool may be called a second time, as the operator or the upstream says. */
export function isRepeatable({ upstream, name, entry }: Offer): boolean {
	const said = upstream.options.tools[name]?.idempotent;
	if (said !== undefined) return said;
	const hints = entry['annotations'];
	return isJsonObject(hints) && (hints['idempotentHint'] === true || hints['readOnlyHint'] === true);
}

/** What happens to calls of hosts without Tasks. */
function handOverTo({ budgets, nowMs }: HostServerDeps, mcp: McpServer): HandOver {
	return {
		budgetMs: (ctx) => {
			const meta: unknown = ctx.mcpReq._meta;
			return budgetMs(
				hostFacts(mcp, ctx),
				isJsonObject(meta) && meta['progressToken'] !== undefined,
				budgets,
			);
		},
		// What such a host cannot ask its user in a form, the model can ask in words, and answer with answer_task.
		inputs: (_ctx, declared): InputCapabilities => ({ ...declared, form: true, url: true }),
		answer: (record) => handOverText(record, nowMs()),
	};
}
