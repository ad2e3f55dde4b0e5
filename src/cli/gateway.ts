import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isHoldfastError, messageOf } from '../errors.ts';
import { budgetsOf, type GatewayConfig, upstreamsOf } from '../gateway/config.ts';
import { readConfig, shownConfig } from '../gateway/config-file.ts';
import { fileCatalogue } from '../gateway/file-catalogue.ts';
import { Gateway } from '../gateway/gateway.ts';
import { Failure, UsageError } from './failure.ts';
import { createLog, type LogOptions } from './log.ts';
import { listenFailure, type ListenNames } from './serve.ts';
import { wordsWithoutSecrets } from './server-target.ts';
import { chosenStore } from './store.ts';
import { serveUntilEnd } from './until-end.ts';

/** Options of `holdfast gateway`. */
export interface GatewayCommandOptions extends LogOptions {
	readonly config: string;
	readonly drainMs: number;
}

const LISTEN_KEYS: ListenNames = {
	host: 'listen.host:',
	port: 'listen.port:',
	allowUnauthenticated: 'listen.allowUnauthenticated: true',
};

/** Serves the upstreams of a configuration file over Streamable HTTP until a signal. */
export async function gateway({
	config: file,
	drainMs,
	...logOptions
}: GatewayCommandOptions): Promise<number> {
	const log = createLog(logOptions);
	const text = await textOf(file);
	const config = configOf(text, file);
	// Paths are meant from where they are written.
	const folder = dirname(resolve(file));
	const isFile = !/^\w+:\/\//.test(config.store);
	const db = resolve(folder, config.store);
	const { backend, place } = await chosenStore(isFile ? { db } : { db, store: config.store });
	log.info({ config: { ...withoutSecrets(config, text), store: place } }, 'this configuration is in effect');
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
				throw listenFailure(error, config.listen, LISTEN_KEYS);
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

async function textOf(file: string): Promise<string> {
	try {
		return await readFile(file, 'utf8');
	} catch (error) {
		throw new UsageError(`The configuration ${file} cannot be read: ${messageOf(error)}`);
	}
}

function configOf(text: string, file: string): GatewayConfig {
	try {
		return readConfig(text, file, process.env);
	} catch (error) {
		if (isHoldfastError(error, 'INVALID_CONFIG')) throw new Failure(error.message, { cause: error });
		throw error;
	}
}

/** A configuration to be shown: without what may be a secret, whether it is from the environment or in the file. */
function withoutSecrets(config: GatewayConfig, text: string): object {
	const shown = shownConfig(config, text);
	const upstreams = Object.entries(shown.upstreams).map(([name, upstream]) => {
		const { command, args, url, headers, env } = upstream;
		const words = wordsWithoutSecrets([
			...(typeof command === 'string' ? [command] : (command ?? [])),
			...args,
		]);
		return [
			name,
			{
				...upstream,
				...(command !== undefined && { command: words, args: [] }),
				...(url !== undefined && { url: url.replace(/\?.*$/s, '?***') }),
				headers: hidden(headers),
				env: hidden(env),
			},
		];
	});
	return { ...shown, upstreams: Object.fromEntries(upstreams) };
}

function hidden(values: Readonly<Record<string, string>>): object {
	return Object.fromEntries(Object.keys(values).map((name) => [name, '***']));
}
