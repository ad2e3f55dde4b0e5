import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import {
	CLIENT_CAPABILITIES_META,
	CLIENT_INFO_META,
	PROTOCOL_VERSION_META,
	TASKS_EXTENSION,
	TASKS_PROTOCOL_VERSION,
} from '../protocol/names.ts';
import type { CreateTaskResult, DetailedTask, InputResponses } from '../protocol/task.ts';
import { DEMO_TOOL } from './demo-steps.ts';
import { Failure } from './failure.ts';

const REQUEST_TIMEOUT_MS = 10_000;

/** What the demo says of itself in each request; there is no session. */
const META = {
	[PROTOCOL_VERSION_META]: TASKS_PROTOCOL_VERSION,
	[CLIENT_INFO_META]: { name: 'holdfast-demo-client', version: '1.0.0' },
	[CLIENT_CAPABILITIES_META]: { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } },
};

/** A client of protocol 2026-07-28 in plain `fetch`: each call is one POST, and no connection holds the task. */
export class DemoClient {
	readonly #url: string;
	#lastId = 0;
	/** How many requests were sent, by method, answered or not. */
	readonly sent = new Map<string, number>();
	/** How many requests found nobody. */
	unanswered = 0;

	constructor(url: string) {
		this.#url = url;
	}

	/** Whether the server says that it speaks Tasks. */
	async discover(): Promise<boolean> {
		const { capabilities } = await this.#request('server/discover', {});
		const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : undefined;
		return isJsonObject(extensions) && TASKS_EXTENSION in extensions;
	}

	/** Calls the demo's tool; the answer is a task. */
	async call(args: JsonObject): Promise<CreateTaskResult> {
		const result = await this.#request('tools/call', { name: DEMO_TOOL, arguments: args }, DEMO_TOOL);
		if (result['resultType'] !== 'task')
			throw new Failure(`The call gave no task: ${JSON.stringify(result)}`);
		return result as unknown as CreateTaskResult;
	}

	/** The task as it stands; undefined while nobody answers. */
	async get(taskId: string): Promise<DetailedTask | undefined> {
		try {
			return (await this.#request('tasks/get', { taskId }, taskId)) as unknown as DetailedTask;
		} catch (error) {
			if (error instanceof Failure) throw error;
			this.unanswered += 1;
			return undefined;
		}
	}

	/** Answers questions of a task. */
	async update(taskId: string, inputResponses: InputResponses): Promise<void> {
		await this.#request('tasks/update', { taskId, inputResponses }, taskId);
	}

	/** The result of one request. Rejects with a {@link Failure} for an error, with another one when nobody answers. */
	async #request(method: string, params: JsonObject, name?: string): Promise<JsonObject> {
		this.sent.set(method, (this.sent.get(method) ?? 0) + 1);
		this.#lastId += 1;
		const response = await fetch(this.#url, {
			method: 'POST',
			headers: {
				'content-type': 'application/json',
				accept: 'application/json, text/event-stream',
				'mcp-protocol-version': TASKS_PROTOCOL_VERSION,
				'mcp-method': method,
				...(name !== undefined && { 'mcp-name': name }),
			},
			body: JSON.stringify({ jsonrpc: '2.0', id: this.#lastId, method, params: { ...params, _meta: META } }),
			signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
		});
		const text = await response.text();
		const message = parseAnswer(text, response.headers.get('content-type') ?? '');
		if (isJsonObject(message) && isJsonObject(message['result'])) return message['result'];
		throw new Failure(`The server answered ${method} with ${response.status} ${text}`);
	}
}

/** The answer in a body, which is JSON or one event of a stream. */
function parseAnswer(text: string, contentType: string): unknown {
	try {
		if (!contentType.startsWith('text/event-stream')) return JSON.parse(text);
		const data = text.split('\n').findLast((line) => line.startsWith('data:'));
		return data === undefined ? undefined : JSON.parse(data.slice('data:'.length));
	} catch {
		return undefined;
	}
}
