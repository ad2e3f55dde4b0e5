/** A server of an older version that answers with whatever a test scripts, legal or not, and writes down what it got. */
import {
	Client,
	type ClientOptions,
	InMemoryTransport,
	type JSONRPCMessage,
} from '@modelcontextprotocol/client';
import { TaskClient } from '../../src/client/task-client.ts';
import type { TaskClientOptions } from '../../src/client/task-client-options.ts';

export type Json = Record<string, unknown>;

/** Answers nothing, so that the test does it when it likes. */
export const LATER = Symbol('later');

/** A JSON-RPC answer: `{ result }` or `{ error }`. */
export type Answer = { readonly result: unknown } | { readonly error: Json } | typeof LATER;

/** What the server is. */
export interface LegacyScript {
	readonly protocolVersion?: string;
	readonly capabilities?: Json;
	/** What its only tool, `work`, says about tasks. */
	readonly taskSupport?: string;
	/** Answers by method; a method that is missing is not known to the server. */
	readonly on: Readonly<Record<string, (params: Json) => Answer>>;
}

/** A request as the server got it. */
export interface Got {
	readonly method: string;
	readonly params: Json;
	readonly id: string | number | undefined;
}

/** Tasks in full form. */
export const FULL_TASKS: Json = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

/** The task of a script. */
export function legacyTask(fields: Json = {}): Json {
	return {
		...{ taskId: 't1', status: 'working', ttl: null, pollInterval: 1_000 },
		...{ createdAt: '2025-11-25T00:00:00.000Z', lastUpdatedAt: '2025-11-25T00:00:00.000Z' },
		...fields,
	};
}

/** A text result. */
export function words(text: string): Json {
	return { content: [{ type: 'text', text }] };
}

/** A scripted server with a task client on it, in memory. */
export async function playLegacy(
	script: LegacyScript,
	options: TaskClientOptions = {},
	client: Client = new Client({ name: 'host', version: '1' }, {} satisfies ClientOptions),
) {
	const { protocolVersion = '2025-11-25', capabilities = { tools: {}, tasks: FULL_TASKS } } = script;
	const [near, far] = InMemoryTransport.createLinkedPair();
	const got: Got[] = [];
	/** Answers of the client to requests of the server, by id. */
	const answers = new Map<unknown, Json>();
	const send = (message: Json): void => {
		void far.send({ jsonrpc: '2.0', ...message } as unknown as JSONRPCMessage);
	};
	const on: LegacyScript['on'] = {
		initialize: () => ({
			result: { protocolVersion, capabilities, serverInfo: { name: 'old', version: '1' } },
		}),
		'tools/list': () => {
			const execution = { taskSupport: script.taskSupport ?? 'optional' };
			return { result: { tools: [{ name: 'work', inputSchema: { type: 'object' }, execution }] } };
		},
		'tools/call': () => ({ result: { task: legacyTask() } }),
		...script.on,
	};
	far.onmessage = (message) => {
		const copy = JSON.parse(JSON.stringify(message)) as Json;
		if (!('method' in message)) return void answers.set(copy['id'], copy);
		const { method } = message;
		const params = (copy['params'] ?? {}) as Json;
		const id = 'id' in message ? message.id : undefined;
		got.push({ method, params, id });
		if (id === undefined) return;
		const answer = on[method]?.(params) ?? { error: { code: -32601, message: `No ${method}` } };
		if (answer !== LATER) send({ id, ...answer });
	};
	await far.start();
	await client.connect(near);
	const tasks = new TaskClient(client, { random: () => 0, ...options });
	const of = (method: string): Got[] => got.filter((request) => request.method === method);
	const close = async (): Promise<void> => {
		tasks.close();
		await client.close();
	};
	return { tasks, client, of, answers, send, close };
}
