import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { isHoldfastError, messageOf } from '../errors.ts';
import { createTaskServer, type TaskServer } from '../server/task-server.ts';
import { EXIT_CODES, Failure, placeOf, UsageError } from './failure.ts';
import { loadServerModule } from './load-module.ts';
import { createLog, type LogOptions } from './log.ts';
import { onEndSignal } from './shutdown.ts';
import { backendOf } from './store-file.ts';

/** Options of `holdfast serve`. */
export interface ServeOptions extends LogOptions {
	readonly stdio?: boolean;
	readonly db: string;
	readonly port: number;
	readonly host: string;
	readonly path: string;
	readonly concurrency?: number;
	readonly allowUnauthenticated?: boolean;
	/** How long running tools may take to end when the process is asked to. */
	readonly drainMs: number;
}

const KEEP_ALIVE_MS = 60_000;

/** Hosts that close a server's stdin kill it when it is still there 2 s later; by then all must be handed back. */
const STDIO_DRAIN_MS = 1_500;

/** A server that can be waited for and ended. */
interface Serving {
	/** Resolves when the client has gone; never over HTTP. */
	readonly closed: Promise<unknown>;
	close(drainMs: number): Promise<void>;
}

/** Serves the tasks of a module until a signal or, on stdio, until the client has gone. */
export async function serve(module: string, options: ServeOptions): Promise<number> {
	if (!options.path.startsWith('/')) throw new UsageError(`--path ${options.path}: it must begin with /`);
	const log = createLog(options);
	const db = resolve(options.db);
	// All that can be loaded at once is: a host that starts the server waits for its first answer.
	const [parts, backend] = await Promise.all([
		loadServerModule(module),
		backendOf(db),
		options.stdio === true ? import('../server/stdio.ts') : import('../server/listen.ts'),
	]);
	const ended = Promise.withResolvers<string>();
	const forget = onEndSignal(ended.resolve);
	// Everything else may let go of the process while running tools still have time to end.
	const keepAlive = setInterval(() => {}, KEEP_ALIVE_MS);
	try {
		const { concurrency } = options;
		const server = createTaskServer({
			...parts,
			backend,
			log,
			...(concurrency !== undefined && { concurrency }),
		});
		await tryFactory(module, server);
		const serving = options.stdio === true ? await onStdio(server, log) : await onHttp(server, options, log);
		log.info({ db }, 'tasks are kept');
		let { drainMs } = options;
		const gone = serving.closed.then(() => {
			drainMs = Math.min(drainMs, STDIO_DRAIN_MS);
			// Whoever loses patience from here on sends a signal once.
			forget();
			return 'the client has gone';
		});
		const reason = await Promise.race([ended.promise, gone]);
		log.info({ reason, running: server.running }, 'stopping');
		await serving.close(drainMs);
		log.info({}, 'stopped');
		return EXIT_CODES.ok;
	} finally {
		forget();
		clearInterval(keepAlive);
	}
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

/** What is wrong when a server cannot listen, in words that help. */
export function listenFailure(
	error: unknown,
	{ host, port }: { readonly host: string; readonly port: number },
): unknown {
	if (isHoldfastError(error, 'INVALID_OPTION'))
		return new UsageError(
			`--host ${host} can be reached by others, and nobody would be asked who they are. Leave it out to serve ` +
				'this machine alone, or add --allow-unauthenticated where something in front authenticates.',
		);
	const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
	const why = LISTEN_PROBLEMS[String(code)];
	return why === undefined ? error : new Failure(why(host, port), { cause: error });
}

/** By the system's code. */
const LISTEN_PROBLEMS: Readonly<Record<string, (host: string, port: number) => string>> = {
	EADDRINUSE: (host, port) =>
		`Port ${port} on ${host} is in use. Choose another one with --port; --port 0 takes any that is free.`,
	EACCES: (_, port) => `This user may not listen on port ${port}. Choose one above 1023 with --port.`,
	EADDRNOTAVAIL: (host) => `${host} is no address of this machine. Choose another one with --host.`,
	ENOTFOUND: (host) => `${host} is no known host name. Give an address of this machine with --host.`,
};
