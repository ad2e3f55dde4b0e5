import { ListeningTransport } from './listen-stdio.ts';
import { localPrincipal } from './principal.ts';
import { serveStdio, StdioServerTransport, type Transport } from './sdk.ts';
import type { TaskServer } from './task-server.ts';

/** Options of {@link serveTasksOverStdio}. */
export interface StdioOptions {
	/** Carries the messages. Default: this process's stdin and stdout. */
	readonly transport?: Transport;
}

/** A server on stdio. */
export interface StdioServing {
	/** Resolves when the client has gone. */
	readonly closed: Promise<void>;
	/** Ends subscriptions and the connection, and stops the task server. */
	close(drainMs?: number): Promise<void>;
}

/**
 * Starts a task server and serves it to one client over stdio. Discovery is answered while the backend still
 * opens. Every task belongs to the local user, so the next process finds it again.
 */
export function serveTasksOverStdio(server: TaskServer, options: StdioOptions = {}): StdioServing {
	const started = server.start();
	const { promise: closed, resolve } = Promise.withResolvers<void>();
	const wire = new ListeningTransport(
		options.transport ?? new StdioServerTransport(),
		server.runtime,
		localPrincipal(),
		started,
	);
	const handle = serveStdio(
		async (context) => {
			await started;
			return server.runtime.build(context);
		},
		{
			transport: wire,
			onerror: (error) => server.log.warn({ error: error.message }, 'the SDK refused a message'),
		},
	);
	const { onclose } = wire;
	wire.onclose = () => {
		onclose?.();
		resolve();
	};
	return {
		closed,
		close: async (drainMs) => {
			await server.stop(drainMs);
			await handle.close();
		},
	};
}
