import * as z from 'zod';
import type { JsonObject } from '../protocol/json.ts';
import { LEGACY_TASKS_CAPABILITY } from '../protocol/legacy-tasks.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import { isTerminal } from '../protocol/status.ts';
import type { Exchange } from './exchange.ts';
import type { LegacyClient } from './legacy-client.ts';
import { legacyResult, relatedTo, toLegacyTask } from './legacy-task.ts';
import { Unanswered } from './question-desk.ts';
import type { TaskRuntime } from './runtime.ts';
import { type McpServer, ProtocolError, type ServerContext } from './sdk.ts';
import { InvalidParams, toWireError } from './task-methods.ts';

/** The four methods of 2025-11-25 (L02). */
type LegacyTaskMethod = 'tasks/get' | 'tasks/result' | 'tasks/cancel' | 'tasks/list';

/** A request of one of the four methods, by a client whose version has them. */
interface LegacyRequest {
	readonly runtime: TaskRuntime;
	readonly exchange: Exchange;
	readonly ctx: ServerContext;
	readonly client: LegacyClient;
	readonly principal: string;
}

/** Advertises the Tasks of 2025-11-25 in full form (L01) and answers its four methods. */
export function registerLegacyMethods(server: McpServer, exchange: Exchange, runtime: TaskRuntime): void {
	server.server.registerCapabilities({ tasks: LEGACY_TASKS_CAPABILITY });
	const register = (
		method: LegacyTaskMethod,
		answer: (request: LegacyRequest, params: Readonly<Record<string, unknown>>) => Promise<JsonObject>,
	): void =>
		server.server.setRequestHandler(method, { params: z.looseObject({}) }, async (params, ctx) => {
			const client = exchange.legacyClientOf(ctx);
			if (!client?.hasTasks) throw new ProtocolError(WIRE_CODES.methodNotFound, 'Method not found');
			try {
				await runtime.ready();
				const principal = runtime.principal(ctx.http);
				return await answer({ runtime, exchange, ctx, client, principal }, params);
			} catch (error) {
				if (error instanceof ProtocolError) throw error;
				const { code, message, data } = toWireError(error);
				throw new ProtocolError(code, message, data);
			}
		});
	register('tasks/get', getTask);
	register('tasks/result', getResult);
	register('tasks/cancel', cancelTask);
	register('tasks/list', (request, { cursor }) => request.exchange.knownTasks.page(request, cursor));
}

async function getTask({ runtime, exchange, principal }: LegacyRequest, params: object): Promise<JsonObject> {
	const engine = runtime.engine();
	const record = await engine.get(taskIdOf(params), principal);
	exchange.knownTasks.add(record.taskId);
	return { ...toLegacyTask(record, engine.nowMs()) };
}

/** Waits for the end, asking the client what the task asks; then answers what the call would have answered. */
async function getResult(request: LegacyRequest, params: object): Promise<JsonObject> {
	const { runtime, exchange, ctx, client, principal } = request;
	const engine = runtime.engine();
	const record = await engine.get(taskIdOf(params), principal);
	exchange.knownTasks.add(record.taskId);
	try {
		const { signal } = ctx.mcpReq;
		const call = engine.rejoin(record);
		const waiting = { ctx, signal, client, engine, principal, call, isTask: true };
		const ended = isTerminal(record.status) ? record : await runtime.questions.waitFor(waiting);
		// Nothing is sent to a request that was cancelled.
		if (!ended) return {};
		if (ended.status === 'failed' && ended.error) {
			const { code, message, data } = ended.error;
			throw new ProtocolError(code, message, data);
		}
		return relatedTo(ended.taskId, legacyResult(ended));
	} catch (error) {
		if (error instanceof Unanswered) throw new ProtocolError(WIRE_CODES.internalError, error.message);
		throw error;
	}
}

/** Answers once the task is `cancelled`, which a running handler may delay by its grace time. */
async function cancelTask({ runtime, ctx, principal }: LegacyRequest, params: object): Promise<JsonObject> {
	const engine = runtime.engine();
	const record = await engine.get(taskIdOf(params), principal);
	if (!isTerminal(record.status)) {
		await engine.cancel(record.taskId, principal);
		const ended = await engine
			.rejoin(record)
			.until(({ status }) => isTerminal(status), null, ctx.mcpReq.signal);
		if (!ended) return {};
		if (ended.status === 'cancelled') return { ...toLegacyTask(ended, engine.nowMs()) };
		throw alreadyEnded(ended.status);
	}
	throw alreadyEnded(record.status);
}

function alreadyEnded(status: string): InvalidParams {
	return new InvalidParams(`The task cannot be cancelled: it is already ${status}`);
}

function taskIdOf(params: object): string {
	const taskId: unknown = Reflect.get(params, 'taskId');
	if (typeof taskId !== 'string') throw new InvalidParams('params.taskId must be a string');
	return taskId;
}
