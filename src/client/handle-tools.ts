import { isHoldfastError } from '../errors.ts';
import { isJsonObject } from '../protocol/json.ts';
import { type AgentAnswer, errorAnswer, textAnswer } from './agent-answer.ts';
import type { AgentCall, AgentTool } from './agent-tool.ts';
import type { BackgroundEnd, BackgroundTasks } from './background-tasks.ts';

const AWAIT = 'await_task';
const CANCEL = 'cancel_task';

/** How long a cancel waits to see the end. */
const CANCEL_WAIT_MS = 5_000;

/** The names that a server's tools cannot have beside these. */
export const HANDLE_TOOL_NAMES: readonly string[] = [AWAIT, CANCEL];

/** The two tools with which a model minds its calls in the background. */
export class HandleTools {
	readonly tools: readonly AgentTool[];
	readonly #background: BackgroundTasks;
	readonly #maxAwaitMs: number;
	readonly #endAnswer: (end: BackgroundEnd) => AgentAnswer;

	constructor(
		background: BackgroundTasks,
		options: {
			readonly maxAwaitMs: number;
			readonly endAnswer: (end: BackgroundEnd) => AgentAnswer;
		},
	) {
		this.#background = background;
		this.#maxAwaitMs = options.maxAwaitMs;
		this.#endAnswer = options.endAnswer;
		this.tools = handleTools(this.#maxAwaitMs);
	}

	/** Runs a call of one of the two. @throws the signal's reason */
	async run(call: AgentCall): Promise<AgentAnswer> {
		call.signal?.throwIfAborted();
		const given = isJsonObject(call.arguments) ? call.arguments : {};
		const { handle, maxWaitMs = this.#maxAwaitMs } = given;
		if (typeof handle !== 'string')
			return errorAnswer(`${call.name} needs the argument "handle", a string. ${this.#openText()}`);
		if (typeof maxWaitMs !== 'number' || !(maxWaitMs >= 0))
			return errorAnswer('maxWaitMs must be a number of milliseconds, not less than 0.');
		try {
			return call.name === AWAIT
				? await this.#await(handle, Math.min(maxWaitMs, this.#maxAwaitMs), call.signal)
				: await this.#cancel(handle, call.signal);
		} catch (error) {
			if (!isHoldfastError(error, 'TASK_NOT_FOUND')) throw error;
			return errorAnswer(`There is no background call "${handle.slice(0, 60)}". ${this.#openText()}`);
		}
	}

	async #await(handle: string, maxWaitMs: number, signal: AbortSignal | undefined): Promise<AgentAnswer> {
		const waited = await this.#background.await(handle, maxWaitMs, signal);
		if (waited.kind === 'ended') return this.#endAnswer(waited.end);
		signal?.throwIfAborted();
		return textAnswer(waited.text);
	}

	async #cancel(handle: string, signal: AbortSignal | undefined): Promise<AgentAnswer> {
		if (!this.#background.open.some((open) => open.handle === handle)) {
			// Throws for a handle that never was.
			await this.#background.await(handle, 0);
			return textAnswer(`The background call ${handle} has ended already; ${AWAIT} gives its result.`);
		}
		// Not waited for: while the server cannot be reached, it goes on trying. Fails only for what has ended.
		this.#background.cancel(handle).catch(() => {});
		const waited = await this.#background.await(handle, CANCEL_WAIT_MS, signal);
		if (waited.kind === 'ended') return this.#endAnswer(waited.end);
		signal?.throwIfAborted();
		return textAnswer(
			`The background call ${handle} is being cancelled. You will be told when it has ended.`,
		);
	}

	#openText(): string {
		const open = this.#background.open.map(({ handle, tool }) => `${handle} (${tool})`);
		return open.length === 0 ? 'None is open.' : `Open are: ${open.join(', ')}.`;
	}
}

function handleTools(maxAwaitMs: number): readonly AgentTool[] {
	const handle = { type: 'string', description: 'The handle of a background call, like task_0123456789ab' };
	const maxWaitMs = {
		type: 'number',
		description: `The longest to wait, in milliseconds; at most ${maxAwaitMs}, which is the default`,
	};
	return [
		{
			name: AWAIT,
			description:
				'Waits for a call that goes on in the background and gives its result. Not needed to get the result, ' +
				'which is given to you anyway when the call ends: use it only when there is nothing else to do. ' +
				'Also gives the result of a call that has ended once more.',
			inputSchema: { type: 'object', properties: { handle, maxWaitMs }, required: ['handle'] },
		},
		{
			name: CANCEL,
			description: 'Ends a call that goes on in the background. What it has done by then stays done.',
			inputSchema: { type: 'object', properties: { handle }, required: ['handle'] },
		},
	];
}
