import { HoldfastError, messageOf } from '../errors.ts';
import { InputRequestV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { isTerminal, TASK_STATUSES, type TaskStatus } from '../protocol/status.ts';
import type { DetailedTask, InputRequests, Task, WireError } from '../protocol/task.ts';

/** Longest task id that is taken from a server; it goes into a header and a file. */
const MAX_TASK_ID_LENGTH = 1_024;

/**
 * Reads the task that a `tools/call` was answered with (T10). Unknown fields are ignored.
 *
 * @throws INVALID_RESPONSE naming what is wrong.
 */
export function readCreatedTask(value: JsonObject): Task {
	return readFields(value);
}

/**
 * Reads what `tasks/get` answered or `notifications/tasks` said about a task (T21, T52). Unknown fields are
 * ignored, and so is what does not belong to the status.
 *
 * @throws INVALID_RESPONSE naming what is wrong.
 */
export function readTask(value: unknown, taskId: string): DetailedTask {
	if (!isJsonObject(value)) throw invalid(`the task is ${describe(value)}, not an object`);
	const task = readFields(value);
	if (task.taskId !== taskId)
		throw invalid(`asked for task ${taskId.slice(0, 100)}, got ${task.taskId.slice(0, 100)}`);
	switch (task.status) {
		case 'input_required':
			return { ...task, inputRequests: readInputRequests(value['inputRequests']) };
		case 'completed':
			return { ...task, result: readResult(value['result']) };
		case 'failed':
			return { ...task, error: readError(value['error']) };
		case 'working':
		case 'cancelled':
			return task;
	}
}

/** The task id of a notification's params, when it has one. */
export function taskIdOf(params: JsonObject): string | undefined {
	return typeof params['taskId'] === 'string' ? params['taskId'] : undefined;
}

function readFields(value: JsonObject): Task {
	const { taskId, status, statusMessage, ttlMs, pollIntervalMs } = value;
	if (typeof taskId !== 'string' || taskId === '' || taskId.length > MAX_TASK_ID_LENGTH)
		throw invalid(`taskId is ${describe(taskId)}`);
	if (!isStatus(status)) throw invalid(`status is ${describe(status)}`);
	if (ttlMs !== null && !isDuration(ttlMs)) throw invalid(`ttlMs is ${describe(ttlMs)}`);
	if (pollIntervalMs !== undefined && !isDuration(pollIntervalMs))
		throw invalid(`pollIntervalMs is ${describe(pollIntervalMs)}`);
	if (statusMessage !== undefined && typeof statusMessage !== 'string')
		throw invalid(`statusMessage is ${describe(statusMessage)}`);
	return {
		taskId,
		status,
		...(statusMessage !== undefined && { statusMessage }),
		createdAt: readDate(value, 'createdAt'),
		lastUpdatedAt: readDate(value, 'lastUpdatedAt'),
		ttlMs,
		...(pollIntervalMs !== undefined && { pollIntervalMs }),
	};
}

function readDate(value: JsonObject, name: string): string {
	const date = value[name];
	if (typeof date !== 'string' || Number.isNaN(Date.parse(date)))
		throw invalid(`${name} is ${describe(date)}`);
	return date;
}

function readInputRequests(value: unknown): InputRequests {
	if (!isJsonObject(value)) throw invalid(`inputRequests is ${describe(value)} while input is required`);
	for (const [key, request] of Object.entries(value)) {
		const parsed = InputRequestV2Schema.safeParse(request);
		if (!parsed.success)
			throw invalid(`the input request "${key.slice(0, 100)}" is ${describe(parsed.error.issues)}`);
	}
	return value as unknown as InputRequests;
}

/** Some servers leave `resultType` out of the inlined result: it says nothing that `completed` does not say. */
function readResult(value: unknown): JsonObject {
	if (!isJsonObject(value)) throw invalid(`result is ${describe(value)} in a completed task`);
	const { resultType, ...result } = value;
	if (resultType !== undefined && resultType !== 'complete')
		throw invalid(`the result of a completed task has the resultType ${describe(resultType)}`);
	return result;
}

function readError(value: unknown): WireError {
	if (!isJsonObject(value) || !Number.isInteger(value['code']) || typeof value['message'] !== 'string')
		throw invalid(`error is ${describe(value)} in a failed task`);
	const { code, message, data } = value;
	return { code: Number(code), message, ...(data !== undefined && { data }) };
}

function isStatus(value: unknown): value is TaskStatus {
	return TASK_STATUSES.some((status) => status === value);
}

function isDuration(value: unknown): value is number {
	return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function describe(value: unknown): string {
	try {
		return value === undefined ? 'missing' : (JSON.stringify(value) ?? typeof value).slice(0, 200);
	} catch (error) {
		return messageOf(error);
	}
}

function invalid(what: string): Error {
	return new HoldfastError('INVALID_RESPONSE', `The server broke the Tasks extension: ${what}`);
}

/** Whether nothing more will happen to a task (T24). */
export function hasEnded(task: Task): boolean {
	return isTerminal(task.status);
}
