/** What nobody should send, for both transports. */
import type { JsonObject, JsonValue } from '../../src/protocol/json.ts';
import { CLIENT_CAPABILITIES_META, IDEMPOTENCY_KEY_META } from '../../src/protocol/names.ts';
import { envelope } from './wire.ts';

/** A request, and the codes that are a right answer to it. */
export interface BadCase {
	readonly name: string;
	readonly method: string;
	readonly params: JsonObject;
	readonly codes: readonly number[];
}

export const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;
const MISSING_CAPABILITY = -32021;

/** Brackets in brackets: {"a":{"a":...}}. */
export function deepObject(levels: number): string {
	return `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
}

export function deepArray(levels: number): string {
	return '['.repeat(levels) + ']'.repeat(levels);
}

function call(name: JsonValue, args: JsonValue, meta: JsonObject = {}): JsonObject {
	return { name, arguments: args, _meta: { ...envelope(), ...meta } };
}

function onTask(method: string, params: JsonObject): Pick<BadCase, 'method' | 'params'> {
	return { method, params: { _meta: envelope(), ...params } };
}

/** `taskId` is a task of the caller's that waits for the answer to `go`. */
export function badCases(taskId: string): BadCase[] {
	const cases: BadCase[] = [];
	const add = (name: string, codes: readonly number[], what: Pick<BadCase, 'method' | 'params'>): void =>
		void cases.push({ name, codes, ...what });
	const tool = (params: JsonObject): Pick<BadCase, 'method' | 'params'> => ({ method: 'tools/call', params });

	for (const bad of [5, null, true, [], {}, ['echo']])
		add(`a tool name that is ${JSON.stringify(bad)}`, [INVALID_PARAMS], tool(call(bad, {})));
	for (const bad of ['nothing', '', 'x'.repeat(10_000), '../echo', 'echo\0', '__proto__', 'constructor'])
		add(`an unknown tool ${JSON.stringify(bad.slice(0, 20))}`, [INVALID_PARAMS], tool(call(bad, {})));
	for (const bad of ['text', 5, true, [], [1]])
		add(`arguments that are ${JSON.stringify(bad)}`, [INVALID_PARAMS], tool(call('echo', bad)));
	for (const key of ['', 5, true, null, {}, [], 'k'.repeat(256), 'k'.repeat(100_000)])
		add(`the idempotency key ${JSON.stringify(key).slice(0, 20)}`, [INVALID_PARAMS], {
			...tool(call('echo', { text: 'a' }, { [IDEMPOTENCY_KEY_META]: key })),
		});
	for (const bad of [null, 5, 'text', [], true])
		add(`clientCapabilities that are ${JSON.stringify(bad)}`, [INVALID_PARAMS], {
			...tool(call('echo', { text: 'a' }, { [CLIENT_CAPABILITIES_META]: bad })),
		});
	for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
		for (const bad of [5, null, true, {}, [], [taskId]])
			add(`${method} of a task id that is ${JSON.stringify(bad)}`, [INVALID_PARAMS], {
				...onTask(method, { taskId: bad, inputResponses: {} }),
			});
		add(`${method} without a task id`, [INVALID_PARAMS], onTask(method, { inputResponses: {} }));
		for (const bad of ['', 'x'.repeat(10_000), 'a\0b', '../x', `${taskId} `, 'nul\u0000', '日本'])
			add(`${method} of the task id ${JSON.stringify(bad.slice(0, 20))}`, [INVALID_PARAMS], {
				...onTask(method, { taskId: bad, inputResponses: {} }),
			});
		add(`${method} of a client that declares nothing`, [MISSING_CAPABILITY], {
			...onTask(method, { taskId, inputResponses: {}, _meta: envelope({}) }),
		});
		add(`${method} of a client that declares no Tasks`, [MISSING_CAPABILITY], {
			...onTask(method, { taskId, inputResponses: {}, _meta: envelope({ elicitation: {} }) }),
		});
	}
	for (const bad of [null, 5, 'text', [], true])
		add(`inputResponses that are ${JSON.stringify(bad)}`, [INVALID_PARAMS], {
			...onTask('tasks/update', { taskId, inputResponses: bad }),
		});
	add('tasks/update without inputResponses', [INVALID_PARAMS], onTask('tasks/update', { taskId }));
	for (const bad of [null, 5, 'text', [], true])
		add(`an answer that is ${JSON.stringify(bad)}`, [INVALID_PARAMS], {
			...onTask('tasks/update', { taskId, inputResponses: { go: bad } }),
		});
	for (const method of ['tasks/list', 'tasks/result', 'tasks', 'tasks/', 'nothing/at/all', '__proto__', ''])
		add(`the method ${JSON.stringify(method)}`, [METHOD_NOT_FOUND], onTask(method, { taskId }));
	add('a subscription to taskIds of a client that declares no Tasks', [MISSING_CAPABILITY], {
		method: 'subscriptions/listen',
		params: { notifications: { taskIds: [1, 2] }, _meta: envelope({}) },
	});
	return cases;
}

/** Arguments that the schema of `echo` refuses: tool errors for the model to read, as the SDK does it, and no task. */
export const AGAINST_SCHEMA: readonly JsonObject[] = [
	{},
	{ text: 5 },
	{ text: null },
	{ text: ['a'] },
	{ text: 'a', times: 'many' },
	{ text: 'a', times: 1.5 },
	{ text: 'a', unknown: 1 },
];

/** Words that only the inside of the server knows. */
export const INTERNALS =
	/\bat [\w.<>]+ \(|node:internal|\/work\/|\/home\/|\/src\/|\.ts\b|\.mjs\b|node_modules|Maximum call stack|SQLITE|RangeError|TypeError|ZodError/;
