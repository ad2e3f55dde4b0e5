import type { TaskProgress, TaskRecord } from '../backend/record.ts';
import { type Call, isDecided } from '../engine/call.ts';
import { every } from '../engine/clock.ts';
import { toolError } from '../engine/outcome.ts';
import { durationText } from '../engine/progress.ts';
import { isJsonObject } from '../protocol/json.ts';
import { isTerminal } from '../protocol/status.ts';
import { canAsk } from '../protocol/capabilities.ts';
import { type CallSite, declaredInputs, endedAnswer } from './call-site.ts';
import { heldState } from './exchange.ts';
import { Unanswered } from './question-desk.ts';
import type { TaskRuntime } from './runtime.ts';
import { type CallToolResult, inputRequired, type InputRequiredResult, type ServerContext } from './sdk.ts';
import { toInputRequests } from './wire-task.ts';

/** How long a held call is kept in memory only before it becomes durable. */
const KEEP_AFTER_MS = 1_000;

/** A note at least this often, so that a client which extends its timeout on progress goes on waiting. */
const HEARTBEAT_MS = 10_000;

/** Least time between two forwarded notes, once so many have been forwarded in quick succession. */
const NOTE_MS = 250;
const NOTES_AT_ONCE = 10;

/**
 * Holds the call of a client that does not declare Tasks until its task ends: durable like any task, with
 * progress notes where the client gave a token, and with questions by multi-round-trip or, on earlier protocol
 * versions, as requests on the call's own stream.
 */
export async function hold<Args>(
	runtime: TaskRuntime,
	site: CallSite<Args>,
	call: Call,
	tool: string,
): Promise<CallToolResult> {
	const { ctx, options } = site;
	const { handOver } = options;
	const heldSinceMs = runtime.engine().nowMs();
	const notes = new ProgressNotes(runtime, ctx, call, tool);
	const endsWithClient = (): boolean => options.onDisconnect === 'cancel' && !call.isLong;
	const left = new AbortController();
	const giveUp = (): void => {
		if (endsWithClient()) left.abort();
	};
	const { gone } = site.exchange;
	gone.addEventListener('abort', giveUp);
	const isOver = AbortSignal.any([ctx.mcpReq.signal, left.signal]);
	try {
		const quick = await call.until(isDecided, KEEP_AFTER_MS, ctx.mcpReq.signal);
		if (quick && isTerminal(quick.status)) return endedAnswer(site, quick);
		if (site.exchange.wasCancelled(ctx)) {
			// Nobody can ask for it later, so it need not be kept to be stopped.
			await stop(runtime, call);
			return { content: [], isError: true };
		}
		if (options.support !== 'forbidden' || quick) await call.keep();
		const budgetMs = handOver?.budgetMs(ctx) ?? null;
		const leftMs = budgetMs === null ? null : Math.max(0, heldSinceMs + budgetMs - runtime.engine().nowMs());
		const record = await decided(runtime, site, call, { waitMs: leftMs, signal: isOver });
		if (!record && handOver && !isOver.aborted) return handOver.answer(await call.keep(), ctx);
		if (!record) {
			if (endsWithClient() || site.exchange.wasCancelled(ctx)) await stop(runtime, call);
			// Read only by a client that comes back to its session after it was taken for gone.
			return toolError('The call was given up: its client was gone') as unknown as CallToolResult;
		}
		if (isTerminal(record.status)) return endedAnswer(site, record);
		return handOver && !isAskable(site, record) ? handOver.answer(record, ctx) : ask(record);
	} catch (error) {
		if (!(error instanceof Unanswered)) throw error;
		await stop(runtime, call);
		return toolError(error.message) as unknown as CallToolResult;
	} finally {
		gone.removeEventListener('abort', giveUp);
		notes.end();
	}
}

/** The task at its end, or with a question: earlier protocol versions are asked while their call goes on. */
function decided<Args>(
	runtime: TaskRuntime,
	site: CallSite<Args>,
	call: Call,
	{ waitMs, signal }: { readonly waitMs: number | null; readonly signal: AbortSignal },
): Promise<TaskRecord | undefined> {
	const { ctx, exchange, options } = site;
	const client = exchange.legacyClientOf(ctx);
	if (!client) return call.until(isDecided, waitMs, signal);
	const engine = runtime.engine();
	const principal = runtime.principal(ctx.http);
	const isEnough = (record: TaskRecord): boolean =>
		isTerminal(record.status) || (options.handOver !== undefined && !isAskable(site, record));
	const waiting = { ctx, signal, call, client, engine, principal, isTask: false };
	return runtime.questions.waitFor(waiting, { isEnough, waitMs });
}

/** Whether the client that waits can be asked everything that the task asks. */
function isAskable<Args>(site: CallSite<Args>, { openInputs }: TaskRecord): boolean {
	const declared = declaredInputs(site);
	return Object.values(openInputs).every(({ request }) => canAsk(declared, request));
}

async function stop(runtime: TaskRuntime, call: Call): Promise<void> {
	if (!call.kept) return call.abandon();
	const { taskId, principal } = await call.current();
	await runtime.engine().cancel(taskId, principal);
}

/** The SDK's result types are looser than what it accepts from a tool; the shape is the specification's. */
function ask(record: TaskRecord): CallToolResult {
	const inputRequests = toInputRequests(record) as unknown as NonNullable<
		InputRequiredResult['inputRequests']
	>;
	return inputRequired({
		inputRequests,
		requestState: heldState(record.taskId),
	}) as unknown as CallToolResult;
}

/** The token of a request whose client wants to hear how far it is; 0 is one. */
export function progressTokenOf(meta: unknown): string | number | undefined {
	const token = isJsonObject(meta) ? meta['progressToken'] : undefined;
	return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

/** Sends what the handler says, and heartbeats while it is silent, with ever growing numbers. */
class ProgressNotes {
	readonly #ctx: ServerContext;
	readonly #token: string | number | undefined;
	readonly #tool: string;
	readonly #startedAtMs: number;
	readonly #stops: (() => void)[] = [];
	readonly #runtime: TaskRuntime;
	#latest: TaskProgress | undefined;
	#sent = 0;
	/** Takes back the note that waits for its time. */
	#cancelNote: (() => void) | undefined;
	/** When the next note may be sent; an idle time before it is worth {@link NOTES_AT_ONCE} notes at most. */
	#nextAtMs = 0;

	constructor(runtime: TaskRuntime, ctx: ServerContext, call: Call, tool: string) {
		this.#ctx = ctx;
		this.#runtime = runtime;
		this.#tool = tool;
		this.#startedAtMs = runtime.engine().nowMs();
		this.#token = progressTokenOf(ctx.mcpReq._meta);
		if (this.#token === undefined) return;
		const { clock } = runtime.engine();
		this.#stops.push(
			every(clock, HEARTBEAT_MS, async () => this.#send()),
			() => this.#cancelNote?.(),
			call.onProgress((progress) => this.#note(progress)),
		);
		call.current().then(
			({ progress }) => progress && this.#note(progress),
			() => {},
		);
	}

	end(): void {
		// The last words come before the answer.
		if (this.#cancelNote) this.#send();
		for (const stop of this.#stops.splice(0)) stop();
	}

	#note(progress: TaskProgress): void {
		this.#latest = progress;
		const waitMs = this.#nextAtMs - this.#runtime.engine().nowMs();
		if (waitMs <= 0) this.#send();
		else this.#cancelNote ??= this.#runtime.engine().clock.after(waitMs, () => this.#send());
	}

	#send(): void {
		this.#cancelNote?.();
		this.#cancelNote = undefined;
		const nowMs = this.#runtime.engine().nowMs();
		this.#nextAtMs = Math.max(this.#nextAtMs, nowMs - NOTE_MS * NOTES_AT_ONCE) + NOTE_MS;
		const elapsedMs = nowMs - this.#startedAtMs;
		const said = this.#latest;
		// The specification wants every number above the last one, also when the handler repeats itself.
		const progress = Math.max(said?.progress ?? elapsedMs / 1000, this.#sent + 1e-6);
		this.#sent = progress;
		const message = said?.message ?? `${this.#tool} has been running for ${durationText(elapsedMs)}`;
		const params = {
			progressToken: this.#token,
			progress,
			...(said?.total !== undefined && { total: Math.max(said.total, progress) }),
			message,
		};
		this.#ctx.mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {});
	}
}
