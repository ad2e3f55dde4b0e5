import { HoldfastError } from '../../errors.ts';
import type { TimeSource } from '../backend.ts';

/** Options of {@link redis}. */
export interface RedisOptions {
	/** Where the server is: `redis://user:password@host:6379/0`, or `rediss://…` for TLS. */
	readonly url: string;
	/**
	 * What the names of all keys begin with, in braces, so that a cluster keeps them in one place. 1 to 64 letters,
	 * digits and `. _ : -`. Default: `holdfast`.
	 */
	readonly prefix?: string;
	/**
	 * For how long a read or write is tried again while the server cannot be reached, in milliseconds. From 0 to
	 * 600,000. Default: 10,000.
	 */
	readonly patienceMs?: number;
	/** Where the time comes from. Default: the server's clock. */
	readonly time?: TimeSource;
}

/** Options that were checked, with their defaults. */
export type RedisSettings = Omit<Required<RedisOptions>, 'time'> & { readonly time: TimeSource | undefined };

/** @throws INVALID_OPTION */
export function settingsOf(given: RedisOptions | string): RedisSettings {
	const {
		url,
		prefix = 'holdfast',
		patienceMs = 10_000,
		time,
	} = typeof given === 'string' ? { url: given } : given;
	if (typeof url !== 'string' || !/^rediss?:\/\//.test(url) || !URL.canParse(url))
		throw invalid('`url` must be an address such as redis://user:password@host:6379/0');
	if (typeof prefix !== 'string' || !/^[\w.:-]{1,64}$/.test(prefix))
		throw invalid(
			`\`prefix\` is ${JSON.stringify(prefix)}; it must have 1 to 64 letters, digits and characters of . _ : -`,
		);
	if (!Number.isInteger(patienceMs) || patienceMs < 0 || patienceMs > 600_000)
		throw invalid('`patienceMs` must be a whole number from 0 to 600000');
	return { url, prefix, patienceMs, time };
}

/** An address as it may be shown: without user and password. */
export function shownUrl(url: string): string {
	const { protocol, host, pathname } = new URL(url);
	return `${protocol}//${host}${pathname}`;
}

function invalid(what: string): HoldfastError {
	return new HoldfastError('INVALID_OPTION', `redis: ${what}`);
}
