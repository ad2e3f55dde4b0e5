import { HoldfastError } from '../errors.ts';
import type { InputRequest, InputResponse } from '../protocol/task.ts';
import type { Random } from './cadence.ts';
import type { CallRoute } from './call-route.ts';
import type { Clock } from './clock.ts';
import type { Journal } from './journal/journal.ts';

/** What a handler of questions is told beside the question. */
export interface InputContext {
	/** The question's key, unique within the task (T31). */
	readonly key: string;
	readonly taskId: string;
	readonly tool: string;
	/** Fires when nobody wants the answer any more: the task ended, or the question was answered elsewhere. */
	readonly signal: AbortSignal;
}

/**
 * Answers a question of a task, as the standalone request would be answered.
 *
 * @throws AnswerLater to put the question off.
 */
export type InputHandler = (request: InputRequest, context: InputContext) => Promise<InputResponse>;

/** Options of a `TaskClient`. Every duration is in milliseconds. */
export interface TaskClientOptions {
	/** Where tasks are remembered. Default: in memory, so that none is found again after a crash. */
	readonly journal?: Journal;
	/**
	 * The server's name in the journal and in references, for hosts with several servers; it must stay the same
	 * over restarts. Default: the name that the server gives itself.
	 */
	readonly server?: string;
	/**
	 * Answers the questions of tasks. Default: the handlers that were registered on the SDK client for
	 * `elicitation/create`, `sampling/createMessage` and `roots/list`.
	 */
	readonly onInput?: InputHandler;
	/** Fills fields that an accepted form left out with the defaults of its schema. Default true. */
	readonly applyDefaults?: boolean;
	/** Asks the server to push changes where it offers that. Default true. */
	readonly listen?: boolean;
	/** How often a task is polled while its changes are pushed. Default 60,000; 1,000 to one hour. */
	readonly listenBackstopMs?: number;
	/** How long one `tasks/*` request may take; no limit on the task. Default 30,000; 100 to 10 minutes. */
	readonly rpcTimeoutMs?: number;
	/**
	 * How long a server of 2025-11-25 is asked to keep a task, from its beginning; many forget it then, ended or not.
	 * The server may decide otherwise. Default one day; 1 minute to 24 days.
	 */
	readonly legacyTtlMs?: number;
	/** How many `tasks/*` requests are in flight at once. Default 16; 1 to 1,000. */
	readonly maxConcurrentRequests?: number;
	/** How long the outcome of an ended task stays in the journal without being acknowledged. Default 7 days. */
	readonly retentionMs?: number;
	/**
	 * Hears what goes wrong without ending a task: outages, broken notifications, a handler that threw, a journal
	 * that could not be written.
	 */
	readonly onProblem?: (error: unknown, taskId: string | undefined) => void;
	/** Hears how each call is made, before it is: where it may become a task, where not, and why. For a log. */
	readonly onRoute?: (route: CallRoute) => void;
	/** Where time comes from. Default: the machine. */
	readonly clock?: Clock;
	/** Where chance comes from. Default: `Math.random`. */
	readonly random?: Random;
}

const DAY_MS = 86_400_000;

/** Default, least and greatest value. */
const RANGES = {
	listenBackstopMs: [60_000, 1_000, 3_600_000],
	rpcTimeoutMs: [30_000, 100, 600_000],
	// Node's timers, which such servers set, end the task at once beyond 24.8 days.
	legacyTtlMs: [DAY_MS, 60_000, 24 * DAY_MS],
	maxConcurrentRequests: [16, 1, 1_000],
	retentionMs: [7 * DAY_MS, 1_000, 3_650 * DAY_MS],
} as const satisfies Readonly<Record<string, readonly [number, number, number]>>;

/** Options whose numbers were checked and filled up. */
export type CheckedClientOptions = TaskClientOptions & {
	readonly [K in keyof typeof RANGES | 'applyDefaults']-?: NonNullable<TaskClientOptions[K]>;
};

/**
 * Checks a client's options.
 *
 * @throws INVALID_OPTION naming the option and its range.
 */
export function checkClientOptions(options: TaskClientOptions): CheckedClientOptions {
	const numbers = {
		...{ listenBackstopMs: 0, rpcTimeoutMs: 0, legacyTtlMs: 0 },
		...{ maxConcurrentRequests: 0, retentionMs: 0 },
	};
	for (const name of Object.keys(RANGES) as (keyof typeof RANGES)[]) {
		const [fallback, least, greatest] = RANGES[name];
		const value = options[name] ?? fallback;
		if (!Number.isInteger(value) || value < least || value > greatest)
			throw new HoldfastError(
				'INVALID_OPTION',
				`${name} is ${value}; it must be an integer from ${least} to ${greatest}`,
			);
		numbers[name] = value;
	}
	return { ...options, ...numbers, applyDefaults: options.applyDefaults ?? true };
}
