import type { Backend } from '../backend.ts';
import { Connection } from './connection.ts';
import { RedisDispatcher } from './dispatcher.ts';
import { unusable } from './failure.ts';
import { HandedTasks } from './handed-tasks.ts';
import { type RedisOptions, settingsOf } from './options.ts';
import { checkServer } from './server-check.ts';
import { RedisSignals } from './signals.ts';
import { RedisStore } from './store.ts';

export type { RedisOptions } from './options.ts';

/**
 * A backend in a Redis or Valkey server, version 6 or later, for any number of processes on any number of machines.
 * There is nothing to migrate. Needs the package `ioredis`.
 *
 * What survives a restart or a power cut is set on the server, and `open()` warns where that is less than a handle
 * promises. It rejects with `STORE_UNUSABLE` where the server cannot be reached or may throw tasks away (any
 * `maxmemory-policy` but `noeviction`), and with `STORE_NEWER` or `STORE_OLDER` where the prefix is of another version.
 */
export function redis(options: RedisOptions | string): Backend {
	const settings = settingsOf(options);
	const connection = new Connection(settings);
	const handed = new HandedTasks();
	const signals = new RedisSignals(connection, settings);
	let opening: Promise<void> | undefined;
	const open = async (): Promise<void> => {
		await connection.open((run) => checkServer(run, connection.base, connection.place));
		try {
			await signals.start();
		} catch (error) {
			await connection.close();
			throw unusable(connection.place, error);
		}
	};
	return {
		name: 'redis',
		store: new RedisStore(connection, handed, settings.time),
		dispatcher: new RedisDispatcher(connection, handed),
		signals,
		open: () => (opening ??= open()),
		close: async () => {
			await signals.stop();
			await connection.close();
		},
	};
}
