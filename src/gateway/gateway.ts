import type { Backend } from '../backend/backend.ts';
import { type Clock, systemClock } from '../engine/clock.ts';
import { type Log, SILENT } from '../engine/options.ts';
import type { ServerEventBus } from '../server/sdk.ts';
import { createTaskServer, type TaskServer } from '../server/task-server.ts';
import { Catalogue, type CatalogueStore } from './catalogue.ts';
import type { BudgetOverrides } from './host-budget.ts';
import { HostNews } from './host-news.ts';
import { buildHostServer, enterCall } from './host-server.ts';
import { Upstream } from './upstream.ts';
import { WaitingHosts } from './waiting-hosts.ts';
import type { UpstreamOptions } from './upstream-options.ts';

/**
 * How many calls are under way at once, waiting ones included. They cost memory only, since others do the work; each
 * server has its own bound, so that one that is slow takes no places from another.
 */
const MAX_CALLS = 10_000;

/** Options of {@link Gateway}. */
export interface GatewayOptions {
	/** Where tasks are kept. */
	readonly backend: Backend;
	readonly upstreams: readonly UpstreamOptions[];
	/** Where the lists of the upstreams are kept between two starts. */
	readonly catalogue: CatalogueStore;
	/** How long hosts wait, where the operator knows better than the table. */
	readonly budgets: BudgetOverrides;
	/** Where time comes from for tasks and for how long hosts are held. Default: the machine. */
	readonly clock?: Clock;
	/** Default: nowhere. */
	readonly log?: Log;
}

/** Any host in front, any server behind: calls that take long become tasks, or are held, or handed over. */
export class Gateway {
	/** Give it to `listen()` or `serveTasksOverStdio()`. */
	readonly server: TaskServer;
	readonly upstreams: readonly Upstream[];
	/** Carries list changes; give it to `listen()`. */
	readonly bus: ServerEventBus;

	constructor(options: GatewayOptions) {
		const log = options.log ?? SILENT;
		const clock = options.clock ?? systemClock;
		const news = new HostNews();
		this.bus = news.bus;
		this.upstreams = options.upstreams.map(
			(upstream) =>
				new Upstream(upstream, {
					log,
					onListChanged: (changed, name) => catalogue.changed(changed, name),
					onResourceUpdated: (uri) => news.resourceUpdated(uri),
					onLogged: (params) => news.logged(params),
				}),
		);
		const catalogue = new Catalogue(this.upstreams, {
			store: options.catalogue,
			log,
			onChange: (names) => news.listsChanged(names),
		});
		const deps = {
			catalogue,
			upstreams: this.upstreams,
			news,
			waiting: new WaitingHosts(),
			budgets: options.budgets,
			name: 'holdfast-gateway',
			version: '1',
			nowMs: () => this.server.engine.nowMs(),
			clock,
			log,
		};
		this.server = createTaskServer({
			backend: options.backend,
			enter: (tool, args, task) => enterCall(deps, tool, args, task),
			server: (tasks, context) => buildHostServer(deps, tasks, context),
			log,
			clock,
			concurrency: MAX_CALLS,
		});
	}

	/** Ends the connections to all upstreams, and their processes. Stop the server first. */
	async close(): Promise<void> {
		await Promise.all(this.upstreams.map((upstream) => upstream.close()));
	}
}
