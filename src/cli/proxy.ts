import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { budgetsOf, gatewayConfigSchema, upstreamsOf } from '../gateway/config.ts';
import { fileCatalogue } from '../gateway/file-catalogue.ts';
import { Gateway } from '../gateway/gateway.ts';
import { serveTasksOverStdio } from '../server/stdio.ts';
import { createLog, type LogOptions } from './log.ts';
import { serverNameOf, type ServerTarget } from './server-target.ts';
import { stateFolder } from './state-folder.ts';
import { chosenStore } from './store.ts';
import { serveUntilEnd } from './until-end.ts';

/** Options of `holdfast proxy`. */
export interface ProxyOptions extends LogOptions {
	/** How long a host waits for a plain call, whatever the table says; in milliseconds. */
	readonly budgetMs?: number;
	/** Sent with every request to a server over HTTP. */
	readonly header?: Readonly<Record<string, string>>;
	/** SQLite file that keeps the tasks. Default: one for each server, in the folder for state. */
	readonly db?: string;
}

/** Stands between one host on stdin and stdout and one server, until the host has gone. */
export async function proxy(target: ServerTarget, options: ProxyOptions): Promise<number> {
	const log = createLog(options);
	const state = join(stateFolder(), 'proxy', fileNameOf(target));
	const config = gatewayConfigSchema.parse({
		store: options.db ?? join(state, 'tasks.db'),
		stateFolder: state,
		upstreams: {
			server:
				target.kind === 'http'
					? { url: target.url, headers: options.header ?? {} }
					: { command: target.command, cwd: target.cwd },
		},
	});
	const upstreams = upstreamsOf(config, process.env, process.cwd());
	const { budgetMs } = options;
	mkdirSync(state, { recursive: true, mode: 0o700 });
	const { backend, place } = await chosenStore({ db: config.store });
	const gateway = new Gateway({
		backend,
		upstreams,
		catalogue: fileCatalogue(state, upstreams),
		budgets: budgetMs === undefined ? budgetsOf(config) : () => budgetMs,
		log,
	});
	return serveUntilEnd(
		async () => {
			const serving = serveTasksOverStdio(gateway.server);
			log.info({ store: place }, 'serving on stdio');
			return {
				closed: serving.closed,
				close: async (limitMs: number) => {
					await serving.close(limitMs);
					await gateway.close();
				},
			};
		},
		{ log, drainMs: 5_000, running: () => gateway.server.running },
	);
}

/**
 * A file name that is the same for the same server on another day, and another one for each other server: a task must
 * not be taken up with a server that it is not of, be the query the only difference.
 */
function fileNameOf(target: ServerTarget): string {
	if (target.kind === 'stdio') return serverNameOf(target);
	const digest = createHash('sha256').update(target.url).digest('hex').slice(0, 16);
	return `${new URL(target.url).host.replace(/[^\w.-]+/g, '_')}-${digest}`;
}
