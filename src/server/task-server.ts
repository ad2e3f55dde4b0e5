import type { Backend } from '../backend/backend.ts';
import type { TaskLimits } from '../backend/store.ts';
import { type Clock, systemClock } from '../engine/clock.ts';
import { Engine } from '../engine/engine.ts';
import { DEFAULT_LIMITS, DEFAULT_TIMING, type EngineTiming, type Log, SILENT } from '../engine/options.ts';
import { StoreClock } from '../engine/store-clock.ts';
import { HoldfastError } from '../errors.ts';
import { type PrincipalOf, tokenPrincipal } from './principal.ts';
import { isOwnerGone, processOwner } from '../process-owner.ts';
import { type DirectEntrance, TaskRuntime, type TaskServerFactory } from './runtime.ts';

/** Options of {@link createTaskServer}. */
export interface TaskServerOptions {
	/** Where tasks are kept: `sqlite('tasks.db')` from `holdfast/sqlite`, or another backend. */
	readonly backend: Backend;
	/** Builds the SDK server with its tools. */
	readonly server: TaskServerFactory;
	/** Runs handlers without the SDK's validation. Default: they are entered through a server that `server` built. */
	readonly enter?: DirectEntrance;
	/** Opens what the tools need, before the first task runs; when it throws, `start()` does. */
	readonly open?: () => void | Promise<void>;
	/** Closes it again, once the last task has ended or was handed back; called only after `open` was through. */
	readonly close?: () => void | Promise<void>;
	/** How many handlers run at once in this process; the rest waits in the store. Default 64. */
	readonly concurrency?: number;
	/** How many tasks may exist. Default: 10,000 open for one principal, 1,000,000 in all, 100,000 kept. */
	readonly limits?: Partial<TaskLimits>;
	/** Who a request's tasks belong to. Default: issuer and subject of the token. */
	readonly principal?: PrincipalOf;
	/** The engine's beat. */
	readonly timing?: Partial<EngineTiming>;
	/** Where timers come from, and the time until it was compared with the store's. Default: the machine. */
	readonly clock?: Clock;
	/** Where the server reports to; a pino logger fits. Default: nowhere. */
	readonly log?: Log;
}

/** A server whose tools run as durable tasks. Give it to `listen()` or `serveTasksOverStdio()`. */
export class TaskServer {
	readonly runtime: TaskRuntime;
	readonly log: Log;
	/** Where time comes from. */
	readonly clock: Clock;
	readonly #backend: Backend;
	readonly #open: TaskServerOptions['open'];
	readonly #close: TaskServerOptions['close'];
	readonly #clock: StoreClock;
	readonly #engine: Engine;
	#state: Promise<void> | undefined;
	#stopped: Promise<void> | undefined;
	#isOpen = false;

	constructor(options: TaskServerOptions) {
		const concurrency = options.concurrency ?? 64;
		if (!Number.isInteger(concurrency) || concurrency < 0)
			throw new HoldfastError(
				'INVALID_OPTION',
				`concurrency is ${concurrency}; it must be an integer, 0 or more`,
			);
		this.log = options.log ?? SILENT;
		this.clock = options.clock ?? systemClock;
		this.#backend = options.backend;
		this.#open = options.open;
		this.#close = options.close;
		this.#clock = new StoreClock(this.clock, options.backend.store);
		this.runtime = new TaskRuntime({
			build: options.server,
			enter: options.enter,
			engine: () => this.engine,
			principalOf: options.principal ?? tokenPrincipal,
			ready: () => this.start(),
			onError: (error) => this.log.warn({ error: error.message }, 'the SDK refused something'),
		});
		this.#engine = new Engine({
			backend: options.backend,
			clock: this.#clock,
			limits: { ...DEFAULT_LIMITS, ...options.limits },
			timing: { ...DEFAULT_TIMING, ...options.timing },
			log: this.log,
			execute: this.runtime.execute,
			concurrency,
			owner: processOwner(),
			isOwnerGone,
		});
	}

	/** The engine, from start() until stop() is through. */
	get engine(): Engine {
		if (this.#isOpen) return this.#engine;
		throw this.#stopped
			? new HoldfastError('CLOSED', 'The task server was stopped')
			: new HoldfastError('NOT_STARTED', 'Call start() first');
	}

	/** Handlers that run in this process now. */
	get running(): number {
		return this.#engine.running;
	}

	/** Opens the backend and what the tools need, and begins to run tasks, those of an earlier process included. */
	start(): Promise<void> {
		this.#state ??= (async () => {
			await this.#backend.open();
			await this.#clock.start();
			await this.#open?.();
			this.#isOpen = true;
			this.#engine.start();
		})();
		return this.#state;
	}

	/**
	 * Stops: claims nothing more, gives running handlers `drainMs` milliseconds to end, hands the rest back to be
	 * gone on with by the next process, and closes what the tools needed and the backend.
	 */
	stop(drainMs = 5_000): Promise<void> {
		this.#stopped ??= (async () => {
			// The engine's timers do not keep the process alive, but it must live until its tasks are handed back.
			const alive = setInterval(() => {}, 1_000);
			await this.#state?.catch(() => {});
			const wasOpen = this.#isOpen;
			await this.#engine.stop(drainMs);
			this.#isOpen = false;
			this.#clock.stop();
			await this.runtime.close();
			try {
				if (wasOpen) await this.#close?.();
			} finally {
				await this.#backend.close();
				clearInterval(alive);
			}
		})();
		return this.#stopped;
	}
}

/** Makes a server whose tools run as durable tasks. Nothing happens before `start()`. */
export function createTaskServer(options: TaskServerOptions): TaskServer {
	return new TaskServer(options);
}
