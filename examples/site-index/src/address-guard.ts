/**
 * Refuses addresses inside private networks: a caller may name any site, and must not reach through this server
 * what only this server can reach. Names are judged by what they resolve to at the moment of the connection, so
 * that a name cannot change its answer between the check and its use.
 */
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import ipaddr from 'ipaddr.js';

export class PrivateAddressError extends Error {
	constructor(host: string) {
		super(`${host} is not a public address`);
		this.name = 'PrivateAddressError';
	}
}

type LookupCallback = (
	error: NodeJS.ErrnoException | null,
	address: string | LookupAddress[],
	family?: number,
) => void;

export const isPublicIp = (ip: string): boolean => {
	if (!ipaddr.isValid(ip)) return false;
	return ipaddr.process(ip).range() === 'unicast';
};

/** Throws unless an address written as an IP literal is public; names are left to the look-up. */
export const assertPublicLiteral = (address: string): void => {
	const { hostname } = new URL(address);
	const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
	if (ipaddr.isValid(literal) && !isPublicIp(literal)) throw new PrivateAddressError(hostname);
	if (hostname === 'localhost' || hostname.endsWith('.localhost')) throw new PrivateAddressError(hostname);
};

/** A look-up that fails when any address of a name is private. */
export const publicLookup = (hostname: string, options: LookupOptions, callback: LookupCallback): void => {
	systemLookup(hostname, { ...options, all: true }, (error, addresses) => {
		if (error !== null) return callback(error, []);
		if (addresses.length === 0 || addresses.some(({ address }) => !isPublicIp(address)))
			return callback(new PrivateAddressError(hostname), []);
		if (options.all === true) return callback(null, addresses);
		const [first] = addresses;
		return callback(null, first?.address ?? '', first?.family ?? 4);
	});
};
