import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Backend } from '../backend/backend.ts';
import type { PostgresOptions } from '../backend/postgres/index.ts';
import type { RedisOptions } from '../backend/redis/index.ts';
import { isHoldfastError } from '../errors.ts';
import type { StoreOptions } from './arguments.ts';
import { Failure, UsageError } from './failure.ts';

/** A store, not opened yet. */
export interface ChosenStore {
	readonly backend: Backend;
	/** Where it is, for people: a file, or an address without user and password. */
	readonly place: string;
}

/** The store that a command was told to use. It need not be there yet. */
export async function chosenStore(options: StoreOptions): Promise<ChosenStore> {
	if (options.store === undefined) return storeFile(resolve(options.db));
	if (isRedis(options.store)) return redisStore(options.store, options);
	const settings = postgresOptions(options.store, options);
	const { postgres } = await loadPostgres();
	try {
		return { backend: postgres(settings), place: shown(settings) };
	} catch (error) {
		throw asUsage(error);
	}
}

/** The store that a command was told to look into; a file must be there. */
export async function existingStore(options: StoreOptions): Promise<ChosenStore> {
	const file = resolve(options.db);
	if (options.store === undefined && !existsSync(file))
		throw new Failure(`There is no file ${file}. Name the one that \`holdfast serve\` was given, with --db.`);
	return chosenStore(options);
}

/** Creates or updates the tables in a database; the words that say what was done. */
export async function migrateStore(options: Omit<StoreOptions, 'db'>): Promise<string> {
	const { store } = options;
	if (store === undefined)
		throw new UsageError(
			'Name the database with --store postgres://… or HOLDFAST_STORE. A file is brought up to date by itself.',
		);
	if (isRedis(store)) return `${(await redisStore(store, options)).place} needs no migration.`;
	const settings = postgresOptions(store, options);
	const { migrate } = await loadPostgres();
	const { from, to } = await migrate(settings).catch((error: unknown) => {
		throw asUsage(error);
	});
	const place = shown(settings);
	return from === to
		? `${place} has store version ${to} already.`
		: `${place} now has store version ${to}; it had ${from === 0 ? 'none' : from}.`;
}

async function storeFile(file: string): Promise<ChosenStore> {
	const { sqlite } = await import('../backend/sqlite/index.ts');
	try {
		return { backend: sqlite({ file }), place: file };
	} catch (error) {
		if (isHoldfastError(error, 'INVALID_OPTION'))
			throw new UsageError(`--db ${file} is not the path of a file`);
		throw error;
	}
}

function postgresOptions(store: string, { directUrl, schema }: Omit<StoreOptions, 'db'>): PostgresOptions {
	if (!/^postgres(ql)?:\/\//.test(store))
		throw new UsageError(
			'--store must be an address such as postgres://user:password@host:5432/database or redis://host:6379/0',
		);
	return {
		url: store,
		...(directUrl !== undefined && { directUrl }),
		...(schema !== undefined && { schema }),
	};
}

function isRedis(store: string): boolean {
	return /^rediss?:\/\//.test(store);
}

async function redisStore(
	url: string,
	{ directUrl, schema }: Omit<StoreOptions, 'db'>,
): Promise<ChosenStore> {
	if (directUrl !== undefined) throw new UsageError('--direct-url is for Postgres; Redis needs one address');
	const options: RedisOptions = { url, ...(schema !== undefined && { prefix: schema }) };
	const { redis } = await withDriver('Redis', 'ioredis', () => import('../backend/redis/index.ts'));
	try {
		const backend = redis(options);
		const { protocol, host, pathname } = new URL(url);
		return { backend, place: `${protocol}//${host}${pathname} (prefix ${schema ?? 'holdfast'})` };
	} catch (error) {
		throw asUsage(error);
	}
}

function loadPostgres() {
	return withDriver('Postgres', 'pg', () => import('../backend/postgres/index.ts'));
}

/** The driver is the user's to install: most have no use for it. */
async function withDriver<Module>(
	engine: string,
	driver: string,
	load: () => Promise<Module>,
): Promise<Module> {
	try {
		return await load();
	} catch (error) {
		if (!(error instanceof Error) || Reflect.get(error, 'code') !== 'ERR_MODULE_NOT_FOUND') throw error;
		throw new Failure(
			`A store in ${engine} needs the package ${driver}. Install it beside holdfast: npm install ${driver}`,
			{ cause: error },
		);
	}
}

/** A wrong address or name is a fault in how the command was called. */
function asUsage(error: unknown): unknown {
	return isHoldfastError(error, 'INVALID_OPTION') ? new UsageError(error.message) : error;
}

function shown({ url, schema = 'holdfast' }: PostgresOptions): string {
	const { protocol, host, pathname } = new URL(url);
	return `${protocol}//${host}${pathname} (schema ${schema})`;
}
