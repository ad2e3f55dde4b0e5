import { messageOf } from '../../errors.ts';
import { decodeText } from '../columns.ts';
import type { Signals, TaskChange } from '../signals.ts';
import type { Database } from './database.ts';
import { CHANGES_OF_OTHERS, DATA_VERSION, LAST_CHANGE } from './statements.ts';

/** After how many looks without a change the interval is doubled. */
const PATIENCE = 40;

/** How many times its normal length the interval gets at most. */
const SLOWEST = 10;

/** Sets timers. Replaced in tests. */
export interface Timer {
	/** Calls back once, without keeping the process alive. The returned function prevents it. */
	after(delayMs: number, action: () => void): () => void;
}

const MACHINE_TIMER: Timer = {
	after(delayMs, action) {
		const timeout = setTimeout(action, delayMs).unref();
		return () => clearTimeout(timeout);
	},
};

/**
 * Tells the listeners of this process at once, and looks now and then for changes of other processes: SQLite
 * counts the commits of other connections (`data_version`), and reading that number costs next to nothing.
 */
export class SqliteSignals implements Signals {
	readonly #database: Database;
	readonly #watchIntervalMs: number;
	readonly #timer: Timer;
	readonly #listeners = new Set<(change: TaskChange) => void>();
	#isStarted = false;
	#cancelTimer: (() => void) | undefined;
	#dataVersion = 0;
	#cursor = 0;
	#idle = 0;

	constructor(database: Database, watchIntervalMs: number, timer: Timer = MACHINE_TIMER) {
		this.#database = database;
		this.#watchIntervalMs = watchIntervalMs;
		this.#timer = timer;
	}

	publish(change: TaskChange): void {
		// Where something happens, an answer from another process is likely to follow.
		if (this.#idle >= PATIENCE) this.#schedule();
		this.#idle = 0;
		this.#tell(change);
	}

	subscribe(listener: (change: TaskChange) => void): () => void {
		// A function of its own, so that a listener which is given twice can be taken away once.
		const own = (change: TaskChange) => listener(change);
		this.#listeners.add(own);
		if (this.#listeners.size === 1) this.#watch();
		return () => {
			this.#listeners.delete(own);
			if (this.#listeners.size === 0) this.#unwatch();
		};
	}

	/** Called when the database is open. */
	start(): void {
		this.#isStarted = true;
		if (this.#listeners.size > 0) this.#watch();
	}

	/** Called before the database is closed. */
	stop(): void {
		this.#isStarted = false;
		this.#unwatch();
	}

	/** Looks for changes of other processes now. Called by the timer. */
	poll(): void {
		const version = this.#readDataVersion();
		if (version === this.#dataVersion) {
			this.#idle++;
			return;
		}
		this.#idle = 0;
		const { changes, last } = this.#changesOfOthers();
		// Only now: a read that failed is tried again.
		this.#dataVersion = version;
		this.#cursor = last;
		for (const change of changes) this.#tell(change);
	}

	/** How long to wait until the next look, in milliseconds. */
	get delayMs(): number {
		return this.#watchIntervalMs * Math.min(SLOWEST, 2 ** Math.floor(this.#idle / PATIENCE));
	}

	#watch(): void {
		if (!this.#isStarted) return;
		this.#dataVersion = this.#readDataVersion();
		this.#cursor = this.#lastChange();
		this.#idle = 0;
		this.#schedule();
	}

	#unwatch(): void {
		this.#cancelTimer?.();
		this.#cancelTimer = undefined;
	}

	#schedule(): void {
		if (!this.#isStarted || this.#listeners.size === 0) return;
		this.#cancelTimer?.();
		this.#cancelTimer = this.#timer.after(this.delayMs, () => {
			try {
				this.poll();
			} catch {
				// The store's own methods say what is wrong with the file; a look that failed is only late.
			}
			this.#schedule();
		});
	}

	#readDataVersion(): number {
		return this.#database.read(
			() => this.#database.statement<{ data_version: number }>(DATA_VERSION).get()?.data_version ?? 0,
		);
	}

	#lastChange(): number {
		return this.#database.read(() => this.#database.statement<{ seq: number }>(LAST_CHANGE).get()?.seq ?? 0);
	}

	#changesOfOthers(): { changes: TaskChange[]; last: number } {
		return this.#database.snapshot(() => {
			const last = this.#lastChange();
			const changes = this.#database
				.statement<{ task_id: string; revision: number; runnable: number }>(CHANGES_OF_OTHERS)
				.all(this.#cursor, last, this.#database.origin)
				.map(({ task_id, revision, runnable }) => ({
					taskId: decodeText(task_id),
					revision,
					runnable: runnable === 1,
				}));
			return { changes, last };
		});
	}

	#tell(change: TaskChange): void {
		for (const listener of this.#listeners) {
			try {
				listener(change);
			} catch (error) {
				// The change is stored: whoever published it, and the other listeners, have no part in this.
				process.emitWarning(`a listener for task changes failed: ${messageOf(error)}`, 'HoldfastWarning');
			}
		}
	}
}
