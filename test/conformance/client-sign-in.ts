/** How the client under test signs in: the providers that a host would give to the SDK's transport. */
import {
	type AuthProvider,
	ClientCredentialsProvider,
	CrossAppAccessProvider,
	DpopSession,
	type OAuthClientInformationContext,
	type OAuthClientMetadata,
	type OAuthClientProvider,
	type OAuthDiscoveryState,
	PrivateKeyJwtProvider,
	requestJwtAuthorizationGrant,
	type StoredOAuthClientInformation,
	type StoredOAuthTokens,
} from '@modelcontextprotocol/client';

type Provider = OAuthClientProvider | AuthProvider;

/** What the harness tells about the scenario. */
export type Context = Readonly<Record<string, unknown>>;

/** The address that the harness knows metadata of clients by (CIMD). */
const METADATA_URL = 'https://conformance-test.local/client-metadata.json';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** A person who follows each redirect at once and agrees to everything. */
export class SignIn implements OAuthClientProvider {
	readonly clientMetadataUrl = METADATA_URL;
	readonly redirectUrl = 'http://localhost:3000/callback';
	readonly clientMetadata: OAuthClientMetadata = {
		client_name: 'holdfast conformance',
		redirect_uris: [this.redirectUrl],
		grant_types: ['authorization_code', 'refresh_token'],
		response_types: ['code'],
	};
	/** What the last redirect came back with. */
	callback: URLSearchParams | undefined;
	readonly #clients = new Map<string, StoredOAuthClientInformation>();
	#registered: StoredOAuthClientInformation | undefined;
	#tokens: StoredOAuthTokens | undefined;
	#verifier = '';
	#discovery: OAuthDiscoveryState | undefined;
	readonly #dpop: Promise<DpopSession> | undefined;

	constructor(options: { readonly registered?: StoredOAuthClientInformation; readonly dpop: boolean }) {
		this.#registered = options.registered;
		this.#dpop = options.dpop ? DpopSession.create() : undefined;
	}

	clientInformation(context?: OAuthClientInformationContext): StoredOAuthClientInformation | undefined {
		return (context && this.#clients.get(context.issuer)) ?? this.#registered;
	}

	saveClientInformation(
		information: StoredOAuthClientInformation,
		context?: OAuthClientInformationContext,
	): void {
		if (context) this.#clients.set(context.issuer, information);
		else this.#registered = information;
	}

	tokens(): StoredOAuthTokens | undefined {
		return this.#tokens;
	}

	saveTokens(tokens: StoredOAuthTokens): void {
		this.#tokens = tokens;
	}

	async redirectToAuthorization(url: URL): Promise<void> {
		const { headers } = await fetch(url, { redirect: 'manual' });
		this.callback = new URL(headers.get('location') ?? '').searchParams;
	}

	saveCodeVerifier(verifier: string): void {
		this.#verifier = verifier;
	}

	codeVerifier(): string {
		return this.#verifier;
	}

	async dpop(): Promise<DpopSession | undefined> {
		return this.#dpop;
	}

	saveDiscoveryState(state: OAuthDiscoveryState): void {
		this.#discovery = state;
	}

	discoveryState(): OAuthDiscoveryState | undefined {
		return this.#discovery;
	}

	invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): void {
		if (scope === 'all' || scope === 'tokens') this.#tokens = undefined;
		if (scope === 'all' || scope === 'discovery') this.#discovery = undefined;
		if (scope !== 'all' && scope !== 'client') return;
		this.#clients.clear();
		this.#registered = undefined;
	}
}

/** A workload that proves who it is with a token of its platform. */
class WorkloadSignIn extends SignIn {
	readonly #assertion: string;

	constructor(clientId: string, assertion: string) {
		super({ registered: { client_id: clientId }, dpop: false });
		this.#assertion = assertion;
	}

	prepareTokenRequest(scope?: string): URLSearchParams {
		const parameters = { grant_type: JWT_BEARER, assertion: this.#assertion, ...(scope && { scope }) };
		return new URLSearchParams(parameters);
	}
}

/** The provider for a scenario, by what its name and context ask for. */
export function providerFor(scenario: string, context: Context): Provider | undefined {
	const text = (name: string): string => {
		const value = context[name];
		return typeof value === 'string' ? value : '';
	};
	const [clientId, clientSecret] = [text('client_id'), text('client_secret')];
	switch (scenario) {
		case 'auth/client-credentials-jwt':
			return new PrivateKeyJwtProvider({
				...{ clientId, privateKey: text('private_key_pem'), algorithm: text('signing_algorithm') },
			});
		case 'auth/client-credentials-basic':
			return new ClientCredentialsProvider({ clientId, clientSecret });
		case 'auth/enterprise-managed-authorization':
			return new CrossAppAccessProvider({
				...{ clientId, clientSecret },
				assertion: async ({ authorizationServerUrl, resourceUrl, scope, fetchFn }) => {
					const grant = await requestJwtAuthorizationGrant({
						...{ tokenEndpoint: text('idp_token_endpoint'), audience: authorizationServerUrl },
						...{ resource: resourceUrl },
						...{ idToken: text('idp_id_token'), clientId: text('idp_client_id'), fetchFn },
						...(scope && { scope }),
					});
					return grant.jwtAuthGrant;
				},
			});
		case 'auth/wif-jwt-bearer':
			return new WorkloadSignIn(clientId, text('valid_jwt'));
		case 'auth/pre-registration':
			return new SignIn({
				registered: { client_id: clientId, client_secret: clientSecret },
				dpop: false,
			});
		default:
			return scenario.startsWith('auth/')
				? new SignIn({ dpop: scenario.startsWith('auth/dpop') })
				: undefined;
	}
}
