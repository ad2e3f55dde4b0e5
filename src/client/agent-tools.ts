import { createHash } from 'node:crypto';
import { HoldfastError, isHoldfastError, messageOf } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { IDEMPOTENCY_KEY_META } from '../protocol/names.ts';
import { type AgentAnswer, errorAnswer, textAnswer } from './agent-answer.ts';
import type { AgentCall, AgentTool } from './agent-tool.ts';
import { answerParts } from './answer-parts.ts';
import type { BackgroundEnd, BackgroundTasks, LeavePolicy } from './background-tasks.ts';
import { MAX_TIMER_MS } from './clock.ts';
import type { CallToolParams } from './connection.ts';
import { functionNames } from './function-names.ts';
import { HANDLE_TOOL_NAMES, HandleTools } from './handle-tools.ts';
import { type CallToolResult, ProtocolError, type Tool } from './sdk.ts';
import type { TaskClient } from './task-client.ts';

/** Options of {@link AgentTools}. */
export interface AgentToolsOptions {
	/** Connected clients, one for each server; each must have a `server` name of its own. */
	readonly clients: readonly TaskClient[];
	/**
	 * Takes long calls to the background: the model gets a handle, and the tools `await_task` and `cancel_task`.
	 * Default: none, so that a call takes as long as it takes.
	 */
	readonly background?: BackgroundTasks;
	/**
	 * A name for the conversation, unlike that of any other and the same after a restart. With it, a call that is run
	 * again because the host crashed before its answer was saved joins the task it began, on servers that know
	 * holdfast's idempotency key. The model provider must give each call an id of its own. Default: none, so that
	 * a repeated call is recognised within the process only.
	 */
	readonly conversation?: string;
	/** What happens to a task whose call is aborted by its signal. Default `cancel`. */
	readonly onAbort?: LeavePolicy;
	/** How much text one answer may have, in UTF-16 units. Default 100,000. */
	readonly maxTextLength?: number;
	/** The longest that the model may wait by `await_task`, in milliseconds. Default 600,000. */
	readonly maxAwaitMs?: number;
}

/** How many answers are kept for calls that are run again. */
const MAX_REMEMBERED = 100;

/**
 * The tools of any number of servers for the agent loop of one conversation. `OpenAiTools` and `aiSdkTools` bring
 * them to the shapes of model APIs.
 */
export class AgentTools {
	/** The manager that was given. */
	readonly background: BackgroundTasks | undefined;
	readonly #options: AgentToolsOptions;
	readonly #onAbort: LeavePolicy;
	readonly #maxTextLength: number;
	readonly #handleTools: HandleTools | undefined;
	readonly #answers = new Map<string, Promise<AgentAnswer>>();
	#tools: readonly AgentTool[] = [];
	#targets: ReadonlyMap<string, { readonly client: TaskClient; readonly tool: string }> = new Map();

	private constructor(options: AgentToolsOptions) {
		this.#options = options;
		this.background = options.background;
		this.#maxTextLength = atLeastOne('maxTextLength', options.maxTextLength ?? 100_000);
		this.#onAbort = options.onAbort ?? 'cancel';
		const maxAwaitMs = atLeastOne('maxAwaitMs', options.maxAwaitMs ?? 600_000);
		const endAnswer = (end: BackgroundEnd): AgentAnswer => this.endAnswer(end);
		this.#handleTools = this.background && new HandleTools(this.background, { maxAwaitMs, endAnswer });
	}

	/**
	 * Lists the tools of all servers.
	 *
	 * @throws INVALID_OPTION; what `listTools` of the SDK throws.
	 */
	static async list(options: AgentToolsOptions): Promise<AgentTools> {
		const agentTools = new AgentTools(options);
		await agentTools.refresh();
		return agentTools;
	}

	/** The tools as they were last listed. */
	get tools(): readonly AgentTool[] {
		return this.#tools;
	}

	/** Lists the tools anew, for a host that heard that they changed. A tool keeps its name unless a clash is new. */
	async refresh(): Promise<void> {
		const { clients } = this.#options;
		const byServer = new Map(clients.map((client) => [client.server, client]));
		if (byServer.size < clients.length)
			throw new HoldfastError(
				'INVALID_OPTION',
				'Two clients have the same server name; give each the option "server"',
			);
		const listed = await Promise.all(
			clients.map(async (client) => {
				const { tools } = await client.client.listTools();
				return tools.map((tool) => ({ server: client.server, name: tool.name, tool, client }));
			}),
		);
		const byTool = new Map(listed.flat().map((entry) => [JSON.stringify([entry.server, entry.name]), entry]));
		const named = functionNames([...byTool.values()], this.#handleTools ? HANDLE_TOOL_NAMES : []);
		this.#targets = new Map(
			Array.from(named, ([name, { client, tool }]) => [name, { client, tool: tool.name }]),
		);
		this.#tools = [
			...Array.from(named, ([name, { tool }]) => toAgentTool(name, tool)),
			...(this.#handleTools?.tools ?? []),
		];
	}

	/**
	 * Makes a call of a model. Whatever the model can read and act upon is an answer: also a tool that there is not,
	 * wrong arguments, and a call that failed, was cancelled or was lost.
	 *
	 * @throws the signal's reason; CLOSED for a manager or client that was closed.
	 */
	call(call: AgentCall): Promise<AgentAnswer> {
		if (this.#handleTools && HANDLE_TOOL_NAMES.includes(call.name)) return this.#handleTools.run(call);
		if (call.id === '') return this.#run(call, undefined);
		const key = digest([this.#options.conversation ?? '', call.id, call.name, call.arguments]);
		const earlier = this.#answers.get(key);
		if (earlier) return earlier;
		const answer = this.#run(call, this.#options.conversation === undefined ? undefined : key);
		this.#answers.set(key, answer);
		// What was aborted has no answer, and may be run again.
		answer.catch(() => this.#answers.delete(key));
		for (const oldest of this.#answers.keys()) {
			if (this.#answers.size <= MAX_REMEMBERED) break;
			this.#answers.delete(oldest);
		}
		return answer;
	}

	/** What a model is given for the end of a call in the background. */
	endAnswer(end: BackgroundEnd): AgentAnswer {
		const { result } = end;
		const head = { type: 'text', text: end.text } as const;
		if (!result) return { parts: [head], isError: true };
		return { parts: [head, ...answerParts(result, this.#maxTextLength)], isError: result.isError === true };
	}

	async #run(call: AgentCall, idempotencyKey: string | undefined): Promise<AgentAnswer> {
		const { signal } = call;
		signal?.throwIfAborted();
		const target = this.#targets.get(call.name);
		if (!target) return errorAnswer(unknownTool(call.name, this.#tools));
		if (!isJsonObject(call.arguments))
			return errorAnswer(`The arguments of the tool "${call.name}" must be one JSON object.`);
		const params: CallToolParams = {
			...{ name: target.tool, arguments: { ...call.arguments } },
			...(idempotencyKey !== undefined && { _meta: { [IDEMPOTENCY_KEY_META]: idempotencyKey } }),
		};
		try {
			return this.background
				? await this.#start(this.background, target.client, params, signal)
				: this.#resultAnswer(await this.#wait(target.client, params, signal));
		} catch (error) {
			if (signal?.aborted) throw signal.reason;
			if (isHoldfastError(error, 'CLOSED')) throw error;
			return errorAnswer(problemText(call.name, error));
		}
	}

	async #wait(
		client: TaskClient,
		params: CallToolParams,
		signal: AbortSignal | undefined,
	): Promise<CallToolResult> {
		// A call that a server without Tasks holds may take as long as it takes.
		const options = { timeout: MAX_TIMER_MS, ...(signal && { signal }) };
		if (this.#onAbort === 'cancel') return client.callTool(params, options);
		const execution = await client.startTool(params, options);
		try {
			return await execution.result({ ...(signal && { signal }), onAbort: 'leave' });
		} finally {
			// A result is one also where the journal cannot be written.
			if (execution.outcome) await execution.acknowledge().catch(() => {});
			else execution.detach();
		}
	}

	async #start(
		background: BackgroundTasks,
		client: TaskClient,
		params: CallToolParams,
		signal: AbortSignal | undefined,
	): Promise<AgentAnswer> {
		// Only until there is an answer: a signal that fires later is not about what runs in the background.
		const starting = new AbortController();
		const abort = (): void => starting.abort(signal?.reason);
		signal?.addEventListener('abort', abort, { once: true });
		const start = await background
			.start(client, params, { signal: starting.signal })
			.finally(() => signal?.removeEventListener('abort', abort));
		if (start.kind === 'result') return this.#resultAnswer(start.result);
		if (signal?.aborted) {
			if (this.#onAbort === 'detach') background.detach(start.handle);
			// Fails only where the call has ended meanwhile.
			else background.cancel(start.handle).catch(() => {});
			throw signal.reason;
		}
		return textAnswer(start.text);
	}

	#resultAnswer(result: CallToolResult): AgentAnswer {
		return { parts: answerParts(result, this.#maxTextLength), isError: result.isError === true };
	}
}

function toAgentTool(name: string, tool: Tool): AgentTool {
	const schema: JsonObject = JSON.parse(JSON.stringify(tool.inputSchema));
	const { properties } = schema;
	return {
		name,
		description: tool.description ?? tool.title ?? tool.annotations?.title ?? tool.name,
		// Providers want `properties` to be there, also of a tool that takes nothing.
		inputSchema: { ...schema, type: 'object', properties: isJsonObject(properties) ? properties : {} },
	};
}

function unknownTool(name: string, tools: readonly AgentTool[]): string {
	return `There is no tool "${name.slice(0, 100)}". There are: ${tools.map((tool) => tool.name).join(', ')}.`;
}

/** What a model is told of an error, so that it neither repeats what may have been done nor hopes in vain. */
function problemText(tool: string, error: unknown): string {
	const why = messageOf(error);
	if (error instanceof ProtocolError) return `The call of the tool "${tool}" failed: ${why}`;
	if (isHoldfastError(error, 'TASK_LIMIT')) return `The tool "${tool}" was not called: ${why}.`;
	if (isHoldfastError(error, 'TASK_CANCELLED'))
		return `The call of the tool "${tool}" was cancelled, and has no result. What it had done by then stays done.`;
	return (
		`The call of the tool "${tool}" was lost: ${why}. Whether it did its work is unknown, ` +
		'so check before calling it again.'
	);
}

function atLeastOne(option: string, value: number): number {
	if (Number.isInteger(value) && value >= 1) return value;
	throw new HoldfastError('INVALID_OPTION', `${option} is ${value}; it must be an integer of at least 1`);
}

function digest(value: unknown): string {
	return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
