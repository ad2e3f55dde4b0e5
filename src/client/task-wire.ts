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
	/**
	 * Called while a task is `input_required`: has its questions brought to the host, where that takes a request that
	 * is open for as long as people think (L04). Resolves with how the task ended, or undefined where the questions
	 * come with the task (T30).
	 */
	attend(taskId: string, signal: AbortSignal): Promise<DetailedTask | undefined>;
	/**
	 * What a notification says about a task; undefined when it only says that there is news to ask for.
	 *
	 * @throws INVALID_RESPONSE
	 */
	notified(params: JsonObject, taskId: string): DetailedTask | undefined;
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
		attend: async () => undefined,
		notified: readTask,
		update: async (taskId, inputResponses, signal) => {
			await send('tasks/update', { taskId, inputResponses }, ANY_RESULT, signal);
		},
		cancel: async (taskId, signal) => {
			await send('tasks/cancel', { taskId }, ANY_RESULT, signal);
		},
	};
}
