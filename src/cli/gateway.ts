import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isHoldfastError, messageOf } from '../errors.ts';
import { budgetsOf, type GatewayConfig, upstreamsOf } from '../gateway/config.ts';
import { readConfig } from '../gateway/config-file.ts';
import { fileCatalogue } from '../gateway/file-catalogue.ts';
import { Gateway } from '../gateway/gateway.ts';
import { Failure, UsageError } from './failure.ts';
import { createLog, type LogOptions } from './log.ts';
import { listenFailure } from './serve.ts';
import { chosenStore } from './store.ts';
import { serveUntilEnd } from './until-end.ts';

/** Options of `holdfast gateway`. */
export interface GatewayCommandOptions extends LogOptions {
	readonly config: string;
	readonly drainMs: number;
}

/** Serves the upstreams of a configuration file over Streamable HTTP until a signal. */
export async function gateway({
	config: file,
	drainMs,
	...logOptions
}: GatewayCommandOptions): Promise<number> {
	const log = createLog(logOptions);
	const config = await configOf(file);
	// Paths are meant from where they are written.
	const folder = dirname(resolve(file));
	const isFile = !/^\w+:\/\//.test(config.store);
	const db = resolve(folder, config.store);
	const { backend, place } = await chosenStore(isFile ? { db } : { db, store: config.store });
	log.info({ config: { ...withoutSecrets(config), store: place } }, 'this configuration is in effect');
	const upstreams = upstreamsOf(config, process.env, folder);
	const { host, port, path, allowUnauthenticated } = config.listen;
	const serving = new Gateway({
		backend,
		upstreams,
		catalogue: fileCatalogue(resolve(folder, config.stateFolder), upstreams),
		budgets: budgetsOf(config),
		log,
	});
	return serveUntilEnd(
		async () => {
			const { listen } = await import('../server/listen.ts');
			const listening = await listen(serving.server, {
				host,
				port,
				path,
				allowUnauthenticated,
				bus: serving.bus,
			}).catch((error: unknown) => {
				throw listenFailure(error, config.listen);
			});
			log.info({ url: listening.url }, 'listening');
			return {
				closed: new Promise(() => {}),
				close: async (limitMs: number) => {
					await listening.close(limitMs);
					await serving.close();
				},
			};
		},
		{ log, drainMs, running: () => serving.server.running },
	);
}

async function configOf(file: string): Promise<GatewayConfig> {
	let text: string;
	try {
		text = await readFile(file, 'utf8');
	} catch (error) {
		throw new UsageError(`The configuration ${file} cannot be read: ${messageOf(error)}`);
	}
	try {
		return readConfig(text, file, process.env);
	} catch (error) {
		if (isHoldfastError(error, 'INVALID_CONFIG')) throw new Failure(error.message, { cause: error });
		throw error;
	}
}

/** A configuration to be shown: values of headers and of environments may be secrets. */
function withoutSecrets(config: GatewayConfig): object {
	const upstreams = Object.entries(config.upstreams).map(([name, upstream]) => [
		name,
		{ ...upstream, headers: hidden(upstream.headers), env: hidden(upstream.env) },
	]);
	return { ...config, upstreams: Object.fromEntries(upstreams) };
}

function hidden(values: Readonly<Record<string, string>>): object {
	return Object.fromEntries(Object.keys(values).map((name) => [name, '***']));
}
