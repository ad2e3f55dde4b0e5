import { declaresTasks } from '../protocol/capabilities.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { CLIENT_INFO_META, PROTOCOL_VERSION_META, TASKS_PROTOCOL_VERSION } from '../protocol/names.ts';
import { answerTaskRequest, asTaskMethod, type TaskRequest, toWireError } from './task-methods.ts';
import type { TaskRuntime } from './runtime.ts';

/** Reads one header. */
export type HeaderReader = (name: string) => string | undefined;

/** A `tasks/*` request that is beyond doubt. */
export interface DirectRequest extends TaskRequest {
	readonly id: string | number;
}

/** Whether headers announce one of the three task methods, so that it is worth looking at the body. */
export function announcesTaskMethod(header: HeaderReader): boolean {
	return (
		asTaskMethod(header('mcp-method')) !== undefined &&
		header('mcp-protocol-version') === TASKS_PROTOCOL_VERSION
	);
}

/** Whether a request's body is JSON, by what it says. */
export function announcesJson(header: HeaderReader): boolean {
	return (header('content-type') ?? '').split(';')[0]?.trim().toLowerCase() === 'application/json';
}

/**
 * Recognises a `tasks/*` request whose headers and envelope are right in every point (T60, T61). Undefined for
 * anything else: the SDK, which builds a whole server for each request, then finds the right error.
 */
export function asDirectRequest(header: HeaderReader, body: unknown): DirectRequest | undefined {
	if (!isJsonObject(body) || body['jsonrpc'] !== '2.0') return undefined;
	const { id } = body;
	const method = asTaskMethod(body['method']);
	const params = body['params'];
	if (!method || !isJsonObject(params) || (typeof id !== 'string' && !Number.isSafeInteger(id)))
		return undefined;
	const { taskId, _meta: meta } = params;
	const named = typeof taskId === 'string' && header('mcp-name') === taskId;
	if (header('mcp-method') !== method || !named || !isJsonObject(meta)) return undefined;
	if (meta[PROTOCOL_VERSION_META] !== TASKS_PROTOCOL_VERSION || !declaresTasks(meta)) return undefined;
	if (!isClientInfo(meta[CLIENT_INFO_META])) return undefined;
	return { id: id as string | number, method, taskId, inputResponses: params['inputResponses'] };
}

/** Answers a request that {@link asDirectRequest} recognised. */
export async function answerDirectly(
	runtime: TaskRuntime,
	request: DirectRequest,
	principal: () => string,
): Promise<JsonObject> {
	const { id } = request;
	try {
		const result = await answerTaskRequest(runtime.engine(), request, principal());
		return { jsonrpc: '2.0', id, result };
	} catch (error) {
		return { jsonrpc: '2.0', id, error: { ...toWireError(error) } };
	}
}

function isClientInfo(info: unknown): boolean {
	return (
		info === undefined ||
		(isJsonObject(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string')
	);
}
