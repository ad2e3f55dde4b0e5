import { resolve } from 'node:path';
import { HoldfastError } from '../../errors.ts';
import { type Backend, MACHINE_TIME, type TimeSource } from '../backend.ts';
import { Database } from './database.ts';
import { SqliteDispatcher } from './dispatcher.ts';
import { SqliteSignals } from './signals.ts';
import { SqliteStore } from './store.ts';

/** Options of {@link sqlite}. */
export interface SqliteOptions {
	/**
	 * Where the tasks are kept. The file and its folder are created, readable for their owner only. It must lie on
	 * a local disk; every process that uses it must run on this machine.
	 */
	readonly file: string;
	/** Where the time comes from. Default: the machine's clock. */
	readonly time?: TimeSource;
	/**
	 * How often to look for changes of other processes, in milliseconds; up to ten times less often while there
	 * are none. From 1 to 60,000. Default: 25.
	 */
	readonly watchIntervalMs?: number;
}

/** A backend in one SQLite file, for any number of processes on one machine. */
export function sqlite(options: SqliteOptions | string): Backend {
	const {
		file,
		time = MACHINE_TIME,
		watchIntervalMs = 25,
	} = typeof options === 'string' ? { file: options } : options;
	assertFile(file);
	assertWatchInterval(watchIntervalMs);
	const database = new Database(resolve(file));
	const signals = new SqliteSignals(database, watchIntervalMs);
	return {
		name: 'sqlite',
		store: new SqliteStore(database, time),
		dispatcher: new SqliteDispatcher(database),
		signals,
		open: async () => {
			await database.open();
			signals.start();
		},
		close: async () => {
			signals.stop();
			database.close();
		},
	};
}

function assertFile(file: unknown): void {
	if (typeof file !== 'string' || file === '')
		throw new HoldfastError('INVALID_OPTION', 'sqlite: `file` must be the path of a file');
	if (file.includes(':memory:') || /^file:/i.test(file))
		throw new HoldfastError(
			'INVALID_OPTION',
			`sqlite: \`file\` must be the path of a file, not ${JSON.stringify(file)}. For tasks that need not survive ` +
				'the process, use memory().',
		);
}

function assertWatchInterval(watchIntervalMs: number): void {
	if (!Number.isInteger(watchIntervalMs) || watchIntervalMs < 1 || watchIntervalMs > 60_000)
		throw new HoldfastError(
			'INVALID_OPTION',
			'sqlite: `watchIntervalMs` must be a whole number from 1 to 60000',
		);
}
