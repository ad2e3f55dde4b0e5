import type { TaskRecord } from '../backend/record.ts';
import type { TaskContext } from '../engine/task-context.ts';
import { HoldfastError } from '../errors.ts';
import type { JsonOf, JsonValue } from '../protocol/json.ts';
import { isTerminal } from '../protocol/status.ts';
import type { InputResponse, InputResponses } from '../protocol/task.ts';
import type { Exchange, RawCall } from './exchange.ts';
import { hold } from './hold.ts';
import type { CallToolResult, ServerContext } from './sdk.ts';
import type { TaskRuntime } from './runtime.ts';
import { checkOptions, type TaskToolOptions } from './tool-options.ts';
import { noteSupport } from './tool-support.ts';

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

	/** The call that a tool callback answers, as it came; undefined outside of one. */
	rawCall(ctx: ServerContext): RawCall | undefined {
		return this.#exchange().callOf(ctx);
	}

	/** Who a request belongs to, and so the tasks that it begins. */
	principal(ctx: ServerContext): string {
		return this.#runtime.principal(ctx.http);
	}

	/** A task of a principal, as it stands. @throws TASK_NOT_FOUND for unknown, expired and foreign ids alike. */
	async get(taskId: string, principal: string): Promise<TaskRecord> {
		await this.#runtime.ready();
		return this.#runtime.engine().get(taskId, principal);
	}

	/** Answers questions of a task (T30 to T32). @throws TASK_NOT_FOUND */
	async update(taskId: string, responses: InputResponses, principal: string): Promise<void> {
		await this.#runtime.ready();
		await this.#runtime.engine().update(taskId, principal, responses);
	}

	/**
	 * The answer of a tool that waits for a task of the caller: its result, or what `options.handOver` answers.
	 *
	 * @throws TASK_NOT_FOUND; INVALID_OPTION
	 */
	async wait(taskId: string, ctx: ServerContext, options: TaskToolOptions): Promise<CallToolResult> {
		const principal = this.principal(ctx);
		await this.get(taskId, principal);
		const site = {
			...{ args: {}, ctx, options: checkOptions(options), exchange: this.#exchange() },
			handler: () => {
				throw new HoldfastError('INVALID_OPTION', 'A tool that waits has no handler');
			},
		};
		const raw = site.exchange.callOf(ctx);
		if (raw?.heldTaskId === taskId)
			await this.update(taskId, raw.inputResponses as Record<string, InputResponse>, principal);
		const record = await this.get(taskId, principal);
		return hold(this.#runtime, site, this.#runtime.engine().rejoin(record), record.tool);
	}

	/**
	 * The callback to give to the SDK's `registerTool`: it validates as always, then the call runs as a durable
	 * task. The tool needs an `inputSchema`; `z.object({})` where it takes nothing. Register the callback itself,
	 * not a function around it: 2025-11-25 wants `tools/list` to say which tools are task tools.
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
		const callback = (args: Args, ctx: ServerContext): Promise<CallToolResult> =>
			this.#runtime.answer({ args, ctx, options: checked, handler: untyped, exchange: this.#exchange() });
		noteSupport(callback, checked.support);
		return callback;
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
