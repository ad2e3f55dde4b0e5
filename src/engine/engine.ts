import { randomBytes } from 'node:crypto';
import type { Backend } from '../backend/backend.ts';
import type { TaskDetails, TaskPolicy, TaskRecord } from '../backend/record.ts';
import type { CreateOutcome, TaskLimits, TaskPage, TaskQuery } from '../backend/store.ts';
import { HoldfastError, messageOf } from '../errors.ts';
import type { InputCapabilities } from '../protocol/capabilities.ts';
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import { MAX_TASK_ID_LENGTH } from '../protocol/names.ts';
import type { InputResponses } from '../protocol/task.ts';
import { Call } from './call.ts';
import { type Clock, every } from './clock.ts';
import { dueAtMs, isExpired } from './deadlines.ts';
import { limitError } from './live-task.ts';
import type { EngineTiming, Log } from './options.ts';
import { argumentsDigest, EqualCalls } from './equal-calls.ts';
import { type Running, Runner, type TaskExecutor } from './runner.ts';
import { Watch } from './watch.ts';
import { TaskWriter } from './writer.ts';

/** What an engine needs. */
export interface EngineDeps {
	readonly backend: Backend;
	readonly clock: Clock;
	readonly limits: TaskLimits;
	readonly timing: EngineTiming;
	readonly log: Log;
	readonly execute: TaskExecutor;
	/** How many handlers run at once in this process. */
	readonly concurrency: number;
	readonly owner: string;
	/** Whether the process of a lease is known to be dead; false in doubt. */
	readonly isOwnerGone: (owner: string) => boolean;
}

/** A validated `tools/call`. */
export interface TaskCall {
	readonly tool: string;
	readonly arguments: JsonObject;
	readonly prepared: JsonValue;
	readonly principal: string;
	readonly policy: TaskPolicy;
	readonly inputCapabilities: InputCapabilities;
	readonly idempotencyKey: string | null;
	readonly trace: Readonly<Record<string, string>>;
	/** Whether the task must be stored before its handler is entered. */
	readonly keepFirst: boolean;
	/** Whether the call joins an equal one of the same principal that runs in this process. */
	readonly joinsRunning: boolean;
	/** Enters the handler this time, where the caller has it at hand; null is the executor of every other entry. */
	readonly enter: TaskExecutor | null;
}

const SWEEP_BATCH = 200;

/** How many leases are looked at when an engine starts; the owners of further ones are noticed as they lapse. */
const LEASES_AT_START = 10_000;

/** The verbs on tasks: call, get, update, cancel; and the sweeping of what time has overtaken. */
export class Engine {
	readonly watch: Watch;
	readonly #deps: EngineDeps;
	readonly #writer: TaskWriter;
	readonly #runner: Runner;
	readonly #equals = new EqualCalls();
	#stopSweep: (() => void) | undefined;

	constructor(deps: EngineDeps) {
		this.#deps = deps;
		this.watch = new Watch(deps.backend.signals, deps.clock);
		this.#writer = new TaskWriter(deps.backend, deps.clock);
		this.#runner = new Runner({
			...deps,
			writer: this.#writer,
			leaseMs: deps.timing.leaseMs,
		});
	}

	/** Handlers that run here now. */
	get running(): number {
		return this.#runner.size;
	}

	/** Milliseconds since the epoch on the clock that decides. */
	nowMs(): number {
		return this.#deps.clock.nowMs();
	}

	/** Begins to claim, run and sweep tasks. The backend must be open. */
	start(): void {
		const { clock, timing, log } = this.#deps;
		this.watch.open();
		this.#runner.start();
		const sweep = (): Promise<void> =>
			this.sweep().catch((error: unknown) => log.error({ error: messageOf(error) }, 'sweeping failed'));
		void this.#takeFromDead()
			.catch((error: unknown) => log.error({ error: messageOf(error) }, 'looking for dead workers failed'))
			.then(sweep);
		this.#stopSweep = every(clock, timing.sweepMs, sweep);
	}

	/** Hands back what runs here, after giving it `drainMs` milliseconds to end. */
	async stop(drainMs: number): Promise<void> {
		this.#stopSweep?.();
		await this.#runner.stop(drainMs);
		this.watch.close();
	}

	/**
	 * Begins a call, or joins the task that the same idempotency key began, or an equal call that runs.
	 *
	 * @throws IDEMPOTENCY_CONFLICT, TASK_LIMIT, STORE_UNUSABLE
	 */
	async call(call: TaskCall): Promise<Call> {
		const equal = call.joinsRunning && call.idempotencyKey === null ? this.#equals.keyOf(call) : undefined;
		const running = equal === undefined ? undefined : this.#equals.find(equal);
		if (running) return this.#callTo(running.task.record, running, true);
		const slot = this.#runner.reserve();
		const record = this.#newRecord(call, slot !== undefined);
		const details = { record, arguments: call.arguments, prepared: call.prepared, steps: [] };
		try {
			if (slot && !call.keepFirst && call.idempotencyKey === null)
				return this.#callTo(record, this.#noted(equal, await slot.begin(details, false, call.enter)));
			const outcome = await this.#create(details);
			if (outcome.kind === 'exists') return this.#join(outcome.record, record);
			if (outcome.kind === 'limit') throw limitError(outcome);
			this.#writer.tell(record);
			return this.#callTo(record, this.#noted(equal, await slot?.begin(details, true, call.enter)));
		} finally {
			slot?.release();
		}
	}

	#noted(equal: string | undefined, running: Running | undefined): Running | undefined {
		if (equal !== undefined && running) this.#equals.add(equal, running);
		return running;
	}

	/** A call that waits for a task which is there already, run here or elsewhere. */
	rejoin(record: TaskRecord): Call {
		return this.#callTo(record, this.#runner.find(record.taskId), true);
	}

	/**
	 * A task of this principal (T20).
	 *
	 * @throws TASK_NOT_FOUND for unknown, expired and foreign ids alike (T23).
	 */
	async get(taskId: string, principal: string): Promise<TaskRecord> {
		return this.#withLatestNote(await this.#stored(taskId, principal));
	}

	/**
	 * Takes answers (T30 to T32). Holds when it resolves, also after a crash.
	 *
	 * @throws TASK_NOT_FOUND
	 */
	async update(taskId: string, principal: string, responses: InputResponses): Promise<void> {
		await this.#writer.apply(taskId, { type: 'answer', responses }, await this.#stored(taskId, principal));
	}

	/**
	 * Asks for the end of a task (T40). Does nothing on one that has ended.
	 *
	 * @throws TASK_NOT_FOUND
	 */
	async cancel(taskId: string, principal: string): Promise<void> {
		await this.#writer.apply(taskId, { type: 'cancel' }, await this.#stored(taskId, principal));
	}

	/** One page of tasks, newest first. */
	list(query: TaskQuery): Promise<TaskPage> {
		return this.#deps.backend.store.list(query);
	}

	/** Lapses dead leases, fails missed questions, extends lives, forgets what was kept long enough. */
	async sweep(): Promise<void> {
		const { store } = this.#deps.backend;
		for (;;) {
			const taskIds = await store.due(this.nowMs(), SWEEP_BATCH);
			let changed = 0;
			for (const taskId of taskIds) if (await this.#sweepOne(taskId)) changed += 1;
			if (taskIds.length < SWEEP_BATCH || changed === 0) return;
		}
	}

	/** Ends the leases of processes that are known to be dead, without waiting for them to lapse. */
	async #takeFromDead(): Promise<void> {
		const { backend, timing, isOwnerGone } = this.#deps;
		// Whatever is leased is due when its lease lapses.
		const taskIds = await backend.store.due(this.nowMs() + timing.leaseMs, LEASES_AT_START);
		for (const taskId of taskIds) {
			const record = await backend.store.get(taskId);
			if (record?.lease && isOwnerGone(record.lease.owner))
				await this.#writer.apply(taskId, { type: 'died', token: record.lease.token }, record);
		}
	}

	/** A task of this principal as the store has it, which is what a change begins with. */
	async #stored(taskId: string, principal: string): Promise<TaskRecord> {
		const record =
			taskId.length <= MAX_TASK_ID_LENGTH ? await this.#deps.backend.store.get(taskId) : undefined;
		if (!record || record.principal !== principal || isExpired(record, this.nowMs()))
			throw new HoldfastError('TASK_NOT_FOUND', 'Task not found');
		return record;
	}

	/** With the handler's last words, where it runs here and they are not stored yet. */
	#withLatestNote(record: TaskRecord): TaskRecord {
		const running = this.#runner.find(record.taskId);
		const statusMessage = running?.run.unstoredText;
		return running &&
			statusMessage !== undefined &&
			record.status === 'working' &&
			record.lease?.token === running.task.token
			? { ...record, progress: running.run.note, statusMessage, lastUpdatedAtMs: this.nowMs() }
			: record;
	}

	/** Whether the task is not overdue any more. */
	async #sweepOne(taskId: string): Promise<boolean> {
		const { store } = this.#deps.backend;
		const record = await store.get(taskId);
		if (!record) return true;
		if (isExpired(record, this.nowMs())) return store.remove(taskId, record.revision);
		// What runs here renews its own lease, however late the timers of a busy process are.
		if (this.#runner.find(taskId)) return false;
		return (await this.#writer.apply(taskId, { type: 'sweep' }, record)).refusal === undefined;
	}

	/** Creates; a task with the same idempotency key whose retention is over makes room first. */
	async #create(details: TaskDetails): Promise<CreateOutcome> {
		const { store } = this.#deps.backend;
		const outcome = await store.create(details, this.#deps.limits);
		if (outcome.kind !== 'exists' || !isExpired(outcome.record, this.nowMs())) return outcome;
		await store.remove(outcome.record.taskId, outcome.record.revision);
		return store.create(details, this.#deps.limits);
	}

	#callTo(record: TaskRecord, running: ReturnType<Runner['find']>, joined = false): Call {
		const read = (): Promise<TaskRecord> => this.get(record.taskId, record.principal);
		return new Call(record.taskId, joined, running, { read, watch: this.watch, clock: this.#deps.clock });
	}

	#join(existing: TaskRecord, wanted: TaskRecord): Call {
		if (existing.tool !== wanted.tool || existing.argumentsDigest !== wanted.argumentsDigest)
			throw new HoldfastError(
				'IDEMPOTENCY_CONFLICT',
				`The idempotency key was already used for ${
					existing.tool === wanted.tool ? 'other arguments' : `the tool "${existing.tool}"`
				}. Use a new key for a new call.`,
			);
		return this.rejoin(existing);
	}

	#newRecord(call: TaskCall, leased: boolean): TaskRecord {
		const nowMs = this.nowMs();
		const record: TaskRecord = {
			taskId: newTaskId(),
			revision: 1,
			tool: call.tool,
			principal: call.principal,
			idempotencyKey: call.idempotencyKey,
			argumentsDigest: call.idempotencyKey === null ? '' : argumentsDigest(call.arguments),
			status: 'working',
			statusMessage: leased ? `Running ${call.tool}` : `Waiting for a free worker to run ${call.tool}`,
			progress: null,
			createdAtMs: nowMs,
			lastUpdatedAtMs: nowMs,
			ttlMs: call.policy.retentionMs,
			policy: call.policy,
			inputCapabilities: call.inputCapabilities,
			openInputs: {},
			inputResponses: {},
			journalled: false,
			attempt: leased ? 1 : 0,
			retries: 0,
			crashes: 0,
			releasedSinceMs: null,
			waitedMs: 0,
			waitingSinceMs: null,
			lease: leased ? this.#runner.newLease() : null,
			runAtMs: leased ? null : nowMs,
			dueAtMs: 0,
			cancelRequestedAtMs: null,
			result: null,
			error: null,
			trace: call.trace,
		};
		return { ...record, dueAtMs: dueAtMs(record) };
	}
}

/** Random bytes of a task id. */
const ID_BYTES = 20;

/** Fetched for many ids at once, since each fetch asks the system. */
let randomPool = Buffer.alloc(0);
let randomUsed = 0;

function newTaskId(): string {
	if (randomUsed === randomPool.length) {
		randomPool = randomBytes(ID_BYTES * 128);
		randomUsed = 0;
	}
	randomUsed += ID_BYTES;
	return randomPool.toString('hex', randomUsed - ID_BYTES, randomUsed);
}
