import { randomUUID } from 'node:crypto';
import type { TaskContext } from '../engine/task-context.ts';
import { isHoldfastError, messageOf, TaskFailure } from '../errors.ts';
import { MAX_TIMER_MS } from '../client/clock.ts';
import type { Execution } from '../client/execution.ts';
import { readReference } from '../client/reference.ts';
import { type CallToolRequestOptions, type CallToolResult, ProtocolError, type Tool } from '../client/sdk.ts';
import { canAsk, inputCapabilities } from '../protocol/capabilities.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import type { InputRequest } from '../protocol/task.ts';
import type { CallScope } from './call-scope.ts';
import { asHostQuestion, type PreparedCall } from './prepared-call.ts';
import { Questions } from './questions.ts';
import { limitResult } from './result-limit.ts';
import type { Upstream } from './upstream.ts';

/** One call of an upstream's tool. */
export interface UpstreamCall {
	readonly upstream: Upstream;
	/** The tool as the upstream lists it. */
	readonly tool: JsonObject;
	readonly arguments: JsonObject;
	readonly prepared: PreparedCall;
	/** Takes what the upstream logs while it works on the call. */
	readonly onLog: (params: object) => void;
	/** Whether a second start does no harm. */
	readonly repeatable: boolean;
}

/** Answers to what an upstream asked, and the state that it wants back with them. */
type Round = Pick<PreparedCall, 'inputResponses' | 'requestState'>;

/**
 * Makes a call of an upstream's tool within a task of the gateway, and ends as the upstream's call ends. A task of
 * the upstream is found again after a crash. A plain call dies with the gateway's connection, so it is made
 * again only where that does no harm; else nobody can tell what became of it, and that is what is said.
 *
 * @throws TaskFailure with the upstream's JSON-RPC error, or one that says that the outcome is unknown.
 */
export async function callUpstream(call: UpstreamCall, task: TaskContext): Promise<CallToolResult> {
	const questions = new Questions(task);
	const scope: CallScope = {
		principal: task.principal,
		log: call.onLog,
		ask: (request, key) => questions.ask(request, key),
	};
	const finish = (result: CallToolResult): CallToolResult =>
		questions.annotate(limitResult(result, call.upstream.options.maxResultBytes, nameOf(call)));
	const me = randomUUID();
	// Recorded before anything is sent: whoever finds it and did not write it knows that there was a start.
	const starter = await task.step('send', () => me);
	const isFirst = starter === me;
	let execution: Execution | undefined;
	try {
		// Only a task is worth recording: a result is recorded by the end of the handler.
		const reference = await task.step('sent', async () => {
			if (!isFirst && !call.repeatable) throw outcomeUnknown(call);
			execution = await converse(call, task, scope);
			if (execution.reference === null) throw new Answered(await execution.result());
			return execution.reference;
		});
		return finish(await follow(call, task, scope, execution, reference));
	} catch (error) {
		if (error instanceof HostQuestion) return error.result as unknown as CallToolResult;
		if (error instanceof Answered) return finish(error.result);
		throw asFailure(call, error);
	}
}

/**
 * Sends the call, and again with answers for as long as the upstream asks. What it asks before anybody knows of a
 * task is the host's own to answer, in a call of its own, where the host can be asked for all of it.
 */
async function converse(call: UpstreamCall, task: TaskContext, scope: CallScope): Promise<Execution> {
	let round: Round = call.prepared;
	for (;;) {
		const execution = await send(call, round, task, scope);
		if (execution.reference !== null) {
			task.becomeTask();
			return execution;
		}
		const result: JsonObject = { ...(await execution.result()) } as JsonObject;
		if (result['resultType'] !== 'input_required') return execution;
		const requests = Object.entries(isJsonObject(result['inputRequests']) ? result['inputRequests'] : {}).map(
			([key, request]) => [key, request as unknown as InputRequest] as const,
		);
		const { hostCapabilities } = call.prepared;
		const own = inputCapabilities(hostCapabilities);
		if (hostCapabilities !== null && !task.isKept && requests.every(([, request]) => canAsk(own, request)))
			throw new HostQuestion(asHostQuestion(result));
		const answers = requests.map(
			async ([key, request]) => [key, await scope.ask(request, undefined)] as const,
		);
		const { requestState } = result;
		round = {
			inputResponses: Object.fromEntries(await Promise.all(answers)),
			requestState: typeof requestState === 'string' ? requestState : null,
		};
	}
}

/** Sends one round of the call, in its turn; resolves with its result or with the upstream's task. */
function send(call: UpstreamCall, round: Round, task: TaskContext, scope: CallScope): Promise<Execution> {
	const { upstream, prepared } = call;
	const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
	task.signal.addEventListener('abort', () => stop(task.signal.reason), { once: true });
	const sent = upstream.limit(async () => {
		task.signal.throwIfAborted();
		return upstream.use(() => {
			const meta = { ...prepared.meta, ...upstream.capabilitiesMeta(prepared.capabilities) };
			const params = {
				name: nameOf(call),
				arguments: call.arguments,
				...(Object.keys(meta).length > 0 && { _meta: meta }),
				...(round.inputResponses && { inputResponses: round.inputResponses }),
				...(round.requestState !== null && { requestState: round.requestState }),
			};
			return upstream.scopes.run(scope, () =>
				upstream.tasks.startTool(params, {
					allowInputRequired: true,
					...headersOf(call.tool),
					signal: task.signal,
					timeout: MAX_TIMER_MS,
					onprogress: ({ progress, total, message }) =>
						task.progress({
							progress,
							...(total !== undefined && { total }),
							...(message !== undefined && { message }),
						}),
				}),
			);
		});
	});
	// A call that waits for its turn need not wait for it to be stopped.
	return Promise.race([sent, stopped]);
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
	// Also where an earlier process began it.
	task.becomeTask();
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

/** The upstream's own name of the tool. */
export function nameOf({ tool }: UpstreamCall): string {
	const { name } = tool;
	return typeof name === 'string' ? name : '';
}

/** The SDK puts arguments into headers where it is given a definition that wants it, and validates results by it. */
export function headersOf(tool: JsonObject): Pick<CallToolRequestOptions, 'toolDefinition'> {
	return JSON.stringify(tool['inputSchema'] ?? {}).includes('"x-mcp-header"')
		? { toolDefinition: tool as unknown as Tool }
		: {};
}

/** Leaves the step in which the call was sent with its result, so that nothing of it is recorded. */
class Answered extends Error {
	readonly result: CallToolResult;

	constructor(result: CallToolResult) {
		super('The upstream answered at once');
		this.result = result;
	}
}

/** Leaves that step with what the upstream asks before there is a task. */
class HostQuestion extends Error {
	readonly result: JsonObject;

	constructor(result: JsonObject) {
		super('The upstream asks before there is a task');
		this.result = result;
	}
}

/** The failure of a call of which nobody can tell whether it was done. */
export function outcomeUnknown(
	call: UpstreamCall,
	reason = 'the gateway was restarted while it ran',
): TaskFailure {
	return new TaskFailure(
		WIRE_CODES.internalError,
		`The outcome of ${nameOf(call)} on the server "${call.upstream.options.name}" is unknown: ${reason}. It may have been done; check before you repeat it.`,
	);
}

/** What a call that went wrong ends with: the upstream's own error, or the truth about what is known. */
export function asFailure(call: UpstreamCall, error: unknown): unknown {
	if (error instanceof TaskFailure) return error;
	if (error instanceof ProtocolError)
		return new TaskFailure(error.code, error.message, error.data as JsonValue);
	if (isHoldfastError(error, 'UPSTREAM_UNAVAILABLE')) return error;
	if (isHoldfastError(error, 'TASK_NOT_FOUND'))
		return outcomeUnknown(call, 'the server does not know its task any more');
	if (isHoldfastError(error, 'TASK_EXPIRED'))
		return outcomeUnknown(call, 'the time to live of its task was over before it ended');
	// Whoever drives the call has words of its own for it, which would say the same twice.
	if (isHoldfastError(error, 'OUTCOME_UNKNOWN'))
		return outcomeUnknown(call, 'the connection broke while it ran');
	return outcomeUnknown(call, messageOf(error));
}
