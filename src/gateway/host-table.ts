/** What is known about one host program: how long it waits, and how the gateway is put in front of its servers. */
export interface KnownHost {
	readonly title: string;
	/** Its names in `clientInfo`. */
	readonly clientNames: readonly string[];
	/**
	 * How long a plain call may be held, in milliseconds, with the keep-alive that the gateway sends; null is for
	 * ever. Below what the host was measured to bear, so that the answer is still on its way in time.
	 */
	readonly budgetMs: {
		readonly http: number | null;
		readonly stdio: number | null;
		/** On both transports, where the call has a progress token and progress extends the limit. */
		readonly withToken?: number | null;
	};
	/** Where the numbers come from. */
	readonly source: string;
	/** How the gateway is put into its configuration. */
	readonly recipe?: {
		readonly file: string;
		readonly language: 'json' | 'toml' | 'yaml' | 'sh';
		readonly text: string;
	};
}

/** How the gateway is started in front of a server, in place of that server. */
const PROXY = ['npx', '-y', 'holdfast', 'proxy', '--', 'npx', '-y', 'my-slow-server'];
const [COMMAND, ...ARGS] = PROXY;

/** A recipe in JSON. */
function json(file: string, config: object): NonNullable<KnownHost['recipe']> {
	return { file, language: 'json', text: JSON.stringify(config, null, 2) };
}

const MCP_SERVERS = { mcpServers: { 'my-server': { command: COMMAND, args: ARGS } } };

/** Most programs are built on an SDK that gives up after 60 s. */
const SDK_LIMIT_MS = 45_000;

/** The host that nobody has measured. */
export const UNKNOWN_HOST: KnownHost = {
	title: 'any other host',
	clientNames: [],
	budgetMs: { http: SDK_LIMIT_MS, stdio: SDK_LIMIT_MS },
	source: 'the 60 s of the official SDKs',
};

/** Hosts by name; the first whose `clientNames` has the name in a request's `clientInfo` counts. */
export const HOSTS: readonly KnownHost[] = [
	{
		title: 'Claude Code',
		clientNames: ['claude-code'],
		// Interactive, a plain call goes to the background after 120 s by itself; both bear silence while bytes flow.
		budgetMs: { http: 280_000, stdio: 280_000 },
		source: 'measured, 2.1.332: no end within 330 s where an SSE byte comes at least every 60 s',
		recipe: {
			file: 'in a shell',
			language: 'sh',
			text: `claude mcp add my-server -- ${PROXY.join(' ')}`,
		},
	},
	{
		title: 'Claude Desktop',
		clientNames: ['claude-ai'],
		budgetMs: { http: 50_000, stdio: 200_000 },
		source: 'reported: 60 s for connectors, 240 s for local servers, whatever progress says',
		recipe: json('claude_desktop_config.json', MCP_SERVERS),
	},
	{
		title: 'VS Code',
		clientNames: ['Visual Studio Code', 'Visual Studio Code - Insiders', 'Code'],
		budgetMs: { http: 280_000, stdio: 280_000 },
		source: 'reported: waits until cancelled since 2026-04, 5 min before',
		recipe: json('.vscode/mcp.json', {
			servers: { 'my-server': { type: 'stdio', command: COMMAND, args: ARGS } },
		}),
	},
	{
		title: 'Cursor',
		clientNames: ['cursor-vscode', 'cursor'],
		budgetMs: { http: SDK_LIMIT_MS, stdio: SDK_LIMIT_MS },
		source: 'reported: 5 min in the program, 60 s in its SDK',
		recipe: json('~/.cursor/mcp.json', MCP_SERVERS),
	},
	{
		title: 'Codex',
		clientNames: ['codex-mcp-client', 'codex'],
		budgetMs: { http: 280_000, stdio: 280_000 },
		source: 'measured, 0.171.0: 300 s on both transports, whatever progress says',
		recipe: {
			file: '~/.codex/config.toml',
			language: 'toml',
			text: `[mcp_servers.my-server]\ncommand = ${JSON.stringify(COMMAND)}\nargs = ${JSON.stringify(ARGS)}\nrequired = true`,
		},
	},
	{
		title: 'Gemini CLI',
		clientNames: ['gemini-cli-mcp-client', 'gemini-cli'],
		budgetMs: { http: 280_000, stdio: 280_000 },
		source: 'measured, 0.61.0: more than 330 s; 600 s by its source',
		recipe: json('~/.gemini/settings.json', MCP_SERVERS),
	},
	{
		title: 'opencode',
		clientNames: ['opencode'],
		budgetMs: { http: SDK_LIMIT_MS, stdio: SDK_LIMIT_MS, withToken: null },
		source: 'measured, 1.18.33: 60 s, which progress extends',
		recipe: json('opencode.json', { mcp: { 'my-server': { type: 'local', command: PROXY } } }),
	},
	{
		title: 'AI SDK',
		// What an application gets that gives its client no name of its own.
		clientNames: ['ai-sdk-mcp-client'],
		budgetMs: { http: 280_000, stdio: 280_000 },
		source: 'measured, @ai-sdk/mcp 2.0.99: no limit of its own, and 300 s without headers over HTTP',
	},
	{
		title: 'goose',
		clientNames: ['goose', 'goose-desktop', 'goose-cli'],
		budgetMs: { http: 280_000, stdio: 280_000 },
		source: 'reported: 300 s for each extension',
		recipe: {
			file: '~/.config/goose/config.yaml',
			language: 'yaml',
			text: `extensions:\n  my-server:\n    type: stdio\n    enabled: true\n    name: my-server\n    cmd: ${COMMAND}\n    args: ${JSON.stringify(ARGS)}\n    timeout: 300`,
		},
	},
];
