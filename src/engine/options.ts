import type { TaskLimits } from '../backend/store.ts';

/** What the engine reports; pino's loggers fit. */
export interface Log {
	info(facts: Readonly<Record<string, unknown>>, message: string): void;
	warn(facts: Readonly<Record<string, unknown>>, message: string): void;
	error(facts: Readonly<Record<string, unknown>>, message: string): void;
}

/** Says nothing. */
export const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

/** How the engine beats. Every value in milliseconds. */
export interface EngineTiming {
	/** How long a worker may be silent before its tasks are taken from it. Default 8,000. */
	readonly leaseMs: number;
	/** How often a worker says that it lives. Default 2,000; well below `leaseMs`. */
	readonly renewMs: number;
	/** How often overdue tasks are looked for. Default 1,000. */
	readonly sweepMs: number;
	/** Least time between two stored progress notes of one task. Default 500. */
	readonly progressMs: number;
}

/** The default beat: a dead worker is noticed within 9 s. */
export const DEFAULT_TIMING: EngineTiming = {
	leaseMs: 8_000,
	renewMs: 2_000,
	sweepMs: 1_000,
	progressMs: 500,
};

/** The default limits. */
export const DEFAULT_LIMITS: TaskLimits = {
	maxOpenPerPrincipal: 10_000,
	maxOpen: 1_000_000,
	maxKeptPerPrincipal: 100_000,
};
