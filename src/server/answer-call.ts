import type { TaskRecord } from '../backend/record.ts';
import type { Call } from '../engine/call.ts';
import { declaresTasks } from '../protocol/capabilities.ts';
import { isDeeperThan, type JsonObject, MAX_JSON_DEPTH } from '../protocol/json.ts';
import { IDEMPOTENCY_KEY_META } from '../protocol/names.ts';
import { isTerminal } from '../protocol/status.ts';
import type { InputResponse } from '../protocol/task.ts';
import { type CallSite, declaredInputs, endedAnswer, envelopeOf } from './call-site.ts';
import type { RawCall } from './exchange.ts';
import { hold, progressTokenOf } from './hold.ts';
import { toLegacyTask } from './legacy-task.ts';
import type { TaskRuntime } from './runtime.ts';
import { type CallToolResult, isInputRequiredResult } from './sdk.ts';
import { InvalidParams, MISSING_CAPABILITY, toWireError } from './task-methods.ts';
import { tellTheNews } from './task-news.ts';
import { toCreateTaskResult } from './wire-task.ts';

const TRACE_KEYS = ['traceparent', 'tracestate', 'baggage'];
const MAX_IDEMPOTENCY_KEY_LENGTH = 255;

/** Answers a client's call of a task tool: at once, with a task, or after holding it. */
export async function answerCall<Args>(
	runtime: TaskRuntime,
	site: CallSite<Args>,
	raw: RawCall,
): Promise<CallToolResult> {
	const { ctx, options, exchange } = site;
	const client = exchange.legacyClientOf(ctx);
	const declared = client ? client.hasTasks && raw.asksForTask : declaresTasks(envelopeOf(ctx));
	if (options.support === 'required' && !declared)
		return exchange.answer(ctx, { kind: 'error', error: MISSING_CAPABILITY });
	try {
		const call = await begin(runtime, site, raw, declared);
		if ('content' in call || isInputRequiredResult(call)) return call as CallToolResult;
		if (declared && client) return await giveLegacyTask(runtime, site, call, raw);
		return declared && options.support !== 'forbidden'
			? await giveTask(runtime, site, call)
			: await hold(runtime, site, call, raw.name);
	} catch (error) {
		if (error instanceof ToolTrouble) throw error.cause;
		return exchange.answer(ctx, { kind: 'error', error: toWireError(error) });
	}
}

async function begin<Args>(
	runtime: TaskRuntime,
	site: CallSite<Args>,
	raw: RawCall,
	declared: boolean,
): Promise<Call | CallToolResult> {
	const { args, ctx, options, exchange } = site;
	const client = exchange.legacyClientOf(ctx);
	const engine = runtime.engine();
	const principal = runtime.principal(ctx.http);
	if (raw.heldTaskId !== undefined) {
		const record = await engine.get(raw.heldTaskId, principal);
		await engine.update(record.taskId, principal, raw.inputResponses as Record<string, InputResponse>);
		return engine.rejoin(record);
	}
	if (isDeeperThan([raw.arguments, raw.meta, raw.inputResponses], MAX_JSON_DEPTH))
		throw new InvalidParams(`params is nested more than ${MAX_JSON_DEPTH} levels deep`);
	let prepared: Awaited<ReturnType<NonNullable<typeof options.prepare>>> | undefined;
	try {
		prepared = await options.prepare?.(args, ctx);
	} catch (error) {
		throw new ToolTrouble('prepare', { cause: error });
	}
	if (isInputRequiredResult(prepared)) return prepared as unknown as CallToolResult;
	const idempotencyKey = idempotencyKeyOf(raw.meta);
	return engine.call({
		tool: raw.name,
		arguments: raw.arguments,
		prepared: prepared ?? null,
		principal,
		policy: options.policyFor(args, options.needsHints && (await runtime.isRepeatable(raw.name))),
		inputCapabilities:
			declared || !options.handOver
				? declaredInputs(site)
				: options.handOver.inputs(ctx, declaredInputs(site)),
		idempotencyKey,
		trace: traceOf(raw.meta),
		joinsRunning: options.joinsRunning,
		keepFirst:
			declared && options.support !== 'forbidden' && (client !== undefined || options.syncWindowMs === 0),
	});
}

/** Waits for the sync window, then gives the handle of a task that is stored (T12). */
async function giveTask<Args>(
	runtime: TaskRuntime,
	site: CallSite<Args>,
	call: Call,
): Promise<CallToolResult> {
	const { options, exchange, ctx } = site;
	const record =
		options.syncWindowMs > 0 || call.joined ? await call.inWindow(options.syncWindowMs) : undefined;
	if (record && isTerminal(record.status) && (!call.kept || call.joined)) return endedAnswer(site, record);
	let kept: TaskRecord;
	try {
		kept = await call.keep();
	} catch (error) {
		await call.abandon();
		throw error;
	}
	// The handler ended while it was stored, with a question that comes before any task.
	if (kept.result?.['resultType'] === 'input_required') return endedAnswer(site, kept);
	const result = toCreateTaskResult(kept, runtime.engine().nowMs());
	return exchange.answer(ctx, { kind: 'result', result: { ...result } });
}

/** Gives the handle at once, as a client of 2025-11-25 that asks for a task must get it (L02). */
async function giveLegacyTask<Args>(
	runtime: TaskRuntime,
	site: CallSite<Args>,
	call: Call,
	raw: RawCall,
): Promise<CallToolResult> {
	const { exchange, ctx } = site;
	const engine = runtime.engine();
	const record = await call.current();
	exchange.knownTasks.add(record.taskId);
	tellTheNews(exchange, engine, record, progressTokenOf(raw.meta));
	const task = { ...toLegacyTask(record, engine.nowMs()) };
	return exchange.answer(ctx, { kind: 'result', result: { task } });
}

/** What a tool's own code threw; the SDK answers for it as for any tool. */
class ToolTrouble extends Error {}

function idempotencyKeyOf(meta: JsonObject): string | null {
	const key = meta[IDEMPOTENCY_KEY_META];
	if (key === undefined) return null;
	if (typeof key !== 'string' || key === '' || key.length > MAX_IDEMPOTENCY_KEY_LENGTH)
		throw new InvalidParams(
			`_meta["${IDEMPOTENCY_KEY_META}"] must be a string of 1 to ${MAX_IDEMPOTENCY_KEY_LENGTH} characters`,
		);
	return key;
}

function traceOf(meta: JsonObject): Record<string, string> {
	const entries = TRACE_KEYS.map((key) => [key, meta[key]] as const).filter(
		(entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].length <= 8_192,
	);
	return Object.fromEntries(entries);
}
