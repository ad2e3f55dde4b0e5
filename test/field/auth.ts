/** Bearer tokens that are their own subject: `Bearer ada` is ada, whatever session or host it comes from. */
import { OAuthError, OAuthErrorCode } from '@modelcontextprotocol/server';
import type { ListenOptions } from '../../src/server/index.ts';

export const SUBJECT_TOKENS: NonNullable<ListenOptions['auth']> = {
	verifier: {
		async verifyAccessToken(token) {
			if (token === 'stolen') throw new OAuthError(OAuthErrorCode.InvalidToken, 'The token is not valid');
			return {
				token,
				clientId: 'the-same-host-for-all',
				scopes: [],
				expiresAt: Math.floor(Date.now() / 1000) + 3_600,
				extra: { iss: 'https://issuer.example', sub: token },
			};
		},
	},
};
