/** Servers that stand in for others: their tools, as strict as real ones are, and what they answer. */
import { type CallToolResult, McpServer } from '@modelcontextprotocol/server';
import type { JsonObject, JsonValue } from '../../src/protocol/json.ts';

/** A tool of a stand-in. */
export interface StandInTool {
	/** The schemas of its arguments; one that is not here is refused. */
	readonly properties: JsonObject;
	readonly required?: readonly string[];
	readonly annotations?: JsonObject;
	readonly description?: string;
	readonly outputSchema?: JsonObject;
	readonly call: (args: JsonObject) => CallToolResult | Promise<CallToolResult>;
}

export type StandInTools = Readonly<Record<string, StandInTool>>;

/** The low-level server of a stand-in: `tools/list` and `tools/call`, as strict as real ones are. */
export function standInServer(
	tools: StandInTools,
	onCall: (tool: string, args: JsonObject) => void,
): McpServer {
	const mcp = new McpServer({ name: 'stand-in', version: '1.0.0' }, { capabilities: { tools: {} } });
	mcp.server.setRequestHandler('tools/list', () => ({
		tools: Object.entries(tools).map(
			([name, { properties, required = [], annotations, description, outputSchema }]) => ({
				name,
				description: description ?? `The tool ${name}.`,
				inputSchema: { type: 'object' as const, properties: properties as never, required: [...required] },
				...(annotations && { annotations }),
				...(outputSchema && { outputSchema: outputSchema as never }),
			}),
		),
	}));
	mcp.server.setRequestHandler('tools/call', async ({ params }) => {
		const tool = tools[params.name];
		if (!tool) return problem(`no tool ${params.name}`);
		const given = (params.arguments ?? {}) as JsonObject;
		onCall(params.name, given);
		const foreign = Object.keys(given).filter((name) => !Object.hasOwn(tool.properties, name));
		if (foreign.length > 0) return problem(`${params.name} has no argument ${foreign.join(', ')}`);
		const missing = (tool.required ?? []).filter((name) => given[name] === undefined);
		if (missing.length > 0) return problem(`${params.name} needs ${missing.join(', ')}`);
		return tool.call(given);
	});
	return mcp;
}

/** A result of texts. */
export function texts(...parts: readonly string[]): CallToolResult {
	return { content: parts.map((text) => ({ type: 'text', text })) };
}

/** A result that is JSON as text, as most servers give it. */
export function jsonText(value: JsonValue): CallToolResult {
	return texts(JSON.stringify(value, null, 2));
}

/** A result with structured content. */
export function structured(value: JsonObject): CallToolResult {
	return { ...jsonText(value), structuredContent: value };
}

/** A result that is an error. */
export function problem(words: string): CallToolResult {
	return { ...texts(words), isError: true };
}

/** Gives one after the other, and the last for ever. */
export function oneByOne<T>(...values: readonly [T, ...T[]]): () => T {
	let next = 0;
	return () => values[Math.min(next++, values.length - 1)] as T;
}
