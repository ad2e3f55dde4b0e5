import { randomUUID } from 'node:crypto';
import type { TaskContext } from '../engine/task-context.ts';
import { isHoldfastError, messageOf, TaskFailure } from '../errors.ts';
import { MAX_TIMER_MS } from '../client/clock.ts';
import type { Execution } from '../client/execution.ts';
import { readReference } from '../client/reference.ts';
import { type CallToolResult, ProtocolError } from '../client/sdk.ts';
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import type { CallScope } from './call-scope.ts';
import { Questions } from './questions.ts';
import type { Upstream } from './upstream.ts';

/** One call of an upstream's tool. */
export interface UpstreamCall {
	readonly upstream: Upstream;
	/** The upstream's own name of the tool. */
	readonly tool: string;
	readonly arguments: JsonObject;
	/** Goes to the upstream in `_meta`. */
	readonly meta: JsonObject;
	/** Whether a second start does no harm. */
	readonly repeatable: boolean;
}

/**
 * Makes a call of an upstream's tool within a task of the gateway, and ends as the upstream's call ends. A task of
 * the upstream is found again after a crash. A plain call dies with the gateway's connection, so it is made
 * again only where that does no harm; else nobody can tell what became of it, and that is what is said.
 *
 * @throws TaskFailure with the upstream's JSON-RPC error, or one that says that the outcome is unknown.
 */
export async function callUpstream(call: UpstreamCall, task: TaskContext): Promise<CallToolResult> {
	const questions = new Questions(task);
	const scope: CallScope = { principal: task.principal, ask: (request, key) => questions.ask(request, key) };
	const me = randomUUID();
	// Recorded before anything is sent: whoever finds it and did not write it knows that there was a start.
	const starter = await task.step('send', () => me);
	const isFirst = starter === me;
	let plain: CallToolResult | undefined;
	let execution: Execution | undefined;
	try {
		const reference = await task.step('sent', async (): Promise<JsonValue> => {
			if (!isFirst && !call.repeatable) throw outcomeUnknown(call);
			execution = await start(call, task, scope);
			if (execution.reference === null) plain = await execution.result();
			return execution.reference;
		});
		if (plain) return questions.annotate(plain);
		if (typeof reference !== 'string') {
			// The upstream had answered, and the gateway went away before it could record what.
			if (!call.repeatable) throw outcomeUnknown(call);
			const again = await start(call, task, scope);
			return questions.annotate(await again.result());
		}
		return questions.annotate(await follow(call, task, scope, execution, reference));
	} catch (error) {
		throw asFailure(call, error);
	}
}

/** Sends the call, in its turn; resolves with its result or with the upstream's task. */
function start(call: UpstreamCall, task: TaskContext, scope: CallScope): Promise<Execution> {
	const { upstream } = call;
	const params = {
		name: call.tool,
		arguments: call.arguments,
		...(Object.keys(call.meta).length > 0 && { _meta: call.meta }),
	};
	return upstream.limit(async () => {
		task.signal.throwIfAborted();
		await upstream.connect();
		return upstream.scopes.run(scope, () =>
			upstream.tasks.startTool(params, {
				signal: task.signal,
				timeout: MAX_TIMER_MS,
				onprogress: ({ progress, total, message }) =>
					task.progress({ progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) }),
			}),
		);
	});
}

/** Follows a task of the upstream to its end, whatever happens to connections in between. */
async function follow(
	{ upstream }: UpstreamCall,
	task: TaskContext,
	scope: CallScope,
	started: Execution | undefined,
	reference: string,
): Promise<CallToolResult> {
	const unbind = upstream.scopes.bind(readReference(reference).taskId, scope);
	// A server that cannot be reached now is tried again by the driver.
	if (!started) await upstream.connect().catch(() => {});
	const execution = started ?? (await upstream.tasks.resume(reference));
	const stop = (): void => {
		if (task.stopReason === 'cancelled') void execution.cancel();
		else execution.detach();
	};
	task.signal.addEventListener('abort', stop, { once: true });
	if (task.signal.aborted) stop();
	try {
		void tell(execution, task);
		const result = await execution.result();
		await execution.acknowledge();
		return result;
	} finally {
		task.signal.removeEventListener('abort', stop);
		unbind();
	}
}

/** Passes on what the upstream says about its task. */
async function tell(execution: Execution, task: TaskContext): Promise<void> {
	for await (const { statusMessage, pollIntervalMs } of execution.updates())
		task.progress({
			...(statusMessage !== undefined && { message: statusMessage }),
			...(pollIntervalMs !== undefined && { pollIntervalMs }),
		});
}

/** The failure of a call of which nobody can tell whether it was done. */
export function outcomeUnknown({ upstream, tool }: UpstreamCall, reason = 'the gateway was restarted while it ran'): TaskFailure {
	return new TaskFailure(
		WIRE_CODES.internalError,
		`The outcome of ${tool} on the server "${upstream.options.name}" is unknown: ${reason}. It may have been done; check before you repeat it.`,
	);
}

/** What a call that went wrong ends with: the upstream's own error, or the truth about what is known. */
export function asFailure(call: UpstreamCall, error: unknown): unknown {
	if (error instanceof TaskFailure) return error;
	if (error instanceof ProtocolError) return new TaskFailure(error.code, error.message, error.data as JsonValue);
	if (isHoldfastError(error, 'UPSTREAM_UNAVAILABLE')) return error;
	if (isHoldfastError(error, 'TASK_NOT_FOUND') || isHoldfastError(error, 'TASK_EXPIRED'))
		return outcomeUnknown(call, `it lost its task (${messageOf(error)})`);
	return outcomeUnknown(call, messageOf(error));
}
