import * as z from 'zod';
import type { JsonObject } from '../protocol/json.ts';
import type { DetailedTask, InputResponses } from '../protocol/task.ts';
import { readTask } from './read-task.ts';

/**
 * How tasks are asked for, answered and cancelled on one protocol version. Each method makes one attempt and
 * throws what the SDK throws.
 */
export interface TaskWire {
	/** The protocol version that the tasks of this wire belong to. */
	readonly protocolVersion: string;
	/** @throws INVALID_RESPONSE when the answer is none that the extension allows. */
	get(taskId: string, signal: AbortSignal): Promise<DetailedTask>;
	update(taskId: string, responses: InputResponses, signal: AbortSignal): Promise<void>;
	cancel(taskId: string, signal: AbortSignal): Promise<void>;
}

/** Sends one request over the SDK client; the result comes without its `resultType`. */
export type SendRequest = (
	method: string,
	params: JsonObject,
	schema: typeof ANY_RESULT,
	signal: AbortSignal,
) => Promise<JsonObject>;

/** The SDK wants a schema for methods that it does not know; {@link readTask} says better what is wrong. */
export const ANY_RESULT = z.custom<JsonObject>();

/** The wire of the Tasks extension on 2026-07-28. */
export function extensionWire(protocolVersion: string, send: SendRequest): TaskWire {
	return {
		protocolVersion,
		get: async (taskId, signal) => readTask(await send('tasks/get', { taskId }, ANY_RESULT, signal), taskId),
		update: async (taskId, inputResponses, signal) => {
			await send('tasks/update', { taskId, inputResponses }, ANY_RESULT, signal);
		},
		cancel: async (taskId, signal) => {
			await send('tasks/cancel', { taskId }, ANY_RESULT, signal);
		},
	};
}
