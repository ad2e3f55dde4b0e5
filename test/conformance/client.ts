/**
 * The client under test: `node test/conformance/client.ts URL`, as the harness starts it. It connects an SDK
 * client with a `TaskClient` around it, looks at everything that the server offers, and calls every tool.
 */
import {
	Client,
	StreamableHTTPClientTransport,
	type Tool,
	UnauthorizedError,
} from '@modelcontextprotocol/client';
import { TaskClient, taskFetch } from '../../src/client/index.ts';
import { type Context, providerFor, SignIn } from './client-sign-in.ts';

const CURRENT = '2026-07-28';
/** How often a person signs in anew for one request before it is given up. */
const MAX_SIGN_INS = 1;

const url = new URL(process.argv[2] ?? '');
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const version = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION'] ?? CURRENT;
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Context;
const provider = providerFor(scenario, context);

const client = new Client(
	{ name: 'holdfast-conformance', version: '1.0.0' },
	{
		versionNegotiation: { mode: version === CURRENT ? { pin: CURRENT } : 'legacy' },
		capabilities: { elicitation: { form: { applyDefaults: true } } },
	},
);
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: {} }));
const tasks = new TaskClient(client);

/** Does something that the server may want a sign-in for, and does it again after each. */
async function signedIn<T>(transport: StreamableHTTPClientTransport, work: () => Promise<T>): Promise<T> {
	for (let signIns = 0; ; signIns++) {
		try {
			return await work();
		} catch (error) {
			const isWanted = error instanceof UnauthorizedError && signIns < MAX_SIGN_INS;
			if (!isWanted || !(provider instanceof SignIn) || !provider.callback) throw error;
			await transport.finishAuth(provider.callback);
			// The server may name another place to sign in by the next time.
			provider.invalidateCredentials('discovery');
		}
	}
}

function newTransport(): StreamableHTTPClientTransport {
	return new StreamableHTTPClientTransport(url, {
		fetch: taskFetch(),
		...(provider && { authProvider: provider }),
	});
}

/** The SDK gives a connection up that needs a sign-in, so each attempt has a transport of its own. */
async function connect(): Promise<StreamableHTTPClientTransport> {
	let transport = newTransport();
	await signedIn(transport, async () => {
		transport = newTransport();
		await client.connect(transport);
	});
	return transport;
}

interface Call {
	readonly name: string;
	readonly arguments: Record<string, unknown>;
}

/** The calls that the scenario asks for, or each tool once. */
function callsOf(tools: readonly Tool[]): readonly Call[] {
	const { toolCalls } = context;
	if (Array.isArray(toolCalls)) return toolCalls as Call[];
	return tools.map(({ name, inputSchema }) => ({
		name,
		arguments: Object.fromEntries(
			Object.entries(inputSchema.properties ?? {}).map(([key, schema]) => [key, example(schema, tools)]),
		),
	}));
}

/** A value for a parameter; a tool that wants a schema is given the richest one that the server showed. */
function example(schema: unknown, tools: readonly Tool[]): unknown {
	const type: unknown = typeof schema === 'object' && schema && 'type' in schema ? schema.type : undefined;
	switch (type) {
		case 'number':
		case 'integer':
			return 5;
		case 'boolean':
			return true;
		case 'array':
			return [];
		case 'object':
			return tools.find(({ inputSchema }) => '$defs' in inputSchema)?.inputSchema ?? {};
		default:
			return 'text';
	}
}

/** Lists what the server offers, reads and gets the first of each, and calls every tool. */
async function explore(transport: StreamableHTTPClientTransport): Promise<void> {
	const { tools } = await signedIn(transport, () => client.listTools());
	const { prompts, resources } = client.getServerCapabilities() ?? {};
	if (resources) {
		const [first] = (await client.listResources()).resources;
		if (first) await client.readResource({ uri: first.uri });
	}
	if (prompts) {
		const [first] = (await client.listPrompts()).prompts;
		if (first) await client.getPrompt({ name: first.name });
	}
	for (const call of callsOf(tools)) await signedIn(transport, () => tasks.callTool(call));
}

try {
	await explore(await connect());
	await client.close();
} catch (error) {
	console.error(error);
	process.exitCode = 1;
}
tasks.close();
