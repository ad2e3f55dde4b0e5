import { HoldfastError } from '../../errors.ts';
import type { TimeSource } from '../backend.ts';

/** Options of {@link postgres}. */
export interface PostgresOptions {
	/** Where the database is: `postgres://user:password@host:5432/database`. A pooled address will do. */
	readonly url: string;
	/**
	 * An address of the same database that leads past any pooler, for the one connection that hears of changes.
	 * Default: `url`.
	 */
	readonly directUrl?: string;
	/** The schema that holds the tables; `holdfast migrate` creates it. Default: `holdfast`. */
	readonly schema?: string;
	/** Most connections of this process, without the one that hears of changes. From 1 to 1,000. Default: 10. */
	readonly connections?: number;
	/**
	 * For how long a read or write is tried again while the database cannot be reached, in milliseconds. From 0 to
	 * 600,000. Default: 10,000.
	 */
	readonly patienceMs?: number;
	/**
	 * How often to look for changes of other processes where they cannot be heard, in milliseconds. From 10 to
	 * 60,000. Default: 500.
	 */
	readonly pollIntervalMs?: number;
	/** Where the time comes from. Default: the database server's clock. */
	readonly time?: TimeSource;
}

/** Options that were checked, with their defaults. */
export type PostgresSettings = Omit<Required<PostgresOptions>, 'time' | 'directUrl'> & {
	readonly time: TimeSource | undefined;
	/** Undefined where `url` is all there is. */
	readonly directUrl: string | undefined;
};

/** @throws INVALID_OPTION */
export function settingsOf(given: PostgresOptions | string): PostgresSettings {
	const options = typeof given === 'string' ? { url: given } : given;
	const { url, directUrl, schema = 'holdfast', time } = options;
	assertUrl('url', url);
	if (directUrl !== undefined) assertUrl('directUrl', directUrl);
	// Half of what Postgres takes, since names are made of it; quoted everywhere, but a plain one is kinder to people.
	if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,31}$/.test(schema) || schema.startsWith('pg_'))
		throw invalid(
			`\`schema\` is ${JSON.stringify(schema)}; it must have 1 to 32 small letters, digits and underscores, ` +
				'begin with none of the digits, and not with pg_',
		);
	return {
		url,
		directUrl,
		schema,
		time,
		connections: wholeNumber('connections', options.connections ?? 10, 1, 1_000),
		patienceMs: wholeNumber('patienceMs', options.patienceMs ?? 10_000, 0, 600_000),
		pollIntervalMs: wholeNumber('pollIntervalMs', options.pollIntervalMs ?? 500, 10, 60_000),
	};
}

/** An address as it may be shown: without user and password. */
export function shownUrl(url: string): string {
	const { protocol, host, pathname } = new URL(url);
	return `${protocol}//${host}${pathname}`;
}

function assertUrl(name: string, url: unknown): asserts url is string {
	if (typeof url !== 'string' || !/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url))
		throw invalid(`\`${name}\` must be an address such as postgres://user:password@host:5432/database`);
}

function wholeNumber(name: string, value: number, least: number, greatest: number): number {
	if (Number.isInteger(value) && value >= least && value <= greatest) return value;
	throw invalid(`\`${name}\` must be a whole number from ${least} to ${greatest}`);
}

function invalid(what: string): HoldfastError {
	return new HoldfastError('INVALID_OPTION', `postgres: ${what}`);
}
