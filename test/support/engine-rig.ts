/** Engines on a shared memory backend and a clock that stands still: what the tests of the engine stand on. */
import type { Backend } from '../../src/backend/backend.ts';
import { memory } from '../../src/backend/memory/index.ts';
import type { TaskDetails, TaskPolicy, TaskRecord } from '../../src/backend/record.ts';
import type { TaskLimits, TaskStore } from '../../src/backend/store.ts';
import type { Call } from '../../src/engine/call.ts';
import { Engine, type TaskCall } from '../../src/engine/engine.ts';
import { DEFAULT_LIMITS, DEFAULT_TIMING, type EngineTiming, SILENT } from '../../src/engine/options.ts';
import type { HandlerEnd } from '../../src/engine/outcome.ts';
import type { TaskContext } from '../../src/engine/task-context.ts';
import type { InputCapabilities } from '../../src/protocol/capabilities.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { FakeClock, settle } from '../../src/testing/fake-clock.ts';

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

export const ANY_INPUT: InputCapabilities = { form: true, url: true, sampling: true, roots: true };

/** The policy of a tool that says nothing, as the server's defaults make it. */
export const POLICY: TaskPolicy = {
	resume: 'journalled',
	retry: { maxAttempts: 1, backoffMs: SECOND_MS, maxBackoffMs: MINUTE_MS },
	estimateMs: null,
	minPollIntervalMs: SECOND_MS,
	maxPollIntervalMs: 10 * SECOND_MS,
	retentionMs: DAY_MS,
	inputWaitMs: 7 * DAY_MS,
	parkAfterMs: 30 * SECOND_MS,
	cancelGraceMs: 5 * SECOND_MS,
	maxCrashes: 5,
};

/** A tool as the engine sees it. */
export type RigHandler = (task: TaskContext, details: TaskDetails) => Promise<JsonObject> | JsonObject;
export type RigTools = Readonly<Record<string, RigHandler>>;

export interface RigOptions {
	readonly clock?: FakeClock;
	readonly backend?: Backend;
	readonly tools: RigTools;
	readonly concurrency?: number;
	readonly limits?: Partial<TaskLimits>;
	readonly timing?: Partial<EngineTiming>;
	readonly owner?: string;
	/** Which other owners are known to be dead. Default: none. */
	readonly isOwnerGone?: (owner: string) => boolean;
}

export interface Rig {
	readonly clock: FakeClock;
	readonly backend: Backend;
	readonly engine: Engine;
	/** Begins a call; its task is stored before the handler is entered, unless told otherwise. */
	call(tool: string, overrides?: Partial<TaskCall>): Promise<Call>;
	/** Begins a stored call and answers its id, after everything that follows at once has happened. */
	begin(tool: string, policy?: Partial<TaskPolicy>, overrides?: Partial<TaskCall>): Promise<string>;
	/** The stored record, whoever it belongs to. */
	stored(taskId: string): Promise<TaskRecord>;
	/** Another engine on the same backend and clock. */
	second(options?: Partial<RigOptions>): Rig;
	/** The process dies: nothing it does reaches the backend any more. */
	crash(): void;
}

/** Starts an engine. Engines that a test does not stop simply stand still with their clock. */
export function startRig(options: RigOptions): Rig {
	const clock = options.clock ?? new FakeClock();
	const backend = options.backend ?? memory({ time: clock });
	const cut = cuttable(backend);
	const engine = new Engine({
		backend: cut.backend,
		clock,
		limits: { ...DEFAULT_LIMITS, ...options.limits },
		timing: { ...DEFAULT_TIMING, ...options.timing },
		log: SILENT,
		execute: executor(options.tools),
		concurrency: options.concurrency ?? 64,
		owner: options.owner ?? 'rig',
		isOwnerGone: options.isOwnerGone ?? (() => false),
	});
	engine.start();
	const call = (tool: string, overrides: Partial<TaskCall> = {}): Promise<Call> =>
		engine.call({
			tool,
			arguments: {},
			prepared: null,
			principal: 'alice',
			policy: POLICY,
			inputCapabilities: ANY_INPUT,
			idempotencyKey: null,
			trace: {},
			keepFirst: true,
			joinsRunning: false,
			enter: null,
			...overrides,
		});
	return {
		clock,
		backend,
		engine,
		call,
		begin: async (tool, policy = {}, overrides = {}) => {
			const { taskId } = await call(tool, { policy: { ...POLICY, ...policy }, ...overrides });
			await settle();
			return taskId;
		},
		stored: async (taskId) => {
			const record = await backend.store.get(taskId);
			if (!record) throw new Error(`no task ${taskId}`);
			return record;
		},
		second: (others = {}) => startRig({ ...options, clock, backend, ...others }),
		crash: cut.off,
	};
}

function executor(tools: RigTools): (details: TaskDetails, task: TaskContext) => Promise<HandlerEnd> {
	return async (details, task) => {
		const tool = tools[details.record.tool];
		if (!tool) return { kind: 'unknown_tool' };
		try {
			return { kind: 'returned', result: await tool(task, details) };
		} catch (error) {
			return { kind: 'threw', error };
		}
	};
}

/** A view of a backend that can be cut off: from then on no call ever comes back, as after SIGKILL. */
function cuttable(backend: Backend): { readonly backend: Backend; readonly off: () => void } {
	let isOff = false;
	const never = new Promise<never>(() => {});
	const guard = <T extends object>(target: T): T =>
		new Proxy(target, {
			get: (whole, name) => {
				const value: unknown = Reflect.get(whole, name, whole);
				if (typeof value !== 'function') return value;
				return (...args: unknown[]) => (isOff ? never : (Reflect.apply(value, whole, args) as unknown));
			},
		});
	return {
		backend: {
			...backend,
			store: guard(backend.store),
			dispatcher: guard(backend.dispatcher),
			signals: {
				publish: (change) => {
					if (!isOff) backend.signals.publish(change);
				},
				subscribe: (listener) => backend.signals.subscribe((change) => isOff || listener(change)),
			},
		},
		off: () => {
			isOff = true;
		},
	};
}

/** A backend whose store counts and may be interfered with. */
export function withStore(backend: Backend, wrap: (store: TaskStore) => Partial<TaskStore>): Backend {
	const { store } = backend;
	const changed = wrap(store);
	return {
		...backend,
		store: new Proxy(store, {
			get: (whole, name) => {
				const own: unknown = Reflect.get(changed, name);
				if (typeof own === 'function') return own;
				const value: unknown = Reflect.get(whole, name, whole);
				return typeof value === 'function' ? (value.bind(whole) as unknown) : value;
			},
		}),
	};
}

/** A beat that lets days pass in a test: what has to happen in time must not depend on the beat. */
export const SLOW_BEAT: Partial<EngineTiming> = {
	leaseMs: 12 * HOUR_MS,
	renewMs: 3 * HOUR_MS,
	sweepMs: 6 * HOUR_MS,
};

/** A long time passes without a beat, as where a machine slept; then a few beats. */
export async function later(rig: Rig, durationMs: number): Promise<void> {
	rig.clock.jump(durationMs - 3 * SECOND_MS);
	await rig.clock.advance(3 * SECOND_MS);
}

/** Something that a test opens by hand. */
export interface Gate<T = void> {
	readonly opened: Promise<T>;
	open(value: T): void;
}

export function gate<T = void>(): Gate<T> {
	const { promise, resolve } = Promise.withResolvers<T>();
	return { opened: promise, open: resolve };
}

/** A tool result of one text. */
export function text(words: string): JsonObject {
	return { content: [{ type: 'text', text: words }] };
}

/** A yes-or-no question. */
export function question(message: string): {
	readonly mode: 'form';
	readonly message: string;
	readonly requestedSchema: JsonObject;
} {
	return {
		mode: 'form',
		message,
		requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } },
	};
}

/** The answer of somebody who agrees. */
export const YES: JsonObject = { action: 'accept', content: { ok: true } };
