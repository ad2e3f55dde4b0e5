import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { RELATED_TASK_META } from '../protocol/legacy-tasks.ts';
import type { InputMethod, InputRequest, InputResponse } from '../protocol/task.ts';
import { messageOf } from '../errors.ts';
import { WIRE_CODES } from '../protocol/names.ts';
import type { JSONRPCMessage } from './sdk.ts';

/** Answers a question of a task in place of the SDK's handlers; undefined leaves it to them. */
export type QuestionHandler = (
	taskId: string,
	key: string,
	request: InputRequest,
) => Promise<InputResponse> | undefined;

type RequestId = string | number;

/** A question that is being thought about. */
interface OpenQuestion {
	readonly identity: string;
	/** The requests that asked it; the first is the one that the handler sees. */
	readonly requestIds: RequestId[];
}

const METHODS: readonly InputMethod[] = ['elicitation/create', 'sampling/createMessage', 'roots/list'];

/**
 * The questions of the tasks of 2025-11-25, which a server asks with requests of its own while `tasks/result` is open
 * (L04). A server that asks again because a connection broke meanwhile does so with a new request: the same question
 * is put to the host once while it is open, and its answer goes to each request that asked it.
 */
export class LegacyQuestions {
	readonly #send: (message: JSONRPCMessage) => Promise<void>;
	readonly #open = new Map<RequestId, OpenQuestion>();
	readonly #handlers = new Set<QuestionHandler>();

	constructor(send: (message: JSONRPCMessage) => Promise<void>) {
		this.#send = send;
	}

	/** Offers each question to `handler`, until the returned function is called. */
	offerTo(handler: QuestionHandler): () => void {
		this.#handlers.add(handler);
		return () => void this.#handlers.delete(handler);
	}

	/** Takes a message from the server; false when the SDK must not see it. */
	inbound(message: JSONRPCMessage): boolean {
		if (!('method' in message) || !isJsonObject(message.params)) return true;
		if (message.method === 'notifications/cancelled') return this.#cancelled(message.params);
		const taskId = relatedTaskOf(message.params);
		const method = METHODS.find((known) => known === message.method);
		if (!('id' in message) || taskId === undefined || method === undefined) return true;
		const { params } = message;
		const identity = JSON.stringify([taskId, method, { ...params, _meta: null }]);
		const same = [...this.#open.values()].find((open) => open.identity === identity);
		const open = same ?? { identity, requestIds: [] };
		open.requestIds.push(message.id);
		this.#open.set(message.id, open);
		if (same) return false;
		for (const handler of this.#handlers) {
			const answer = handler(taskId, `request:${message.id}`, { method, params });
			if (!answer) continue;
			void this.#answer(open, answer);
			return false;
		}
		return true;
	}

	/** Sees the SDK's answer to the first request of a question, and gives it to the others. */
	outbound(message: JSONRPCMessage): void {
		if ('method' in message || message.id === undefined) return;
		const open = this.#open.get(message.id);
		if (open) this.#close(open, message, message.id);
	}

	async #answer(open: OpenQuestion, answer: Promise<InputResponse>): Promise<void> {
		const [id = 0] = open.requestIds;
		const body = await answer.then(
			(result) => ({ result }),
			(error: unknown) => ({ error: { code: WIRE_CODES.internalError, message: messageOf(error) } }),
		);
		this.#close(open, { jsonrpc: '2.0', id, ...body }, undefined);
	}

	#close(open: OpenQuestion, answer: JSONRPCMessage, sentId: RequestId | undefined): void {
		for (const id of open.requestIds) {
			this.#open.delete(id);
			// A request whose stream is gone does not take the answer; the one that asked again does.
			if (id !== sentId) this.#send({ ...answer, id }).catch(() => {});
		}
	}

	/** A request that was taken back; its question stays open as long as another request asks it. */
	#cancelled(params: JsonObject): boolean {
		const requestId = params['requestId'];
		if (typeof requestId !== 'string' && typeof requestId !== 'number') return true;
		const open = this.#open.get(requestId);
		if (!open) return true;
		if (open.requestIds.length > 1) return false;
		this.#open.delete(requestId);
		return true;
	}
}

/** The task that a message belongs to (L02). */
export function relatedTaskOf(params: JsonObject): string | undefined {
	const meta = params['_meta'];
	const related = isJsonObject(meta) ? meta[RELATED_TASK_META] : undefined;
	const taskId = isJsonObject(related) ? related['taskId'] : undefined;
	return typeof taskId === 'string' ? taskId : undefined;
}
