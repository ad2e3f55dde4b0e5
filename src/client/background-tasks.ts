import { HoldfastError, messageOf } from '../errors.ts';
import { createHash, randomBytes } from 'node:crypto';
import { type Clock, MAX_TIMER_MS, sleep, systemClock } from './clock.ts';
import type { CallToolParams } from './connection.ts';
import type { Execution } from './execution.ts';
import { readReference } from './reference.ts';
import type { CallToolRequestOptions, CallToolResult } from './sdk.ts';
import type { TaskClient } from './task-client.ts';
import type { TaskState } from './task-state.ts';

/** The end of a call in the background. */
export interface BackgroundEnd {
	readonly handle: string;
	readonly tool: string;
	/**
	 * `completed` has a result, also one that says `isError`; the others have an error. `lost`: the outcome is
	 * unknown.
	 */
	readonly status: 'completed' | 'failed' | 'cancelled' | 'lost';
	readonly result?: CallToolResult;
	readonly error?: unknown;
	/** How long the call took since this process knew of it, in milliseconds. */
	readonly durationMs: number;
	/** Whether somebody waits for it with `await`, and so has been given it. */
	readonly awaited: boolean;
	/** One sentence for the model. */
	readonly text: string;
}

/** What `start` gives back at once. */
export type BackgroundStart =
	| { readonly kind: 'result'; readonly result: CallToolResult }
	| { readonly kind: 'background'; readonly handle: string; readonly text: string };

/** What `await` gives back. */
export type BackgroundAwait =
	| { readonly kind: 'ended'; readonly end: BackgroundEnd }
	| { readonly kind: 'open'; readonly state: TaskState | undefined; readonly text: string };

/** What becomes of open calls: the server is told to end them, or they live on without being watched. */
export type LeavePolicy = 'cancel' | 'detach';

/** Options of {@link BackgroundTasks}. */
export interface BackgroundTasksOptions {
	/**
	 * Called once for each end. When it returns, or its promise resolves, the outcome counts as acknowledged; when
	 * it throws, the outcome stays in the journal.
	 */
	readonly onEnd: (end: BackgroundEnd) => void | Promise<void>;
	/** How many calls may be open at once. Default 100. */
	readonly maxOpen?: number;
	/** How long `start` waits for a fast result before it gives a handle, in milliseconds. Default 1,000. */
	readonly inlineWindowMs?: number;
	/** What `close` does with open calls. Default `cancel`. */
	readonly onClose?: LeavePolicy;
	/** Hears when `onEnd` throws. */
	readonly onProblem?: (error: unknown) => void;
	/** Where time comes from. Default: the machine. */
	readonly clock?: Clock;
}

/** One call in the background. */
interface Entry {
	readonly handle: string;
	readonly tool: string;
	readonly startedAtMs: number;
	readonly plainCall: AbortController;
	readonly ended: PromiseWithResolvers<BackgroundEnd | undefined>;
	execution: Execution | undefined;
	awaiting: number;
}

/** How many ended calls can still be asked for by their handle. */
const MAX_REMEMBERED = 1_000;

/** How long `close` waits for cancelled calls to end. */
const CLOSE_WAIT_MS = 5_000;

/**
 * Tool calls of an agent loop that run on while the loop does other things: starting one costs a model turn, its
 * end is told once, and waiting costs none. One manager serves any number of clients. A call to a server without
 * Tasks is taken to the background too, but lives only as long as its request.
 */
export class BackgroundTasks {
	readonly #options: BackgroundTasksOptions;
	readonly #clock: Clock;
	readonly #open = new Map<string, Entry>();
	readonly #ended = new Map<string, BackgroundEnd>();
	#starting = 0;
	#closed = false;

	constructor(options: BackgroundTasksOptions) {
		this.#options = options;
		this.#clock = options.clock ?? systemClock;
	}

	/** The calls that are open, with where they stand. */
	get open(): readonly {
		readonly handle: string;
		readonly tool: string;
		readonly state: TaskState | undefined;
	}[] {
		return Array.from(this.#open.values(), ({ handle, tool, execution }) => ({
			...{ handle, tool, state: execution?.state },
		}));
	}

	/**
	 * Calls a tool. A call that ends within the inline window gives its result; any other gives a handle, and a text
	 * about it for the model.
	 *
	 * @throws TASK_LIMIT, CLOSED, and for a fast call what `callTool` throws.
	 */
	async start(
		client: TaskClient,
		params: CallToolParams,
		options: CallToolRequestOptions = {},
	): Promise<BackgroundStart> {
		this.#assertOpen();
		const maxOpen = this.#options.maxOpen ?? 100;
		if (this.#open.size + this.#starting >= maxOpen)
			throw new HoldfastError(
				'TASK_LIMIT',
				`${maxOpen} calls are open, which is the limit; wait for one to end`,
			);
		this.#starting += 1;
		try {
			return await this.#begin(client, params, options);
		} finally {
			this.#starting -= 1;
		}
	}

	/**
	 * Comes back to every task of a client whose outcome was not delivered, after a restart. Handles are the same
	 * as before. Not held to the limit: what is there must be picked up. With `unacknowledged`, ends that were told
	 * but not acknowledged before the crash are told again; only for a host whose journal no other process uses.
	 */
	async resumeAll(
		client: TaskClient,
		options: { readonly unacknowledged?: boolean } = {},
	): Promise<readonly string[]> {
		this.#assertOpen();
		const again = options.unacknowledged === true;
		const told = again ? (await client.openTasks()).filter(({ delivered }) => delivered) : [];
		const executions = [
			...(await Promise.all(told.map(({ reference }) => client.resume(reference)))),
			...(await client.resumeAll()),
		];
		return executions
			.filter(({ reference }) => reference !== null && !this.#knows(handleOf(reference)))
			.map(
				(execution) => this.#keep(execution.tool, Promise.resolve(execution), { execution, again }).handle,
			);
	}

	/**
	 * Waits for a call, at most `maxWaitMs` milliseconds, or until `signal` fires, which leaves the call alone. What
	 * has ended can be read again and again, for as long as it is among the last 1,000.
	 *
	 * @throws TASK_NOT_FOUND for a handle that this manager does not know, or has detached.
	 */
	async await(handle: string, maxWaitMs: number, signal?: AbortSignal): Promise<BackgroundAwait> {
		const known = this.#ended.get(handle);
		if (known) return { kind: 'ended', end: known };
		const entry = this.#entry(handle);
		const late = new AbortController();
		entry.awaiting += 1;
		try {
			const end = await Promise.race([
				entry.ended.promise.then((ended) => {
					if (!ended) throw unknownHandle(handle);
					return ended;
				}),
				sleep(this.#clock, maxWaitMs, signal ? AbortSignal.any([signal, late.signal]) : late.signal).then(
					() => undefined,
				),
			]);
			if (end) return { kind: 'ended', end };
			const state = entry.execution?.state;
			return { kind: 'open', state, text: openText(entry, state) };
		} finally {
			entry.awaiting -= 1;
			late.abort();
		}
	}

	/** Tells the server to end a call; its end is told as usual. @throws TASK_NOT_FOUND */
	async cancel(handle: string): Promise<void> {
		await this.#leave(this.#entry(handle), 'cancel');
	}

	/**
	 * Stops watching a call, which lives on: there will be no event. Returns the reference with which a client
	 * resumes it; null where there is none. @throws TASK_NOT_FOUND
	 */
	detach(handle: string): string | null {
		const entry = this.#entry(handle);
		void this.#leave(entry, 'detach');
		return entry.execution?.reference ?? null;
	}

	/**
	 * Leaves every open call by `policy`, by default the option's, when its agent loop ends. Cancelled calls are
	 * waited for at most 5 s, then detached. Nothing is started afterwards.
	 */
	async close(policy: LeavePolicy = this.#options.onClose ?? 'cancel'): Promise<void> {
		this.#closed = true;
		const entries = [...this.#open.values()];
		const late = new AbortController();
		const told = Promise.all(
			entries.map((entry) =>
				this.#leave(entry, policy)
					.then(() => entry.ended.promise)
					.catch((error: unknown) => this.#tell(error)),
			),
		);
		await Promise.race([told, sleep(this.#clock, CLOSE_WAIT_MS, late.signal)]);
		late.abort();
		for (const entry of entries) if (this.#open.has(entry.handle)) void this.#leave(entry, 'detach');
	}

	async #begin(
		client: TaskClient,
		params: CallToolParams,
		options: CallToolRequestOptions,
	): Promise<BackgroundStart> {
		const plainCall = new AbortController();
		const signal = options.signal ? AbortSignal.any([options.signal, plainCall.signal]) : plainCall.signal;
		const window = new AbortController();
		const windowOver = sleep(this.#clock, this.#options.inlineWindowMs ?? 1_000, window.signal).then(
			() => undefined,
		);
		// A call that a server without Tasks holds may take as long as it takes.
		const starting = client.startTool(params, { timeout: MAX_TIMER_MS, ...options, signal });
		try {
			const execution = await Promise.race([starting, windowOver]);
			if (execution) {
				// Not by result(), which would deliver what may yet have to be told by an event.
				if (await Promise.race([execution.settled(), windowOver])) {
					const result = await execution.result().finally(() => execution.acknowledge());
					return { kind: 'result', result };
				}
			}
			const reference = execution?.reference ?? undefined;
			// A call that joined an open task, by its idempotency key.
			const open = reference === undefined ? undefined : this.#open.get(handleOf(reference));
			if (open) execution?.detach();
			const entry = open ?? this.#keep(params.name, starting, { execution, plainCall });
			return { kind: 'background', handle: entry.handle, text: startText(entry) };
		} finally {
			window.abort();
		}
	}

	#keep(
		tool: string,
		starting: Promise<Execution>,
		{
			execution,
			plainCall = new AbortController(),
			again = false,
		}: {
			readonly execution: Execution | undefined;
			readonly plainCall?: AbortController;
			readonly again?: boolean;
		},
	): Entry {
		const entry: Entry = {
			handle: execution?.reference ? handleOf(execution.reference) : toHandle(randomBytes(16)),
			...{ tool, plainCall, execution, startedAtMs: this.#clock.nowMs(), awaiting: 0 },
			ended: Promise.withResolvers(),
		};
		this.#open.set(entry.handle, entry);
		void this.#watch(entry, starting, again);
		return entry;
	}

	async #watch(entry: Entry, starting: Promise<Execution>, again: boolean): Promise<void> {
		let end: BackgroundEnd | undefined;
		try {
			entry.execution = await starting;
			// Undefined: another process of this host was first.
			if ((await entry.execution.deliverOnce()) || again)
				end = this.#end(entry, 'completed', { result: await entry.execution.result() });
		} catch (error) {
			if (this.#open.get(entry.handle) === entry) end = this.#end(entry, statusAfter(entry), { error });
		}
		this.#open.delete(entry.handle);
		if (end) this.#remember(end);
		entry.ended.resolve(end);
		if (!end) return;
		try {
			await this.#options.onEnd(end);
			await entry.execution?.acknowledge();
		} catch (error) {
			this.#tell(error);
		}
	}

	#end(
		entry: Entry,
		status: BackgroundEnd['status'],
		how: { readonly result: CallToolResult } | { readonly error: unknown },
	): BackgroundEnd {
		const { handle, tool } = entry;
		const durationMs = this.#clock.nowMs() - entry.startedAtMs;
		const why = 'error' in how ? `: ${messageOf(how.error)}` : how.result.isError ? ' with an error' : '';
		const text = `The background call ${handle} of the tool "${tool}" ${STATUS_WORDS[status]}${why}.`;
		return { handle, tool, status, durationMs, awaited: entry.awaiting > 0, text, ...how };
	}

	#remember(end: BackgroundEnd): void {
		this.#ended.set(end.handle, end);
		for (const handle of this.#ended.keys()) {
			if (this.#ended.size <= MAX_REMEMBERED) break;
			this.#ended.delete(handle);
		}
	}

	async #leave(entry: Entry, policy: LeavePolicy): Promise<void> {
		if (policy === 'cancel') {
			if (entry.execution) await entry.execution.cancel();
			else entry.plainCall.abort('The call was cancelled');
			return;
		}
		this.#open.delete(entry.handle);
		entry.ended.resolve(undefined);
		entry.execution?.detach();
	}

	#knows(handle: string): boolean {
		return this.#open.has(handle) || this.#ended.has(handle);
	}

	#entry(handle: string): Entry {
		const entry = this.#open.get(handle);
		if (!entry) throw unknownHandle(handle);
		return entry;
	}

	#assertOpen(): void {
		if (this.#closed) throw new HoldfastError('CLOSED', 'This background manager is closed');
	}

	#tell(error: unknown): void {
		this.#options.onProblem?.(error);
	}
}

const STATUS_WORDS = {
	completed: 'has ended',
	failed: 'failed',
	cancelled: 'was cancelled',
	lost: 'was lost; its outcome is unknown, so check before calling it again',
} as const satisfies Readonly<Record<BackgroundEnd['status'], string>>;

/** A short word for a model, the same for the same task in every process. */
function handleOf(reference: string): string {
	const { server, taskId } = readReference(reference);
	return toHandle(JSON.stringify([server, taskId]));
}

function toHandle(what: string | Buffer): string {
	return `task_${createHash('sha256').update(what).digest('hex').slice(0, 12)}`;
}

function statusAfter({ execution, plainCall }: Entry): BackgroundEnd['status'] {
	const kind = execution?.outcome?.kind;
	if (kind === 'cancelled' || kind === 'lost') return kind;
	return !execution && plainCall.signal.aborted ? 'cancelled' : 'failed';
}

function startText({ handle, tool, execution }: Entry): string {
	const said = execution?.state?.statusMessage;
	return (
		`The tool "${tool}" goes on in the background as ${handle}${said ? ` (${said})` : ''}. ` +
		'Its result will be given to you when it ends; go on with other work meanwhile, and do not call it again.'
	);
}

function openText({ handle, tool }: Entry, state: TaskState | undefined): string {
	const said = state?.statusMessage ? `: ${state.statusMessage}` : '';
	const lost = state?.reachable === false ? ' Its server cannot be reached at the moment.' : '';
	// The model cannot answer, and should not try.
	const asks =
		state?.status === 'input_required' && 'waiting for an answer to a question, which the host is asked';
	return `The background call ${handle} of the tool "${tool}" is ${asks || 'still working'}${said}.${lost}`;
}

function unknownHandle(handle: string): Error {
	return new HoldfastError('TASK_NOT_FOUND', `There is no open background call ${handle.slice(0, 60)}`);
}
