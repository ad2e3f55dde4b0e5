import { HoldfastError } from '../errors.ts';
import { createHash } from 'node:crypto';
import type { JsonObject } from '../protocol/json.ts';
import { TASKS_PROTOCOL_VERSION } from '../protocol/names.ts';
import type { InputRequest, InputResponse, Task } from '../protocol/task.ts';
import type { Random } from './cadence.ts';
import type { CallRoute } from './call-route.ts';
import { type Clock, systemClock } from './clock.ts';
import { type CallAnswer, type CallToolParams, Connection } from './connection.ts';
import { Driver } from './driver.ts';
import type { DriverDeps } from './driver-deps.ts';
import { Execution } from './execution.ts';
import { withDefaults } from './input-desk.ts';
import type { Journal, JournalEntry, TaskKey } from './journal/journal.ts';
import { memoryJournal } from './journal/memory-journal.ts';
import type { QuestionHandler } from './legacy-questions.ts';
import { TaskListener } from './listener.ts';
import type { TaskOutcome } from './outcome.ts';
import { Questions } from './questions.ts';
import { taskIdOf } from './read-task.ts';
import { readReference, type TaskPointer, toReference } from './reference.ts';
import { RequestGate } from './request-gate.ts';
import type { CallToolRequestOptions, CallToolResult, Client } from './sdk.ts';
import { StatusProgress } from './status-progress.ts';
import { checkClientOptions, type TaskClientOptions } from './task-client-options.ts';

/** A task that the journal knows and nobody has acknowledged. */
export interface OpenTask {
	readonly reference: string;
	readonly tool: string;
	/** When this client first saw the task, in milliseconds since the epoch. */
	readonly firstSeenAtMs: number;
	/** SHA-256 of the canonical JSON of the call's arguments, in hex. */
	readonly argumentsDigest: string;
	/** How the task ended; null while it lives, as far as the journal knows. */
	readonly outcome: TaskOutcome | null;
	/** Whether the outcome was handed to the application. */
	readonly delivered: boolean;
}

/** How often the journal is cleared of what was kept long enough. */
const EXPIRE_EVERY_MS = 600_000;

/** An execution's hold on a driver that others may share. */
interface Shared {
	readonly driver: Driver;
	holders: number;
}

/**
 * Makes tool calls over a connected SDK client that may take as long as they take. A server of 2026-07-28 may
 * answer a call with a task, which is then driven to its end; a server of 2025-11-25 is asked for a task where it and
 * the tool allow it; calls to others are held until their result is there.
 * The SDK client stays the host's: it may be used beside this, closed, and connected anew.
 */
export class TaskClient {
	/** The SDK client that was given. */
	readonly client: Client;
	readonly #options: ReturnType<typeof checkClientOptions>;
	readonly #clock: Clock;
	readonly #journal: Journal;
	readonly #connection: Connection;
	readonly #listener: TaskListener | undefined;
	readonly #driverDeps: DriverDeps;
	readonly #questions: Questions;
	readonly #drivers = new Map<string, Shared>();
	/** Remembered, because the SDK forgets it with the connection. */
	#server: string | undefined;
	#expiredAtMs = -Infinity;
	#closed = false;

	/** @throws INVALID_OPTION */
	constructor(client: Client, options: TaskClientOptions = {}) {
		this.client = client;
		this.#options = checkClientOptions(options);
		this.#server = options.server ?? client.getServerVersion()?.name;
		const {
			rpcTimeoutMs,
			legacyTtlMs,
			maxConcurrentRequests: maxConcurrent,
			listenBackstopMs,
		} = this.#options;
		const clock = options.clock ?? systemClock;
		const random: Random = options.random ?? Math.random;
		this.#clock = clock;
		this.#journal = options.journal ?? memoryJournal();
		this.#questions = new Questions({
			...{ clock, journal: this.#journal },
			onProblem: (error, taskId) => this.#tell(error, taskId),
		});
		const onNotification = (params: JsonObject): void => {
			const taskId = taskIdOf(params);
			if (taskId !== undefined) this.#drivers.get(taskId)?.driver.notified(params);
		};
		const gate = new RequestGate({ clock, random, maxConcurrent });
		const onConnected = (): void => gate.retryNow();
		const onRoute = (route: CallRoute): void => options.onRoute?.(route);
		// Undefined for a task that this client does not drive: its questions are the host's own.
		const onQuestion: QuestionHandler = (taskId, key, request) =>
			this.#drivers.get(taskId)?.driver.answer(key, request);
		const connection = new Connection(client, {
			...{ clock, rpcTimeoutMs, legacyTtlMs, onNotification, onConnected, onRoute },
			onQuestion: options.onInput && onQuestion,
		});
		this.#connection = connection;
		const onChange = (taskIds: readonly string[]): void => {
			for (const taskId of taskIds) this.#drivers.get(taskId)?.driver.listenChanged();
		};
		const listens = options.listen ?? true;
		this.#listener = listens ? new TaskListener({ connection, clock, random, onChange }) : undefined;
		this.#driverDeps = {
			...{ connection, clock, random, listenBackstopMs, listener: this.#listener },
			gate,
			onProblem: (error, taskId) => options.onProblem?.(error, taskId),
		};
	}

	/**
	 * Which server the tasks of this client live on: the option, or the name that the server gave itself.
	 *
	 * @throws NOT_STARTED when neither is known, because the client was never connected.
	 */
	get server(): string {
		this.#server ??= this.client.getServerVersion()?.name ?? (this.client.transport ? '' : undefined);
		if (this.#server === undefined)
			throw new HoldfastError('NOT_STARTED', 'Connect the SDK client first, or give the option "server"');
		return this.#server;
	}

	/** How many tasks are being observed. */
	get watching(): number {
		return this.#drivers.size;
	}

	/**
	 * Calls a tool with the contract of the SDK's `callTool`, and simply takes long when the call becomes a task.
	 * `timeout` limits each request, never the task; `signal` ends the wait and tells the server to cancel the
	 * task; `onprogress` hears what the task says about itself. The returned result counts as acknowledged. When the process crashes before, the task is in the
	 * journal; see {@link resumeAll}.
	 *
	 * @throws what `callTool` of the SDK throws, and what {@link Execution.result} throws; OUTCOME_UNKNOWN when the
	 * connection to an older server broke during a call that was no task.
	 */
	async callTool(params: CallToolParams, options?: CallToolRequestOptions): Promise<CallToolResult> {
		this.#assertOpen();
		const answer = await this.#connection.call(params, options);
		if (answer.kind === 'result') return answer.result;
		const execution = await this.#begin(answer, params, options);
		const { signal, onprogress } = options ?? {};
		const returned = new AbortController();
		// On 2025-11-25 the progress of the task comes under the token of the call.
		if (onprogress && answer.protocolVersion === TASKS_PROTOCOL_VERSION)
			void this.#relay(execution, new StatusProgress(onprogress), returned.signal);
		try {
			return await execution.result({ ...(signal && { signal }), onAbort: 'cancel' });
		} finally {
			returned.abort();
			if (execution.outcome) await execution.acknowledge().catch((error: unknown) => this.#tell(error));
		}
	}

	/**
	 * Calls a tool and resolves as soon as the server has answered: with the result of a fast call, or with a
	 * task, which is then in the journal. `signal` and `timeout` are about that answer only.
	 *
	 * @throws what `callTool` of the SDK throws; INVALID_RESPONSE, OUTCOME_UNKNOWN
	 */
	async startTool(params: CallToolParams, options?: CallToolRequestOptions): Promise<Execution> {
		this.#assertOpen();
		const answer = await this.#connection.call(params, options);
		if (answer.kind === 'task') return this.#begin(answer, params, options);
		const { result } = answer;
		return new Execution({
			...{ driver: undefined, reference: null, tool: params.name },
			outcome: { kind: 'completed', result: result as unknown as JsonObject },
			// The SDK has validated it already.
			conclude: async () => result,
			deliver: async () => true,
			acknowledge: async () => {},
			release: () => {},
			onProblem: (error) => this.#tell(error),
		});
	}

	/**
	 * Comes back to a task, also to one that an earlier process started or that has ended since.
	 *
	 * @throws INVALID_REFERENCE
	 */
	async resume(reference: string): Promise<Execution> {
		this.#assertOpen();
		const pointer = readReference(reference);
		if (pointer.server !== this.server)
			throw new HoldfastError(
				'INVALID_REFERENCE',
				`The task lives on the server "${pointer.server}", and this client is of "${this.server}"`,
			);
		const entry = await this.#journal.find(pointer);
		if (!entry) await this.#journal.add({ ...pointer, argumentsDigest: '' });
		return this.#watch(pointer, entry, undefined);
	}

	/** The tasks of this server that nobody has acknowledged, oldest first: open ones, and ended ones. */
	async openTasks(): Promise<readonly OpenTask[]> {
		await this.#expire();
		const entries = await this.#journal.list(this.server);
		return entries.map((entry) => ({
			reference: toReference(entry),
			tool: entry.tool,
			firstSeenAtMs: entry.firstSeenAtMs,
			argumentsDigest: entry.argumentsDigest,
			outcome: entry.outcome,
			delivered: entry.delivered,
		}));
	}

	/**
	 * Comes back to every task whose outcome was not delivered: call it once after a restart, when the client is
	 * connected and the host's handlers for questions are in place.
	 */
	async resumeAll(): Promise<readonly Execution[]> {
		this.#assertOpen();
		await this.#expire();
		const entries = await this.#journal.list(this.server);
		return entries.filter(({ delivered }) => !delivered).map((entry) => this.#watch(entry, entry, undefined));
	}

	/** Asks every question again that its handler put off by throwing `AnswerLater`. */
	askAgain(): void {
		for (const { driver } of this.#drivers.values()) driver.askAgain();
	}

	/**
	 * Says that a task's outcome has arrived where it should; the journal forgets the task.
	 *
	 * @throws INVALID_REFERENCE
	 */
	async acknowledge(reference: string): Promise<void> {
		await this.#journal.remove(readReference(reference));
	}

	/**
	 * Stops observing; every task lives on and stays in the journal. Neither the SDK client nor the journal is
	 * closed. Calling it twice does nothing.
	 */
	close(): void {
		this.#closed = true;
		this.#listener?.close();
		for (const { driver } of this.#drivers.values()) driver.stop();
		this.#drivers.clear();
		this.#connection.close();
	}

	async #begin(
		{ task, protocolVersion, endProgress }: CallAnswer & { readonly kind: 'task' },
		params: CallToolParams,
		options: CallToolRequestOptions | undefined,
	): Promise<Execution> {
		const pointer: TaskPointer = {
			...{ server: this.server, taskId: task.taskId, tool: params.name },
			...{ protocolVersion, firstSeenAtMs: this.#clock.nowMs(), ttlMs: task.ttlMs },
		};
		try {
			await this.#journal.add({ ...pointer, argumentsDigest: digest(params.arguments ?? {}) });
		} catch (error) {
			// The task runs all the same, and a caller that waits can still have its result.
			this.#tell(error, task.taskId);
		}
		const execution = this.#watch(pointer, undefined, task, params, options);
		void execution.settled().then(endProgress, endProgress);
		return execution;
	}

	#watch(
		pointer: TaskPointer,
		entry: JournalEntry | undefined,
		created: Task | undefined,
		params: CallToolParams = { name: pointer.tool },
		options?: CallToolRequestOptions,
	): Execution {
		const outcome = entry?.outcome ?? undefined;
		const shared = outcome ? undefined : this.#share(pointer, entry, created);
		let released = false;
		return new Execution({
			driver: shared?.driver,
			outcome,
			reference: toReference(pointer),
			tool: pointer.tool,
			conclude: (result) => this.#connection.conclude(params, result, options),
			deliver: () => this.#journal.deliver(pointer),
			acknowledge: () => this.#journal.remove(pointer),
			release: () => {
				if (!shared || released) return;
				released = true;
				shared.holders -= 1;
				if (shared.holders === 0) this.#stop(pointer.taskId, shared);
			},
			onProblem: (error) => this.#tell(error, pointer.taskId),
		});
	}

	/** The one driver of a task, started with its first holder. */
	#share(pointer: TaskPointer, entry: JournalEntry | undefined, created: Task | undefined): Shared {
		const { taskId } = pointer;
		let shared = this.#drivers.get(taskId);
		if (!shared) {
			const key: TaskKey = { server: pointer.server, taskId };
			const driver = new Driver(this.#driverDeps, {
				...{ pointer, created, answers: entry?.answers ?? {} },
				ask: (inputKey, request, signal) =>
					this.#questions.ask(key, inputKey, signal, () => this.#ask(pointer, inputKey, request, signal)),
				keepAnswer: (inputKey, response) => this.#questions.keep(key, inputKey, response),
				answersSent: (inputKeys) => this.#journal.sent(key, inputKeys),
				keepOutcome: (outcome) => this.#journal.end(key, outcome, this.#clock.nowMs()),
			});
			shared = { driver, holders: 0 };
			this.#drivers.set(taskId, shared);
			const mine = shared;
			void driver.ended.then(() => this.#stop(taskId, mine));
			driver.start();
		}
		shared.holders += 1;
		return shared;
	}

	async #relay(execution: Execution, progress: StatusProgress, returned: AbortSignal): Promise<void> {
		try {
			for await (const state of execution.updates()) {
				if (returned.aborted) return;
				progress.tell(state);
			}
		} catch (error) {
			this.#tell(error, execution.state?.taskId);
		}
	}

	#stop(taskId: string, shared: Shared): void {
		if (this.#drivers.get(taskId) === shared) this.#drivers.delete(taskId);
		shared.driver.stop();
	}

	async #ask(
		pointer: TaskPointer,
		key: string,
		request: InputRequest,
		signal: AbortSignal,
	): Promise<InputResponse> {
		const { onInput } = this.#options;
		const context = { key, taskId: pointer.taskId, tool: pointer.tool, signal };
		const response = onInput
			? await onInput(request, context)
			: await this.#connection.ask(key, request, signal);
		return this.#options.applyDefaults ? withDefaults(request, response) : response;
	}

	async #expire(): Promise<void> {
		const nowMs = this.#clock.nowMs();
		if (nowMs - this.#expiredAtMs < EXPIRE_EVERY_MS) return;
		this.#expiredAtMs = nowMs;
		await this.#journal.expire(nowMs - this.#options.retentionMs);
	}

	#assertOpen(): void {
		if (this.#closed) throw new HoldfastError('CLOSED', 'This task client is closed');
	}

	#tell(error: unknown, taskId?: string): void {
		this.#options.onProblem?.(error, taskId);
	}
}

/** SHA-256 of a JSON value with the keys of its objects in order, in hex. */
function digest(value: unknown): string {
	const text = JSON.stringify(value, (_key, part: unknown) =>
		typeof part === 'object' && part !== null && !Array.isArray(part)
			? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
			: part,
	);
	return createHash('sha256').update(text).digest('hex');
}
