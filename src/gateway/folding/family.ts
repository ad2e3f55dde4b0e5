import { type Clock, MAX_TIMER_MS } from '../../client/clock.ts';
import type { TaskContext } from '../../engine/task-context.ts';
import type { Log } from '../../engine/options.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/json.ts';
import type { CallScope } from '../call-scope.ts';
import { headersOf, type UpstreamCall } from '../upstream-call.ts';
import { type FoldMapping, optionalParts } from './fold-mapping.ts';
import { Reply } from './place.ts';
import { fill } from './template.ts';
import { propertyOf, takesOnlyNamed } from './tool-schema.ts';

/** One call of a folded tool: `tool` and `arguments` are those of the start. */
export interface FoldedCall extends UpstreamCall {
	readonly mapping: FoldMapping;
	/** The upstream's tools, as it lists them. */
	readonly tools: readonly JsonObject[];
	readonly log: Log;
	readonly clock: Clock;
}

/** How long a tool other than the start may take beyond what it was told to wait, in milliseconds. */
const REPLY_LIMIT_MS = 60_000;

type Wait = NonNullable<FoldMapping['check']['wait']>;

/** The tools of one family, as one task calls them. */
export class Family {
	readonly call: FoldedCall;
	readonly task: TaskContext;
	readonly #scope: CallScope;

	constructor(call: FoldedCall, task: TaskContext, scope: CallScope) {
		this.call = call;
		this.task = task;
		this.#scope = scope;
	}

	/** Whether a check changes nothing, so that one too many does no harm. */
	get isCheckReadOnly(): boolean {
		const { check } = this.call.mapping;
		const hints = this.#tool(check.tool)?.['annotations'];
		return check.readOnly ?? (isJsonObject(hints) && hints['readOnlyHint'] === true);
	}

	/**
	 * Starts the work. A cancel does not interrupt this: without the reply nobody would know what to cancel.
	 *
	 * @throws what the SDK throws.
	 */
	async start(): Promise<Reply> {
		const { mapping, arguments: given } = this.call;
		const { tool, arguments: constant, wait } = mapping.start;
		return this.#send(tool, { ...given, ...constant, ...this.#wait(tool, wait) }, undefined, MAX_TIMER_MS);
	}

	/** The parts of the handle in the reply of the start; undefined unless all that it gives are there. */
	idsIn(reply: Reply): JsonObject | undefined {
		const optional = optionalParts(this.call.mapping);
		const ids: Record<string, JsonValue> = {};
		for (const [name, places] of Object.entries(this.call.mapping.ids)) {
			const value = reply.find(places);
			if (value === undefined && optional.includes(name)) continue;
			if ((typeof value !== 'string' && typeof value !== 'number') || value === '') return undefined;
			ids[name] = value;
		}
		return ids;
	}

	/** Asks how the work is. */
	check(ids: JsonObject, signal?: AbortSignal): Promise<Reply> {
		const { tool, arguments: template, wait } = this.call.mapping.check;
		const limitMs = (wait?.waitMs ?? 0) + REPLY_LIMIT_MS;
		return this.#send(
			tool,
			{ ...this.#fill(tool, template, ids), ...this.#wait(tool, wait) },
			signal,
			limitMs,
		);
	}

	/** Calls another tool of the family. */
	other(tool: string, template: JsonObject, ids: JsonObject, signal?: AbortSignal): Promise<Reply> {
		return this.#send(tool, this.#fill(tool, template, ids), signal, REPLY_LIMIT_MS);
	}

	async #send(
		tool: string,
		given: JsonObject,
		signal: AbortSignal | undefined,
		limitMs: number,
	): Promise<Reply> {
		const { upstream, prepared, arguments: startArguments } = this.call;
		const meta = { ...prepared.meta, ...upstream.capabilitiesMeta(prepared.capabilities) };
		const params = { name: tool, arguments: given, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
		const result = await upstream.limit(async () => {
			signal?.throwIfAborted();
			return upstream.use(() =>
				upstream.scopes.run(this.#scope, () =>
					upstream.tasks.callTool(params, {
						...headersOf(this.#tool(tool) ?? {}),
						...(signal && { signal }),
						timeout: limitMs,
						onprogress: ({ progress, total, message }) =>
							this.task.progress({
								progress,
								...(total !== undefined && { total }),
								...(message !== undefined && { message }),
							}),
					}),
				),
			);
		});
		return new Reply(result, startArguments);
	}

	/** Arguments for a tool; those that may be missing are left out where the tool has none of that name. */
	#fill(name: string, template: JsonObject, ids: JsonObject): JsonObject {
		const filled = fill(template, ids);
		const tool = this.#tool(name);
		if (!takesOnlyNamed(tool)) return filled;
		return Object.fromEntries(Object.entries(filled).filter(([argument]) => propertyOf(tool, argument)));
	}

	/** The argument that has a tool wait: in its own unit, and no more than it takes. */
	#wait(tool: string, wait: Wait | undefined): JsonObject {
		if (!wait) return {};
		const property = propertyOf(this.#tool(tool), wait.argument);
		// A server that does not know the argument may refuse it.
		if (!property) return {};
		const { minimum, maximum } = property;
		const amount = wait.unit === 's' ? Math.floor(wait.waitMs / 1_000) : wait.waitMs;
		const most = typeof maximum === 'number' ? maximum : Infinity;
		const least = typeof minimum === 'number' ? minimum : 0;
		return { [wait.argument]: Math.max(least, Math.min(most, amount)) };
	}

	#tool(name: string): JsonObject | undefined {
		return this.call.tools.find((tool) => tool['name'] === name);
	}
}
