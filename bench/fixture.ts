import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Backend, MACHINE_TIME } from '../src/backend/backend.ts';
import { Database } from '../src/backend/sqlite/database.ts';
import { SqliteDispatcher } from '../src/backend/sqlite/dispatcher.ts';
import { SqliteSignals } from '../src/backend/sqlite/signals.ts';
import { SqliteStore } from '../src/backend/sqlite/store.ts';
import type { Durability, TaskLimits } from '../src/backend/store.ts';
import { systemClock } from '../src/engine/clock.ts';
import { Engine, type TaskCall } from '../src/engine/engine.ts';
import { DEFAULT_TIMING, type Log } from '../src/engine/options.ts';
import type { TaskExecutor } from '../src/engine/runner.ts';
import { NO_INPUT } from '../src/protocol/capabilities.ts';
import type { JsonObject } from '../src/protocol/json.ts';
import { checkOptions } from '../src/server/tool-options.ts';

/** No measurement is to run into a limit. */
export const LIMITS: TaskLimits = {
	maxOpenPerPrincipal: 10_000_000,
	maxOpen: 10_000_000,
	maxKeptPerPrincipal: 10_000_000,
};

/** What every trivial handler returns. */
export const RESULT: JsonObject = {
	content: [{ type: 'text', text: 'deployed main to production in 42 s' }],
};

/** Says what goes wrong, so that a broken measurement shows it. */
export const LOG: Log = {
	info: () => {},
	warn: (facts, message) => console.error(message, facts),
	error: (facts, message) => console.error(message, facts),
};

/** Runs `work` with a folder of its own that is gone afterwards. */
export async function withFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
	const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
	try {
		return await work(folder);
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}

/** A store file that waits for the disk never, or with every commit, whatever is asked for. */
export class FixedDatabase extends Database {
	readonly #durability: Durability;

	constructor(file: string, durability: Durability) {
		super(file);
		this.#durability = durability;
	}

	override write<Result>(_durability: Durability, work: () => Result): Result {
		return super.write(this.#durability, work);
	}
}

/** The backend that `sqlite()` makes, on a database of one's own. */
export function backendOn(database: Database): Backend {
	const signals = new SqliteSignals(database, 25);
	return {
		name: 'sqlite',
		store: new SqliteStore(database, MACHINE_TIME),
		dispatcher: new SqliteDispatcher(database),
		signals,
		open: async () => {
			await database.open();
			signals.start();
		},
		close: async () => {
			signals.stop();
			database.close();
		},
	};
}

/** An engine with a backend that is open and a handler in place of an SDK server. */
export async function startEngine(
	backend: Backend,
	concurrency: number,
	execute: TaskExecutor,
): Promise<Engine> {
	const engine = new Engine({
		backend,
		clock: systemClock,
		limits: LIMITS,
		timing: DEFAULT_TIMING,
		log: LOG,
		execute,
		concurrency,
		owner: 'bench:1',
		isOwnerGone: () => false,
	});
	await backend.open();
	engine.start();
	return engine;
}

const options = checkOptions<unknown>({});

/** A call whose task is stored before its handler is entered. */
export function callOf(tool: string, number: number): TaskCall {
	return {
		tool,
		arguments: { branch: 'main', environment: 'production', build: number },
		prepared: null,
		principal: 'anonymous',
		policy: options.policyFor({}, false),
		inputCapabilities: { ...NO_INPUT, form: true },
		idempotencyKey: null,
		trace: {},
		keepFirst: true,
		joinsRunning: false,
		enter: null,
	};
}

/** Tells of the end of tasks. */
export class Ends {
	readonly #ended = new Set<string>();
	readonly #waiting = new Map<string, () => void>();
	readonly stop: () => void;

	constructor(backend: Backend, lastRevision: number) {
		this.stop = backend.signals.subscribe(({ taskId, revision }) => {
			if (revision < lastRevision) return;
			const wake = this.#waiting.get(taskId);
			if (!wake) this.#ended.add(taskId);
			else {
				this.#waiting.delete(taskId);
				wake();
			}
		});
	}

	/** Resolves when a task has ended. */
	async of(taskId: string): Promise<void> {
		if (this.#ended.delete(taskId)) return;
		await new Promise<void>((resolve) => this.#waiting.set(taskId, resolve));
	}
}

/** Runs `work` for 0 to `count` - 1, at most `width` at once. */
export async function inParallel(
	count: number,
	width: number,
	work: (number: number) => Promise<void>,
): Promise<void> {
	let next = 0;
	const lane = async (): Promise<void> => {
		while (next < count) await work(next++);
	};
	await Promise.all(Array.from({ length: width }, lane));
}
