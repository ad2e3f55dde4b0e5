import type { HostFacts } from './host-facts.ts';

/** How long hosts wait for the answer of a plain call, in milliseconds. */
export type HostBudgets = (host: HostFacts, hasProgressToken: boolean) => number;

/** The budget for a host that nobody has measured. */
export const UNKNOWN_HOST_BUDGET_MS = 45_000;
