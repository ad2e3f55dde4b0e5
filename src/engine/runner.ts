import { randomUUID } from 'node:crypto';
import type { TaskDetails } from '../backend/record.ts';
import { messageOf } from '../errors.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import { isTerminal } from '../protocol/status.ts';
import type { WireError } from '../protocol/task.ts';
import { every } from './clock.ts';
import { waitDeadlineMs } from './deadlines.ts';
import { type LiveDeps, LiveTask } from './live-task.ts';
import type { EngineTiming, Log } from './options.ts';
import { endEvent, type HandlerEnd, toolError } from './outcome.ts';
import { Run } from './run.ts';
import type { TaskEvent } from './transition.ts';

/** Calls a tool's handler for a task. May not settle after the run was left. */
export type TaskExecutor = (details: TaskDetails, run: Run) => Promise<HandlerEnd>;

/** What a runner needs. */
export interface RunnerDeps extends LiveDeps {
	readonly timing: EngineTiming;
	readonly log: Log;
	readonly execute: TaskExecutor;
	/** How many handlers run at once. */
	readonly concurrency: number;
	/** Which process this is, for people and logs. */
	readonly owner: string;
}

/** A place for one handler. */
export interface Slot {
	/** Fills the place; undefined when the process stops, and a stored task was handed back. */
	begin(details: TaskDetails, stored: boolean): Promise<Running | undefined>;
	/** Gives the place back, if it was not filled. */
	release(): void;
}

/** A handler that runs here, and what it is working on. */
export interface Running {
	readonly task: LiveTask;
	readonly run: Run;
	/** Resolves when the handler's end, or its being left, is recorded. */
	readonly ended: Promise<void>;
}

/** Claims tasks, calls handlers, renews leases, records outcomes. */
export class Runner {
	readonly #deps: RunnerDeps;
	readonly #running = new Map<string, Running>();
	readonly #stops: (() => void)[] = [];
	#wakeTimer: (() => void) | undefined;
	#claiming: Promise<void> | undefined;
	#reserved = 0;
	readonly #looking = new Set<string>();
	#again = false;
	/** Whether the last look for tasks ended because there was no room. */
	#backlog = false;
	#accepting = false;

	constructor(deps: RunnerDeps) {
		this.#deps = deps;
	}

	/** Handlers that run here now. */
	get size(): number {
		return this.#running.size;
	}

	/** A place for one more handler, to be given back in any case; undefined when there is none. */
	reserve(): Slot | undefined {
		if (this.#room() <= 0) return undefined;
		this.#reserved += 1;
		let isHeld = true;
		const release = (): void => {
			if (isHeld) this.#reserved -= 1;
			isHeld = false;
		};
		return {
			release,
			begin: async (details, stored) => {
				release();
				if (this.#accepting || !stored) return this.#begin(details, stored);
				// The process began to stop while the task was being stored: the next one runs it.
				const { taskId, lease } = details.record;
				const { clock, writer } = this.#deps;
				const event = {
					type: 'release',
					token: lease?.token ?? '',
					runAtMs: clock.nowMs(),
					isUnknown: false,
				} as const;
				await writer.apply(taskId, event, details.record);
				return undefined;
			},
		};
	}

	/** The handler that runs a task here. */
	find(taskId: string): Running | undefined {
		return this.#running.get(taskId);
	}

	start(): void {
		const { backend, clock, timing } = this.#deps;
		this.#accepting = true;
		this.#stops.push(
			backend.signals.subscribe((change) => {
				const live = this.#running.get(change.taskId);
				// What this process wrote itself it knows; and what runs here is woken for when its run has ended.
				if (live && change.revision > live.task.record.revision) void this.#look(live);
				else if (!live && change.runnable) this.wake();
			}),
			every(clock, timing.renewMs, () => this.#guard('renewing leases', () => this.#renew())),
			every(clock, timing.sweepMs, async () => this.wake()),
		);
		this.wake();
	}

	/** Looks for runnable tasks soon. */
	wake(): void {
		if (!this.#accepting) return;
		if (this.#claiming) {
			this.#again = true;
			return;
		}
		this.#claiming = this.#guard('claiming tasks', () => this.#claim()).finally(() => {
			this.#claiming = undefined;
			if (!this.#again) return;
			this.#again = false;
			this.wake();
		});
	}

	/** A new lease for this process. */
	newLease(): { owner: string; token: string; expiresAtMs: number } {
		return {
			owner: this.#deps.owner,
			token: randomUUID(),
			expiresAtMs: this.#deps.clock.nowMs() + this.#deps.timing.leaseMs,
		};
	}

	/** Runs the handler of a task that is leased to this process. */
	#begin(details: TaskDetails, stored: boolean): Running {
		const { clock, timing } = this.#deps;
		const task = new LiveTask(details, stored, this.#deps);
		const run = new Run(task, clock, timing.progressMs);
		const ended = this.#drive(task, run).finally(() => {
			this.#running.delete(task.taskId);
			// Only where this made room for something, or handed the task back: a look costs two reads.
			if (this.#backlog || task.record.runAtMs !== null) this.wake();
		});
		const running: Running = { task, run, ended };
		this.#running.set(task.taskId, running);
		task.onChange(() => this.#obey(running));
		return running;
	}

	/**
	 * Claims nothing more, gives running handlers `drainMs` milliseconds to end, then hands back what can be
	 * entered again elsewhere and fails the rest honestly.
	 */
	async stop(drainMs: number): Promise<void> {
		this.#accepting = false;
		this.#wakeTimer?.();
		await this.#claiming;
		const all = [...this.#running.values()];
		// A handler that waits for a person would use up the whole time.
		await Promise.all(all.map(({ run }) => run.parkNow()));
		let cancelDrain = (): void => {};
		const drained = new Promise<void>((resolve) => {
			cancelDrain = this.#deps.clock.after(drainMs, resolve);
		});
		if (all.length > 0 && drainMs > 0)
			await Promise.race([Promise.all(all.map((running) => running.ended)), drained]);
		cancelDrain();
		for (const { run } of this.#running.values()) run.leave('shutdown');
		await Promise.all([...this.#running.values()].map((running) => running.ended));
		for (const stop of this.#stops.splice(0)) stop();
	}

	async #drive(task: LiveTask, run: Run): Promise<void> {
		const { clock, execute, log } = this.#deps;
		const handler = execute(task.details, run).catch(
			(error: unknown): HandlerEnd => ({ kind: 'threw', error }),
		);
		const end = await Promise.race([handler, run.exit]);
		run.finish();
		const { taskId, token } = task;
		try {
			if (end === 'parked' || end === 'lease_lost') return;
			if (end === 'cancelled') await task.apply({ type: 'stopped', token });
			else if (end === 'shutdown') await this.#interrupt(task);
			else await this.#record(task, endEvent(task.record, token, end, clock.nowMs()));
		} catch (error) {
			// The lease lapses and another entry or the sweeper tells the truth.
			log.error({ taskId, error: messageOf(error) }, 'the end of a task could not be recorded');
		}
	}

	/** An end that another entry follows needs the store: nobody would find the task otherwise. */
	async #record(task: LiveTask, event: TaskEvent): Promise<void> {
		if ((event.type === 'retry' || event.type === 'release') && !task.stored) {
			try {
				await task.store();
			} catch (error) {
				await task.apply({ type: 'complete', token: task.token, result: toolError(messageOf(error)) });
				return;
			}
		}
		await task.apply(event);
	}

	async #interrupt(task: LiveTask): Promise<void> {
		// A call that was never stored has no handle that anybody could come back with.
		if (!task.stored) await task.apply({ type: 'fail', token: task.token, error: SHUTDOWN_ERROR });
		else await task.apply({ type: 'interrupt', token: task.token });
	}

	/** Does what a changed record asks of the handler that runs here. */
	#obey(running: Running): void {
		const { task, run } = running;
		const { record } = task;
		if (isTerminal(record.status) || record.lease?.token !== task.token) return run.leave('lease_lost');
		if (record.cancelRequestedAtMs === null || run.signal.aborted) return;
		run.cancel();
		const cancelGrace = this.#deps.clock.after(record.policy.cancelGraceMs, () => {
			this.#deps.log.warn(
				{ taskId: task.taskId, tool: record.tool },
				'abandoned a handler that ignores its signal',
			);
			run.leave('cancelled');
		});
		void running.ended.finally(cancelGrace);
	}

	async #look(running: Running): Promise<void> {
		const { taskId } = running.task;
		// One read is enough for all changes that are told while it waits for its turn.
		if (this.#looking.has(taskId)) return;
		this.#looking.add(taskId);
		await this.#guard('reading a changed task', async () => {
			const record = await running.task.refresh(() => this.#looking.delete(taskId));
			if (!record) running.run.leave('lease_lost');
		});
		this.#looking.delete(taskId);
	}

	async #claim(): Promise<void> {
		const { backend, clock } = this.#deps;
		// What ends at the same time makes room together.
		await Promise.resolve();
		for (;;) {
			const room = this.#room();
			this.#backlog = room <= 0;
			if (room <= 0) return;
			const taskIds = await backend.dispatcher.take(clock.nowMs(), room);
			if (taskIds.length === 0) break;
			let claimed = 0;
			await Promise.all(
				taskIds.map((taskId) =>
					this.#guard('claiming a task', async () => {
						if (await this.#claimOne(taskId)) claimed += 1;
					}),
				),
			);
			if (claimed === 0) break;
		}
		const nextAtMs = await backend.dispatcher.nextRunAtMs();
		this.#wakeTimer?.();
		if (nextAtMs !== null)
			this.#wakeTimer = clock.after(Math.max(1, nextAtMs - clock.nowMs()), () => this.wake());
	}

	async #claimOne(taskId: string): Promise<boolean> {
		const { backend, writer } = this.#deps;
		const slot = this.reserve();
		if (!slot) return false;
		try {
			// Read before it is claimed: whoever loses the race for it has then only read.
			const found = await backend.store.load(taskId);
			if (!found) return false;
			const event = { type: 'claim', lease: this.newLease() } as const;
			const { record, refusal } = await writer.apply(taskId, event, found.record);
			if (refusal !== undefined || !record) return false;
			// Another worker may have had it in between.
			const isCurrent = record.revision === found.record.revision + 1;
			const details = isCurrent ? found : await backend.store.load(taskId);
			if (details) await slot.begin({ ...details, record }, true);
			return true;
		} finally {
			slot.release();
		}
	}

	#room(): number {
		return this.#accepting ? this.#deps.concurrency - this.#running.size - this.#reserved : 0;
	}

	async #renew(): Promise<void> {
		const { backend, clock, timing } = this.#deps;
		const stored = [...this.#running.values()].filter(({ task }) => task.stored);
		if (stored.length === 0) return;
		const leases = stored.map(({ task }) => ({ taskId: task.taskId, token: task.token }));
		const held = new Map(
			(await backend.store.renew(leases, clock.nowMs() + timing.leaseMs)).map((lease) => [
				lease.taskId,
				lease.revision,
			]),
		);
		for (const running of stored) {
			const revision = held.get(running.task.taskId);
			if (revision === undefined) running.run.leave('lease_lost');
			else if (revision > running.task.record.revision) void this.#look(running);
			if (waitDeadlineMs(running.task.record) <= clock.nowMs()) await running.task.apply({ type: 'sweep' });
		}
	}

	async #guard(what: string, work: () => Promise<void>): Promise<void> {
		try {
			await work();
		} catch (error) {
			this.#deps.log.error({ error: messageOf(error) }, `${what} failed; it is tried again`);
		}
	}
}

const SHUTDOWN_ERROR: WireError = {
	code: WIRE_CODES.internalError,
	message: 'The server shut down before the tool ended',
};
