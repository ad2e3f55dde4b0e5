import { isJsonObject, type JsonObject, without } from '../protocol/json.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import type { WireError } from '../protocol/task.ts';
import type { RawCall } from './exchange.ts';
import type { LegacyClient } from './legacy-client.ts';
import type { McpServer } from './sdk.ts';
import { supportOf } from './tool-support.ts';

/** What is wrong with a call, as far as 2025-11-25 lets a tool say whether it is called as a task (L01). */
export function refuseLegacyCall(
	server: McpServer,
	client: LegacyClient,
	{ name, asksForTask }: RawCall,
): WireError | undefined {
	if (!client.hasTasks) return undefined;
	const support = supportOf(server, name);
	const code = WIRE_CODES.methodNotFound;
	if (asksForTask && (support === 'forbidden' || support === null))
		return { code, message: `The tool "${name}" cannot be called as a task: leave out params.task` };
	if (!asksForTask && support === 'required')
		return { code, message: `The tool "${name}" can only be called as a task: add params.task` };
	return undefined;
}

/**
 * An `initialize` whose half-formed capabilities say what their sender meant, where the SDK would refuse them:
 * `true` is an empty object, and null is not declared.
 */
export function mendedHello(message: unknown): unknown {
	if (!isJsonObject(message) || message['method'] !== 'initialize') return message;
	const { params } = message;
	if (!isJsonObject(params)) return message;
	const declared = isJsonObject(params['capabilities']) ? params['capabilities'] : {};
	const capabilities = Object.entries(declared).flatMap(([name, value]) => {
		if (value === true) return [[name, {}]];
		return isJsonObject(value) ? [[name, withoutNulls(value)]] : [];
	});
	return { ...message, params: { ...params, capabilities: Object.fromEntries(capabilities) } };
}

function withoutNulls(object: JsonObject): JsonObject {
	return Object.fromEntries(
		Object.entries(object)
			.filter(([, value]) => value !== null)
			.map(([name, value]) => [name, isJsonObject(value) ? withoutNulls(value) : value]),
	);
}

/** An SDK server's result as the client's protocol version wants it: what it says of Tasks, or nothing. */
export function inLegacyForm(
	server: McpServer,
	client: LegacyClient,
	request: { readonly method: string },
	result: JsonObject,
): JsonObject {
	const { capabilities, tools } = result;
	if (request.method === 'initialize' && !client.hasTasks && isJsonObject(capabilities))
		return { ...result, capabilities: without(capabilities, 'tasks') };
	if (request.method === 'tools/list' && client.hasTasks && Array.isArray(tools))
		return { ...result, tools: tools.map((tool) => withSupport(server, tool)) };
	return result;
}

function withSupport(server: McpServer, tool: JsonObject): JsonObject {
	const taskSupport = typeof tool['name'] === 'string' ? supportOf(server, tool['name']) : null;
	return !taskSupport ? tool : { ...tool, execution: { taskSupport } };
}
