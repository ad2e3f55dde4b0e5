import type { Logger } from 'pino';
import { isHoldfastError, messageOf } from '../errors.ts';
import { createTaskServer, type TaskServer } from '../server/task-server.ts';
import type { StoreOptions } from './arguments.ts';
import { Failure, placeOf, UsageError } from './failure.ts';
import { loadServerModule } from './load-module.ts';
import { createLog, type LogOptions } from './log.ts';
import { chosenStore } from './store.ts';
import { type Serving, serveUntilEnd } from './until-end.ts';

/** Options of `holdfast serve`. */
export interface ServeOptions extends LogOptions, StoreOptions {
	readonly stdio?: boolean;
	/** Whether this process answers requests, runs tools, or does both. */
	readonly role: 'all' | 'requests' | 'worker';
	readonly port: number;
	readonly host: string;
	readonly path: string;
	readonly concurrency?: number;
	readonly allowUnauthenticated?: boolean;
	/** How long running tools may take to end when the process is asked to. */
	readonly drainMs: number;
}

/** Serves the tasks of a module until a signal or, on stdio, until the client has gone. */
export async function serve(module: string, options: ServeOptions): Promise<number> {
	const { role } = options;
	if (!options.path.startsWith('/')) throw new UsageError(`--path ${options.path}: it must begin with /`);
	if (role === 'worker' && options.stdio === true)
		throw new UsageError('--role worker serves nobody, so that it cannot be given with --stdio');
	if (role === 'requests' && (options.concurrency ?? 0) > 0)
		throw new UsageError('--role requests runs no tools, so that it cannot be given with --concurrency');
	if (role === 'worker' && options.concurrency === 0)
		throw new UsageError('--role worker with --concurrency 0 would do nothing');
	const log = createLog(options);
	// All that can be loaded at once is: a host that starts the server waits for its first answer.
	const [parts, { backend, place }] = await Promise.all([
		loadServerModule(module),
		chosenStore(options),
		options.stdio === true ? import('../server/stdio.ts') : import('../server/listen.ts'),
	]);
	const concurrency = role === 'requests' ? 0 : options.concurrency;
	const server = createTaskServer({
		...parts,
		backend,
		log,
		...(concurrency !== undefined && { concurrency }),
	});
	const start = async (): Promise<Serving> => {
		await tryFactory(module, server);
		const serving = await begin(server, options, log);
		log.info(options.store === undefined ? { db: place } : { store: place }, 'tasks are kept');
		return serving;
	};
	return serveUntilEnd(start, { log, drainMs: options.drainMs, running: () => server.running });
}

/** Builds one server for nothing: a server function that throws would otherwise fail with every request. */
async function tryFactory(module: string, server: TaskServer): Promise<void> {
	try {
		await server.runtime.build({ era: 'modern' });
	} catch (error) {
		const place = placeOf(error);
		const where = place === undefined ? '' : ` (${place})`;
		throw new Failure(
			isHoldfastError(error, 'INVALID_OPTION') && error.message.includes('McpServer')
				? `The server function of ${module} did not return an McpServer of the @modelcontextprotocol/server that ` +
						'holdfast uses. Return one, and install holdfast beside your server, so that both share one copy.'
				: `The server function of ${module} threw: ${messageOf(error)}${where}`,
			{ cause: error },
		);
	}
}

function begin(server: TaskServer, options: ServeOptions, log: Logger): Promise<Serving> {
	if (options.role === 'worker') return working(server, log);
	return options.stdio === true ? onStdio(server, log) : onHttp(server, options, log);
}

/** Runs tools for the servers that share the store. */
async function working(server: TaskServer, log: Logger): Promise<Serving> {
	await server.start();
	log.info({}, 'working');
	return { closed: new Promise(() => {}), close: (drainMs) => server.stop(drainMs) };
}

async function onStdio(server: TaskServer, log: Logger): Promise<Serving> {
	const { serveTasksOverStdio } = await import('../server/stdio.ts');
	const started = server.start();
	const serving = serveTasksOverStdio(server);
	await started;
	log.info({}, 'serving on stdio');
	return serving;
}

async function onHttp(server: TaskServer, options: ServeOptions, log: Logger): Promise<Serving> {
	const { listen } = await import('../server/listen.ts');
	const { host, port, path, allowUnauthenticated = false } = options;
	try {
		const listening = await listen(server, { host, port, path, allowUnauthenticated });
		log.info({ url: listening.url }, 'listening');
		return { closed: new Promise(() => {}), close: (drainMs) => listening.close(drainMs) };
	} catch (error) {
		throw listenFailure(error, options);
	}
}

/** What a person calls the settings of where a server listens. */
export interface ListenNames {
	readonly host: string;
	readonly port: string;
	readonly allowUnauthenticated: string;
}

const OPTION_NAMES: ListenNames = {
	host: '--host',
	port: '--port',
	allowUnauthenticated: '--allow-unauthenticated',
};

/** What is wrong when a server cannot listen, in words that help. */
export function listenFailure(
	error: unknown,
	{ host, port }: { readonly host: string; readonly port: number },
	names: ListenNames = OPTION_NAMES,
): unknown {
	if (isHoldfastError(error, 'INVALID_OPTION'))
		return new UsageError(
			`${names.host} ${host} can be reached by others, and nobody would be asked who they are. Leave it out to serve ` +
				`this machine alone, or add ${names.allowUnauthenticated} where something in front authenticates.`,
		);
	const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
	const why = LISTEN_PROBLEMS[String(code)];
	return why === undefined ? error : new Failure(why(host, port, names), { cause: error });
}

/** By the system's code. */
const LISTEN_PROBLEMS: Readonly<Record<string, (host: string, port: number, names: ListenNames) => string>> =
	{
		EADDRINUSE: (host, port, names) =>
			`Port ${port} on ${host} is in use. Choose another one with ${names.port}; ${names.port} 0 takes any that is free.`,
		EACCES: (_, port, names) =>
			`This user may not listen on port ${port}. Choose one above 1023 with ${names.port}.`,
		EADDRNOTAVAIL: (host, _, names) =>
			`${host} is no address of this machine. Choose another one with ${names.host}.`,
		ENOTFOUND: (host, _, names) =>
			`${host} is no known host name. Give an address of this machine with ${names.host}.`,
	};
