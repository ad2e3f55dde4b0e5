import type { Logger } from 'pino';
import { EXIT_CODES } from './failure.ts';
import { onEndSignal } from './shutdown.ts';

/** A server that can be waited for and ended. */
export interface Serving {
	/** Resolves when the client has gone; never over HTTP. */
	readonly closed: Promise<unknown>;
	close(drainMs: number): Promise<void>;
}

const KEEP_ALIVE_MS = 60_000;

/** Hosts that close a server's stdin kill it when it is still there 2 s later; by then all must be handed back. */
const STDIO_DRAIN_MS = 1_500;

/** Serves until a signal asks for the end or the client has gone, then ends it in order. */
export async function serveUntilEnd(
	start: () => Promise<Serving>,
	{ log, drainMs }: { readonly log: Logger; readonly drainMs: number },
): Promise<number> {
	const ended = Promise.withResolvers<string>();
	const forget = onEndSignal(ended.resolve);
	// Everything else may let go of the process while running tools still have time to end.
	const keepAlive = setInterval(() => {}, KEEP_ALIVE_MS);
	try {
		const serving = await start();
		let limitMs = drainMs;
		const gone = serving.closed.then(() => {
			limitMs = Math.min(drainMs, STDIO_DRAIN_MS);
			// Whoever loses patience from here on sends a signal once.
			forget();
			return 'the client has gone';
		});
		const reason = await Promise.race([ended.promise, gone]);
		log.info({ reason }, 'stopping');
		await serving.close(limitMs);
		log.info({}, 'stopped');
		return EXIT_CODES.ok;
	} finally {
		forget();
		clearInterval(keepAlive);
	}
}
