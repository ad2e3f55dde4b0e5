import type { ResumePolicy, RetryPolicy, TaskPolicy, TaskRecord } from '../backend/record.ts';
import { HoldfastError } from '../errors.ts';
import type { InputCapabilities } from '../protocol/capabilities.ts';
import type { JsonOf, JsonValue } from '../protocol/json.ts';
import type { TaskSupport } from '../protocol/legacy-tasks.ts';
import type { CallToolResult, InputRequiredResult, ServerContext } from './sdk.ts';

/** What happens to a held call that takes longer than its client waits. */
export interface HandOver {
	/** How long this client waits for an answer, in milliseconds; null is for ever. */
	readonly budgetMs: (ctx: ServerContext) => number | null;
	/**
	 * What the client can be asked for while its task runs, when that is not what it declared: a task that is
	 * handed over may be answered in another way.
	 */
	readonly inputs: (ctx: ServerContext, declared: InputCapabilities) => InputCapabilities;
	/**
	 * The answer when the budget is over, or when the task has a question that the client cannot be asked. The
	 * task is stored, and goes on.
	 */
	readonly answer: (record: TaskRecord, ctx: ServerContext) => CallToolResult;
}

/** How one tool behaves as a task. Every duration is in milliseconds. */
export interface TaskToolOptions<
	Args = Record<string, unknown>,
	Prepared extends JsonOf<Prepared> = JsonValue,
> {
	/**
	 * `optional`: a task for clients that declare Tasks (on 2025-11-25: that ask for one), a held call for others.
	 * `required`: -32021 for the others (T04), -32601 on 2025-11-25. `forbidden`: never a task. Default `optional`.
	 */
	readonly support?: TaskSupport;
	/**
	 * How long a call may take and still be answered at once, leaving no task behind; the clock starts when the
	 * handler is entered. 0 makes every declared call a task. Default 1,000; 0 to 30,000.
	 */
	readonly syncWindowMs?: number;
	/** How long such a call usually takes: shapes `pollIntervalMs` and the words about remaining time. Default unknown. */
	readonly estimateMs?: number | ((args: Args) => number);
	/**
	 * When a worker dies in the middle: `resume` enters the handler again; `fail` ends the task as `failed` with
	 * an outcome that is unknown; `auto` resumes where the tool is annotated `idempotentHint` or `readOnlyHint`,
	 * or where the handler had journalled a step, a question or a sleep, and fails otherwise. Default `auto`.
	 */
	readonly onCrash?: 'auto' | 'resume' | 'fail';
	/** What a thrown error does. Default: no second attempt. */
	readonly retry?: Partial<RetryPolicy>;
	/** Bounds of the `pollIntervalMs` that clients are given. Default 1,000 and 10,000; at least 100. */
	readonly minPollIntervalMs?: number;
	readonly maxPollIntervalMs?: number;
	/** How long a task stays readable after it ended. Default 24 hours. */
	readonly retentionMs?: number;
	/** How long a question waits for an answer before the task fails. Default 7 days. */
	readonly inputWaitMs?: number;
	/** How long a waiting handler stays in memory before it is parked. Default 30,000. */
	readonly parkAfterMs?: number;
	/** How long a handler may take to stop after a cancel before it is abandoned. Default 5,000. */
	readonly cancelGraceMs?: number;
	/** How many crashed workers in a row end the task as `failed`. Default 5. */
	readonly maxCrashes?: number;
	/**
	 * When the connection of a held call breaks: `continue` lets the work go on, to be found by a call with the
	 * same idempotency key; `cancel` stops it. An explicit `notifications/cancelled` always stops it. A session
	 * of an earlier protocol version outlives its connections: there, the client is taken for gone when it has no
	 * stream open and sends nothing for a minute, or when its session ends. A call whose handler has said
	 * `becomeTask()` goes on in any case. Default `continue`.
	 */
	readonly onDisconnect?: 'continue' | 'cancel';
	/**
	 * Whether a call joins an equal one, of the same principal and with the same arguments, that runs in this
	 * process: a client that gave up and calls again starts no second run. Only for tools that are the same whether
	 * they run once or twice. Default false.
	 */
	readonly joinsRunning?: boolean;
	/** How a held call is answered before its task ends. Default: it is held to the end. */
	readonly handOver?: HandOver;
	/**
	 * Decides before the task exists (T13). Return an `inputRequired(...)` to ask the client first, or a JSON
	 * value that the handler finds in `task.prepared`. Runs inside the request, so keep it short.
	 */
	readonly prepare?: (
		args: Args,
		ctx: ServerContext,
	) => Prepared | InputRequiredResult | Promise<Prepared | InputRequiredResult>;
}

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** Default, least and greatest value of each duration and count. */
const RANGES = {
	syncWindowMs: [1_000, 0, 30_000],
	minPollIntervalMs: [1_000, 100, HOUR_MS],
	maxPollIntervalMs: [10_000, 100, HOUR_MS],
	retentionMs: [24 * HOUR_MS, 1_000, YEAR_MS],
	inputWaitMs: [7 * 24 * HOUR_MS, 1_000, YEAR_MS],
	parkAfterMs: [30_000, 0, HOUR_MS],
	cancelGraceMs: [5_000, 0, HOUR_MS],
	maxCrashes: [5, 1, 1_000],
} as const satisfies Readonly<Record<string, readonly [number, number, number]>>;

const RETRY_RANGES = {
	maxAttempts: [1, 1, 1_000],
	backoffMs: [1_000, 0, YEAR_MS],
	maxBackoffMs: [60_000, 0, YEAR_MS],
} as const satisfies Readonly<Record<keyof RetryPolicy, readonly [number, number, number]>>;

/** Options that were checked and filled up. */
export interface CheckedOptions<Args> {
	readonly support: TaskSupport;
	readonly syncWindowMs: number;
	readonly onDisconnect: 'continue' | 'cancel';
	readonly prepare: TaskToolOptions<Args>['prepare'];
	readonly joinsRunning: boolean;
	/** Whether {@link policyFor} wants to know what the tool says of itself. */
	readonly needsHints: boolean;
	readonly handOver: HandOver | undefined;
	/** The policy of one task. */
	policyFor(args: Args, repeatable: boolean): TaskPolicy;
}

/**
 * Checks a tool's options.
 *
 * @throws INVALID_OPTION naming the option and its range.
 */
export function checkOptions<Args>(options: TaskToolOptions<Args>): CheckedOptions<Args> {
	const support = oneOf(options, 'support', ['optional', 'required', 'forbidden']);
	const onCrash = oneOf(options, 'onCrash', ['auto', 'resume', 'fail']);
	const onDisconnect = oneOf(options, 'onDisconnect', ['continue', 'cancel']);
	const { syncWindowMs, ...rest } = inRange(options, RANGES);
	const retry = Object.freeze(inRange(options.retry ?? {}, RETRY_RANGES));
	const policies: Partial<Record<ResumePolicy, TaskPolicy>> = {};
	if (rest.maxPollIntervalMs < rest.minPollIntervalMs)
		throw invalid(
			'maxPollIntervalMs',
			rest.maxPollIntervalMs,
			`at least minPollIntervalMs (${rest.minPollIntervalMs})`,
		);
	const { estimateMs, prepare, handOver } = options;
	if (typeof estimateMs !== 'function') checkEstimate(estimateMs);
	return {
		support,
		syncWindowMs,
		onDisconnect,
		prepare,
		joinsRunning: options.joinsRunning ?? false,
		needsHints: onCrash === 'auto',
		handOver,
		policyFor(args, repeatable) {
			const estimate = typeof estimateMs === 'function' ? checkEstimate(estimateMs(args)) : estimateMs;
			const auto = repeatable ? 'always' : 'journalled';
			const resume = onCrash === 'auto' ? auto : onCrash === 'resume' ? 'always' : 'never';
			const policyOf = (): TaskPolicy =>
				Object.freeze({ ...rest, retry, estimateMs: estimate ?? null, resume });
			// The same object for each call, since a store knows a frozen one again without looking at it.
			return typeof estimateMs === 'function' ? policyOf() : (policies[resume] ??= policyOf());
		},
	};
}

function inRange<R extends Readonly<Record<string, readonly [number, number, number]>>>(
	given: object,
	ranges: R,
): { [K in keyof R]: number } {
	const checked: Record<string, number> = {};
	for (const [name, [fallback, least, greatest]] of Object.entries(ranges)) {
		const value: unknown = Reflect.get(given, name) ?? fallback;
		if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > greatest)
			throw invalid(name, value, `an integer from ${least} to ${greatest}`);
		checked[name] = value;
	}
	return checked as { [K in keyof R]: number };
}

function oneOf<const T extends string>(given: object, name: string, words: readonly [T, ...T[]]): T {
	const value: unknown = Reflect.get(given, name) ?? words[0];
	const word = words.find((candidate) => candidate === value);
	if (word === undefined) throw invalid(name, value, `one of ${words.join(', ')}`);
	return word;
}

function checkEstimate(value: number | undefined): number | undefined {
	if (value !== undefined && !(Number.isFinite(value) && value > 0))
		throw invalid('estimateMs', value, 'a number of milliseconds above 0');
	return value;
}

function invalid(name: string, value: unknown, wanted: string): HoldfastError {
	return new HoldfastError('INVALID_OPTION', `${name} is ${JSON.stringify(value)}; it must be ${wanted}`);
}
