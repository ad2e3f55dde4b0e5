import { declaresTasks } from '../protocol/capabilities.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { SUBSCRIPTION_ID_META, WIRE_CODES } from '../protocol/names.ts';
import type { WireError } from '../protocol/task.ts';
import { frameData, isEventStream, SSE_HEADERS, sseFrame, sseFrames, SseWriter } from './sse.ts';
import { Subscription } from './subscription.ts';
import { MISSING_CAPABILITY, toWireError } from './task-methods.ts';
import type { TaskRuntime } from './runtime.ts';

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** A `subscriptions/listen` request that names tasks. */
export interface ListenRequest {
	readonly id: string | number;
	/** Undefined when the request names them in a shape that is none. */
	readonly taskIds: readonly string[] | undefined;
	readonly meta: unknown;
}

/** Reads a listen request that names tasks; undefined for anything else, which the SDK answers alone. */
export function asTaskListen(message: unknown): ListenRequest | undefined {
	if (!isJsonObject(message) || message['method'] !== 'subscriptions/listen') return undefined;
	const { id } = message;
	const params = isJsonObject(message['params']) ? message['params'] : {};
	const notifications = isJsonObject(params['notifications']) ? params['notifications'] : {};
	const taskIds = notifications['taskIds'];
	if (taskIds === undefined || (typeof id !== 'string' && typeof id !== 'number')) return undefined;
	const isList = Array.isArray(taskIds) && taskIds.every((taskId) => typeof taskId === 'string');
	return { id, taskIds: isList ? taskIds : undefined, meta: params['_meta'] };
}

/** What is wrong with a listen request that names tasks, the missing capability first (T51). */
export function refuseListen({ meta, taskIds }: ListenRequest): WireError | undefined {
	if (!declaresTasks(meta)) return MISSING_CAPABILITY;
	if (taskIds) return undefined;
	return {
		code: WIRE_CODES.invalidParams,
		message: 'params.notifications.taskIds must be an array of strings',
	};
}

/** The acknowledgement with the honoured task ids in it (T50, T54). */
export function acknowledge(message: JsonObject, taskIds: readonly string[]): JsonObject {
	const params = isJsonObject(message['params']) ? message['params'] : {};
	const notifications = isJsonObject(params['notifications']) ? params['notifications'] : {};
	return { ...message, params: { ...params, notifications: { ...notifications, taskIds } } };
}

/** Task subscriptions over HTTP: the SDK answers first, then task notifications are spliced into its stream. */
export class HttpListen {
	readonly #runtime: TaskRuntime;
	readonly #maxStreams: number;
	readonly #open = new Set<() => void>();
	#opening = 0;

	constructor(runtime: TaskRuntime, maxStreams: number) {
		this.#runtime = runtime;
		this.#maxStreams = maxStreams;
	}

	/** Answers a listen request; `inner` is the SDK's answer, which checked headers, version and shape. */
	async answer(
		request: ListenRequest,
		inner: Response,
		principal: string,
		gone: AbortSignal,
	): Promise<Response> {
		if (!isEventStream(inner)) return inner;
		const refusal = refuseListen(request);
		if (refusal) {
			await inner.body.cancel();
			const status = refusal === MISSING_CAPABILITY ? 400 : 200;
			return Response.json({ jsonrpc: '2.0', id: request.id, error: refusal }, { status });
		}
		if (this.#opening + this.#open.size >= this.#maxStreams) {
			await inner.body.cancel();
			const error = {
				code: WIRE_CODES.internalError,
				message: `The server has ${this.#maxStreams} subscriptions, which is its limit`,
			};
			return Response.json({ jsonrpc: '2.0', id: request.id, error });
		}
		this.#opening += 1;
		try {
			return await this.#splice(request, inner.body, principal, gone);
		} catch (error) {
			await inner.body.cancel();
			return Response.json({ jsonrpc: '2.0', id: request.id, error: toWireError(error) });
		} finally {
			this.#opening -= 1;
		}
	}

	async #splice(
		request: ListenRequest,
		body: ReadableStream<Uint8Array>,
		principal: string,
		gone: AbortSignal,
	): Promise<Response> {
		let writer: SseWriter | undefined;
		const subscription = await Subscription.open(
			{ id: request.id, taskIds: request.taskIds ?? [], principal, engine: this.#runtime.engine() },
			(notification) => writer?.write(sseFrame(notification)) ?? Promise.resolve(),
		);
		let cancelInner = (): void => {};
		const leave = (): void => stream.close();
		const stream = new SseWriter(() => {
			gone.removeEventListener('abort', leave);
			subscription.close();
			this.#open.delete(end);
			cancelInner();
		});
		writer = stream;
		let completion = sseFrame({
			jsonrpc: '2.0',
			id: request.id,
			result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID_META]: request.id } },
		});
		const end = (): void => {
			stream.writeNow(completion);
			stream.close();
		};
		this.#open.add(end);
		gone.addEventListener('abort', leave, { once: true });
		const splice = async (): Promise<void> => {
			const frames = sseFrames(body);
			cancelInner = () => void frames.return(undefined).catch(() => {});
			for await (const frame of frames) {
				const message = frameData(frame);
				if (isJsonObject(message) && message['method'] === ACKNOWLEDGED) {
					stream.writeNow(sseFrame(acknowledge(message, subscription.taskIds)));
					subscription.start();
				} else if (isJsonObject(message) && message['id'] === request.id && subscription.taskIds.length > 0) {
					// The SDK honours nothing else and is done; the task half of the stream goes on.
					completion = frame;
					return;
				} else stream.writeNow(frame);
			}
			stream.close();
		};
		splice().catch(() => stream.close());
		if (gone.aborted) leave();
		return new Response(stream.stream, { status: 200, headers: SSE_HEADERS });
	}

	/** Ends every stream with its completion result (T55). */
	close(): void {
		for (const end of [...this.#open]) end();
	}
}
