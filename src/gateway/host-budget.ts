import type { HostFacts } from './host-facts.ts';
import { HOSTS, UNKNOWN_HOST, type KnownHost } from './host-table.ts';

/**
 * What an operator sets for a host, by its name in `clientInfo`: milliseconds, null for ever, undefined for what
 * the table says.
 */
export type BudgetOverrides = (hostName: string) => number | null | undefined;

/**
 * How long a host waits for the answer of a plain call, in milliseconds; null is for ever. An operator's word goes
 * before the table, the table before the guess for a host that nobody has measured.
 */
export function budgetMs(
	host: HostFacts,
	hasProgressToken: boolean,
	overrides: BudgetOverrides,
): number | null {
	const override = overrides(host.name);
	if (override !== undefined) return override;
	const known: KnownHost = HOSTS.find(({ clientNames }) => clientNames.includes(host.name)) ?? UNKNOWN_HOST;
	const { withToken, http, stdio } = known.budgetMs;
	if (hasProgressToken && withToken !== undefined) return withToken;
	return host.transport === 'http' ? http : stdio;
}
