import type { TaskContext } from '../engine/task-context.ts';
import type { Exchange } from './exchange.ts';
import type { CallToolResult, ServerContext } from './sdk.ts';
import type { TaskRuntime } from './runtime.ts';
import { checkOptions, type TaskToolOptions } from './tool-options.ts';
import { noteSupport } from './tool-support.ts';
import type { JsonValue } from '../protocol/json.ts';

/** A tool's handler. What it returns is what the call returns, at once or as a task's result. */
export type TaskHandler<Args, Prepared extends JsonValue = JsonValue> = (
	args: Args,
	task: TaskContext & { readonly prepared: Prepared },
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
	 * task. The tool needs an `inputSchema`; `z.object({})` where it takes nothing. Register the callback itself,
	 * not a function around it: 2025-11-25 wants `tools/list` to say which tools are task tools.
	 *
	 * @throws INVALID_OPTION
	 */
	handler<Args, Prepared extends JsonValue = JsonValue>(
		options: TaskToolOptions<Args, Prepared>,
		handler: TaskHandler<Args, Prepared>,
	): (args: Args, ctx: ServerContext) => Promise<CallToolResult> {
		const checked = checkOptions<Args>(options);
		// What `prepare` returned went through the store as JSON; only its author knows its type.
		const untyped = handler as unknown as TaskHandler<Args>;
		const callback = (args: Args, ctx: ServerContext): Promise<CallToolResult> =>
			this.#runtime.answer({ args, ctx, options: checked, handler: untyped, exchange: this.#exchange() });
		noteSupport(callback, checked.support);
		return callback;
	}
}
