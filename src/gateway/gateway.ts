import type { Backend } from '../backend/backend.ts';
import { type Clock, systemClock } from '../client/clock.ts';
import { type Log, SILENT } from '../engine/options.ts';
import { createTaskServer, type TaskServer } from '../server/task-server.ts';
import { Catalogue, type CatalogueStore } from './catalogue.ts';
import { type HostBudgets, UNKNOWN_HOST_BUDGET_MS } from './host-budget.ts';
import { buildHostServer } from './host-server.ts';
import { Upstream } from './upstream.ts';
import type { UpstreamOptions } from './upstream-options.ts';

/** Options of {@link Gateway}. */
export interface GatewayOptions {
	/** Where tasks are kept. */
	readonly backend: Backend;
	readonly upstreams: readonly UpstreamOptions[];
	/** Where the lists of the upstreams are kept between two starts. */
	readonly catalogue: CatalogueStore;
	/** How long hosts wait. Default: 45 s for every host. */
	readonly budgets?: HostBudgets;
	/** Default: nowhere. */
	readonly log?: Log;
	/** Sets the pace at which folded families are checked. Default: the machine's. */
	readonly clock?: Clock;
}

/** Any host in front, any server behind: calls that take long become tasks, or are held, or handed over. */
export class Gateway {
	/** Give it to `listen()` or `serveTasksOverStdio()`. */
	readonly server: TaskServer;
	readonly upstreams: readonly Upstream[];

	constructor(options: GatewayOptions) {
		const log = options.log ?? SILENT;
		this.upstreams = options.upstreams.map((upstream) => new Upstream(upstream, log));
		const catalogue = new Catalogue(this.upstreams, {
			store: options.catalogue,
			log,
			onChange: () => {},
		});
		const deps = {
			catalogue,
			budgets: options.budgets ?? (() => UNKNOWN_HOST_BUDGET_MS),
			name: 'holdfast-gateway',
			version: '1',
			nowMs: () => systemClock.nowMs(),
			clock: options.clock ?? systemClock,
			log,
		};
		this.server = createTaskServer({
			backend: options.backend,
			server: (tasks) => buildHostServer(deps, tasks),
			log,
		});
	}

	/** Ends the connections to all upstreams, and their processes. Stop the server first. */
	async close(): Promise<void> {
		await Promise.all(this.upstreams.map((upstream) => upstream.close()));
	}
}
