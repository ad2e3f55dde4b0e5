/** What the tests on the wire do again and again. */
import { expect } from 'vitest';
import type { JsonObject } from '../../src/protocol/json.ts';
import type { TaskServer } from '../../src/server/index.ts';
import { ANY_INPUT, POLICY } from './engine-rig.ts';
import { eventually, type Wire, type WireAnswer, type WireOptions } from './wire.ts';

/** Calls a tool. */
export function call(
	wire: Wire,
	name: string,
	args: JsonObject = {},
	options: WireOptions = {},
): Promise<WireAnswer> {
	return wire.request('tools/call', { name, arguments: args }, options);
}

/** Calls a tool that becomes a task, and answers the id of that. */
export async function begin(wire: Wire, name: string, args: JsonObject = {}): Promise<string> {
	const made = await call(wire, name, args);
	expect(made.result?.['resultType']).toBe('task');
	return made.result?.['taskId'] as string;
}

/** The task as `tasks/get` gives it. */
export async function getTask(wire: Wire, taskId: string): Promise<JsonObject> {
	const { result } = await wire.request('tasks/get', { taskId });
	expect(result?.['taskId']).toBe(taskId);
	return result ?? {};
}

/** The task as soon as it is in a status. */
export function inStatus(wire: Wire, taskId: string, status: string): Promise<JsonObject> {
	return eventually(async () => {
		const task = await getTask(wire, taskId);
		expect(task['status']).toBe(status);
		return task;
	});
}

/** The parameters of one of the three methods. */
export function paramsFor(method: string, taskId: string): JsonObject {
	return { taskId, ...(method === 'tasks/update' && { inputResponses: {} }) };
}

/** The three methods of the extension. */
export const TASK_METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const;

/** A stored task of somebody who is no client of this test. */
export async function foreignTask(server: TaskServer): Promise<string> {
	const { taskId } = await server.engine.call({
		...{ tool: 'slow', arguments: { gate: 'foreign' }, prepared: null, principal: 'somebody else' },
		...{
			policy: POLICY,
			inputCapabilities: ANY_INPUT,
			idempotencyKey: null,
			trace: {},
			keepFirst: true,
			joinsRunning: false,
			enter: null,
		},
	});
	return taskId;
}

/** Everything but `_meta`, in which the SDK names the server. */
export function withoutMeta({ _meta, ...rest }: JsonObject): JsonObject {
	return rest;
}
