import * as z from 'zod';
import type { Engine } from '../engine/engine.ts';
import { isHoldfastError, wireCodeOf } from '../errors.ts';
import { isDeeperThan, isJsonObject, type JsonObject, MAX_JSON_DEPTH } from '../protocol/json.ts';
import { TASKS_EXTENSION, type TaskMethod, WIRE_CODES } from '../protocol/names.ts';
import type { InputResponse, WireError } from '../protocol/task.ts';
import { declaresTasks } from '../protocol/capabilities.ts';
import { envelopeOf } from './call-site.ts';
import type { Exchange } from './exchange.ts';
import type { TaskRuntime } from './runtime.ts';
import { type McpServer, ProtocolError } from './sdk.ts';
import { toDetailedTask } from './wire-task.ts';

/** The error for a client that does not declare the extension (T04, T51, T61). */
export const MISSING_CAPABILITY: WireError = {
	code: WIRE_CODES.missingClientCapability,
	message: `This request needs the client capability ${TASKS_EXTENSION}`,
	data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
};

/** What a `tasks/*` request asks. */
export interface TaskRequest {
	readonly method: TaskMethod;
	readonly taskId: unknown;
	readonly inputResponses: unknown;
}

/** The three methods of the extension, or undefined for any other name. */
export function asTaskMethod(method: unknown): TaskMethod | undefined {
	return method === 'tasks/get' || method === 'tasks/update' || method === 'tasks/cancel'
		? method
		: undefined;
}

/**
 * Answers one of the three methods for a declaring client.
 *
 * @throws what {@link toWireError} turns into a JSON-RPC error.
 */
export async function answerTaskRequest(
	engine: Engine,
	request: TaskRequest,
	principal: string,
): Promise<JsonObject> {
	const { method, taskId } = request;
	if (typeof taskId !== 'string') throw new InvalidParams('params.taskId must be a string');
	if (method === 'tasks/get') {
		const record = await engine.get(taskId, principal);
		return { resultType: 'complete', ...toDetailedTask(record, engine.nowMs()) } as unknown as JsonObject;
	}
	if (method === 'tasks/cancel') await engine.cancel(taskId, principal);
	else await engine.update(taskId, principal, checkResponses(request.inputResponses));
	return { resultType: 'complete' };
}

/** Registers the three methods on an SDK server; used on stdio, and over HTTP off the direct path. */
export function registerTaskMethods(server: McpServer, exchange: Exchange, runtime: TaskRuntime): void {
	const schema = z.looseObject({ taskId: z.unknown() });
	for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'] as const)
		server.server.setRequestHandler(method, { params: schema }, async (params, ctx) => {
			try {
				if (!declaresTasks(envelopeOf(ctx))) throw new MissingCapability();
				await runtime.ready();
				// The SDK drops responses that have members of certain names; a client's answer is never lost.
				const inputResponses = exchange.responsesOf(ctx);
				return await answerTaskRequest(
					runtime.engine(),
					{ method, taskId: params.taskId, inputResponses },
					runtime.principal(ctx.http),
				);
			} catch (error) {
				const { code, message, data } = toWireError(error);
				throw new ProtocolError(code, message, data);
			}
		});
}

/** A client error in the parameters. */
export class InvalidParams extends Error {}

/** The request does not declare the extension. */
class MissingCapability extends Error {}

/** The JSON-RPC error for whatever went wrong; nothing internal leaks (T63). */
export function toWireError(error: unknown): WireError {
	if (error instanceof InvalidParams) return { code: WIRE_CODES.invalidParams, message: error.message };
	if (error instanceof MissingCapability) return MISSING_CAPABILITY;
	if (isHoldfastError(error) && wireCodeOf(error.code) === WIRE_CODES.invalidParams)
		return { code: WIRE_CODES.invalidParams, message: error.message };
	return { code: WIRE_CODES.internalError, message: 'Internal error' };
}

/** @throws InvalidParams naming what is wrong. */
export function checkResponses(responses: unknown): Record<string, InputResponse> {
	if (!isJsonObject(responses)) throw new InvalidParams('params.inputResponses must be an object');
	for (const [key, response] of Object.entries(responses))
		if (!isJsonObject(response))
			throw new InvalidParams(`params.inputResponses["${key.slice(0, 100)}"] must be an object`);
	if (isDeeperThan(responses, MAX_JSON_DEPTH))
		throw new InvalidParams(`params.inputResponses is nested more than ${MAX_JSON_DEPTH} levels deep`);
	return responses as Record<string, InputResponse>;
}
