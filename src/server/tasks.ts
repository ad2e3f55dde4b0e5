import type { TaskRecord } from '../backend/record.ts';
import type { TaskContext } from '../engine/task-context.ts';
import { HoldfastError } from '../errors.ts';
import type { JsonValue } from '../protocol/json.ts';
import type { InputResponse, InputResponses } from '../protocol/task.ts';
import type { Exchange, RawCall } from './exchange.ts';
import { hold } from './hold.ts';
import type { CallToolResult, ServerContext } from './sdk.ts';
import type { TaskRuntime } from './runtime.ts';
import { checkOptions, type TaskToolOptions } from './tool-options.ts';
import { noteSupport } from './tool-support.ts';

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

	/** The call that a tool callback answers, as it came; undefined outside of one. */
	rawCall(ctx: ServerContext): RawCall | undefined {
		return this.#exchange().callOf(ctx);
	}

	/** A task of the caller, as it stands. @throws TASK_NOT_FOUND */
	async get(taskId: string, ctx: ServerContext): Promise<TaskRecord> {
		await this.#runtime.ready();
		return this.#runtime.engine().get(taskId, this.#runtime.principal(ctx.http));
	}

	/** Asks for the end of a task of the caller (T40). @throws TASK_NOT_FOUND */
	async cancel(taskId: string, ctx: ServerContext): Promise<void> {
		await this.#runtime.ready();
		await this.#runtime.engine().cancel(taskId, this.#runtime.principal(ctx.http));
	}

	/** Answers questions of a task of the caller (T30 to T32). @throws TASK_NOT_FOUND */
	async update(taskId: string, responses: InputResponses, ctx: ServerContext): Promise<void> {
		await this.#runtime.ready();
		await this.#runtime.engine().update(taskId, this.#runtime.principal(ctx.http), responses);
	}

	/**
	 * The answer of a tool that waits for a task of the caller: its result, or what `options.handOver` answers.
	 *
	 * @throws TASK_NOT_FOUND; INVALID_OPTION
	 */
	async wait(taskId: string, ctx: ServerContext, options: TaskToolOptions): Promise<CallToolResult> {
		await this.get(taskId, ctx);
		const site = {
			...{ args: {}, ctx, options: checkOptions(options), exchange: this.#exchange() },
			handler: () => {
				throw new HoldfastError('INVALID_OPTION', 'A tool that waits has no handler');
			},
		};
		const raw = site.exchange.callOf(ctx);
		if (raw?.heldTaskId === taskId)
			await this.update(taskId, raw.inputResponses as Record<string, InputResponse>, ctx);
		const record = await this.get(taskId, ctx);
		return hold(this.#runtime, site, this.#runtime.engine().rejoin(record), record.tool);
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
