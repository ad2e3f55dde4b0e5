import { HoldfastError } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { LEGACY_TASKS_VERSION } from '../protocol/legacy-tasks.ts';
import type { DetailedTask, Task, WireError } from '../protocol/task.ts';
import { RequestProblem } from './problem.ts';
import { hasEnded, readCreatedTask } from './read-task.ts';
import { ProtocolError } from './sdk.ts';
import { ANY_RESULT, type SendRequest, type TaskWire } from './task-wire.ts';

/** What `tasks/result` answered: what the call itself would have been answered with. */
type CallEnd = { readonly result: JsonObject } | { readonly error: WireError };

/**
 * The wire of the experimental Tasks of 2025-11-25 (L02): `tasks/get` says where a task stands and nothing more,
 * `tasks/result` has its outcome, and is also the request on which the server asks its questions (L04).
 *
 * @param send - sends a request that is answered at once.
 * @param sendLong - sends a request that is answered when people have thought.
 */
export function legacyWire(send: SendRequest, sendLong: SendRequest): TaskWire {
	const look = async (taskId: string, signal: AbortSignal): Promise<Task> => {
		const answer = await send('tasks/get', { taskId }, ANY_RESULT, signal).catch(rethrow);
		const task = readLegacyTask(answer);
		if (task.taskId === taskId) return task;
		throw new HoldfastError('INVALID_RESPONSE', `Asked for task ${taskId}, got ${task.taskId}`);
	};
	return {
		protocolVersion: LEGACY_TASKS_VERSION,
		get: async (taskId, signal) => {
			const task = await look(taskId, signal);
			return hasOutcome(task) ? withEnd(task, await endOf(send, taskId, signal)) : task;
		},
		attend: async (taskId, signal) => {
			const end = await endOf(sendLong, taskId, signal);
			return withEnd(await look(taskId, signal), end);
		},
		update: async () => {
			throw new HoldfastError(
				'INVALID_RESPONSE',
				`A server of ${LEGACY_TASKS_VERSION} takes no answers by key`,
			);
		},
		cancel: async (taskId, signal) => {
			try {
				await send('tasks/cancel', { taskId }, ANY_RESULT, signal).catch(rethrow);
			} catch (error) {
				// A task that has ended refuses; that is as good as cancelled, and polling finds out how it ended.
				if (!(error instanceof ProtocolError) || !hasEnded(await look(taskId, signal))) throw error;
			}
		},
		notified: (params, taskId) => {
			const task = readLegacyTask(params);
			// The outcome and the questions have to be asked for.
			return task.taskId === taskId && task.status === 'working' ? task : undefined;
		},
	};
}

/**
 * Reads the task that `tools/call` nests, or that `tasks/get` answers (L02).
 *
 * @throws INVALID_RESPONSE naming what is wrong.
 */
export function readLegacyTask(value: unknown): Task {
	if (!isJsonObject(value)) throw new HoldfastError('INVALID_RESPONSE', 'The server sent no task');
	const { ttl, pollInterval, ...fields } = value;
	return readCreatedTask({
		// Servers of the drafts before leave out what did not exist then.
		...(typeof fields['createdAt'] === 'string' && { lastUpdatedAt: fields['createdAt'] }),
		...fields,
		ttlMs: ttl ?? null,
		...(pollInterval !== undefined && pollInterval !== null && { pollIntervalMs: pollInterval }),
	});
}

function hasOutcome({ status }: Task): boolean {
	return status === 'completed' || status === 'failed';
}

async function endOf(send: SendRequest, taskId: string, signal: AbortSignal): Promise<CallEnd> {
	try {
		return { result: await send('tasks/result', { taskId }, ANY_RESULT, signal).catch(rethrow) };
	} catch (error) {
		if (!(error instanceof ProtocolError)) throw error;
		const { code, message, data } = error;
		return { error: { code, message, ...(data !== undefined && { data: data as WireError['data'] & {} }) } };
	}
}

/**
 * @throws the error of a task that is not said to have failed: then it is the server's, and not the call's.
 */
function withEnd(task: Task, end: CallEnd): DetailedTask {
	if (task.status === 'cancelled') return task;
	if ('result' in end) return hasOutcome(task) ? { ...task, result: end.result } : task;
	const { code, message, data } = end.error;
	if (task.status !== 'failed') throw ProtocolError.fromError(code, message, data);
	const { statusMessage } = task;
	// Servers that keep no error of a failed task have their own one here; the task says better what happened.
	const says = statusMessage === undefined || message.includes(statusMessage) ? '' : ` (${statusMessage})`;
	return { ...task, error: { ...end.error, message: `${message}${says}` } };
}

/** Some servers say that they do not know a task in their own words, under the code of an internal error. */
function rethrow(error: unknown): never {
	if (error instanceof ProtocolError && /\btask\b.*\b(not found|unknown|expired)\b/i.test(error.message))
		throw new RequestProblem('forgotten', error);
	throw error;
}
