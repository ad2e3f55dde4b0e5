import { messageOf } from '../errors.ts';
import { limitLines } from './line-limit.ts';
import { ListeningTransport } from './listen-stdio.ts';
import { localPrincipal } from './principal.ts';
import { serveStdio, StdioServerTransport, type Transport } from './sdk.ts';
import type { TaskServer } from './task-server.ts';

/** How long handlers may go on after the client went away: hosts kill a server that does not end soon. */
const GONE_DRAIN_MS = 1_000;

/** Options of {@link serveTasksOverStdio}. */
export interface StdioOptions {
	/** Carries the messages. Default: this process's stdin and stdout. */
	readonly transport?: Transport;
}

/** A server on stdio. */
export interface StdioServing {
	/** Resolves when the client has gone and the task server was stopped. */
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
	// Whoever asks for something is told; a client that only connects is no reason to crash.
	started.catch((error: unknown) =>
		server.log.error({ error: messageOf(error) }, 'the backend cannot be opened'),
	);
	const { promise: closed, resolve } = Promise.withResolvers<void>();
	const transport =
		options.transport ?? new StdioServerTransport(limitLines(process.stdin, process.stdout), process.stdout);
	const wire = new ListeningTransport(transport, server.runtime, localPrincipal(), started);
	const handle = serveStdio((context) => server.runtime.build(context), {
		transport: wire,
		onerror: (error) => server.log.warn({ error: error.message }, 'the SDK refused a message'),
	});
	const { onclose } = wire;
	wire.onclose = () => {
		onclose?.();
		void server.stop(GONE_DRAIN_MS).then(resolve, resolve);
	};
	return {
		closed,
		close: async (drainMs) => {
			await server.stop(drainMs);
			await handle.close();
		},
	};
}
