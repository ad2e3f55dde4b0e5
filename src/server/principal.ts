import { userInfo } from 'node:os';
import { HoldfastError } from '../errors.ts';
import type { AuthInfo } from './sdk.ts';

/** Says who a request's tasks belong to. `authInfo` is undefined without authentication. */
export type PrincipalOf = (authInfo: AuthInfo | undefined) => string;

/** The principal of every request without authentication: then the unguessable id is the only key. */
export const ANONYMOUS = 'anonymous';

/**
 * Issuer and subject of the verified token, from `authInfo.extra.iss` and `authInfo.extra.sub`. Never the
 * client id: everybody who uses the same host program shares it.
 *
 * @throws NO_PRINCIPAL when the token names no subject.
 */
export const tokenPrincipal: PrincipalOf = (authInfo) => {
	if (authInfo === undefined) return ANONYMOUS;
	const subject = authInfo.extra?.['sub'];
	const issuer = authInfo.extra?.['iss'];
	if (typeof subject !== 'string' || subject === '')
		throw new HoldfastError(
			'NO_PRINCIPAL',
			'The token names no subject (authInfo.extra.sub). Give createTaskServer a `principal` function.',
		);
	return JSON.stringify([typeof issuer === 'string' ? issuer : '', subject]);
};

/** The local user, who every task over stdio belongs to. */
export function localPrincipal(): string {
	return `local:${userInfo().username}`;
}
