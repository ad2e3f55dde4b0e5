import type { TaskContext } from '../engine/task-context.ts';
import type { Exchange } from './exchange.ts';
import type { CallToolResult, ServerContext } from './sdk.ts';
import type { TaskRuntime } from './runtime.ts';
import { checkOptions, type TaskToolOptions } from './tool-options.ts';
import type { JsonOf, JsonValue } from '../protocol/json.ts';
import { isTerminal } from '../protocol/status.ts';

/** A tool's handler. What it returns is what the call returns, at once or as a task's result. */
export type TaskHandler<Args, Prepared extends JsonOf<Prepared> = JsonValue> = (
	args: Args,
	task: Omit<TaskContext, 'prepared'> & { readonly prepared: Prepared },
) => CallToolResult | Promise<CallToolResult>;

/** Makes tool callbacks for one SDK server. */
export class Tasks {
	readonly #runtime: TaskRuntime;
	readonly #exchange: () => Exchange;

	constructor(runtime: TaskRuntime, exchange: () => Exchange) {
		this.#runtime = runtime;
		this.#exchange = exchange;
	}

	/**
	 * The callback to give to the SDK's `registerTool`: it validates as always, then the call runs as a durable
	 * task. The tool needs an `inputSchema`; `z.object({})` where it takes nothing.
	 *
	 * @throws INVALID_OPTION
	 */
	handler<Args, Prepared extends JsonOf<Prepared> = JsonValue>(
		options: TaskToolOptions<Args, Prepared>,
		handler: TaskHandler<Args, Prepared>,
	): (args: Args, ctx: ServerContext) => Promise<CallToolResult> {
		// What `prepare` returned goes through the store as JSON; only its author knows its type.
		const checked = checkOptions(options as unknown as TaskToolOptions<Args>);
		const untyped = handler as unknown as TaskHandler<Args>;
		return (args, ctx) =>
			this.#runtime.answer({ args, ctx, options: checked, handler: untyped, exchange: this.#exchange() });
	}

	/**
	 * Asks for the end of another task of a principal, as `tasks/cancel` does: one that waits ends at once, one that
	 * runs gets its signal, here or in another process. Tells whether the task was still open.
	 *
	 * @throws TASK_NOT_FOUND for unknown, expired and foreign ids alike.
	 */
	async cancel(taskId: string, principal: string): Promise<boolean> {
		await this.#runtime.ready();
		const engine = this.#runtime.engine();
		const { status } = await engine.get(taskId, principal);
		if (isTerminal(status)) return false;
		await engine.cancel(taskId, principal);
		return true;
	}
}
