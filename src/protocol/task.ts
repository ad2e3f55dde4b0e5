import type { JsonObject, JsonValue } from './json.ts';
import type { TaskStatus } from './status.ts';

/** A JSON-RPC error as it stands in a `failed` task (T21). */
export interface WireError {
	readonly code: number;
	readonly message: string;
	readonly data?: JsonValue;
}

/** The methods that a server may ask a client for input with. */
export type InputMethod = 'elicitation/create' | 'sampling/createMessage' | 'roots/list';

/** One question to the client, in the shape of the standalone request (T34). */
export interface InputRequest {
	readonly method: InputMethod;
	readonly params?: JsonObject;
}

/** The client's answer to one {@link InputRequest}, as the standalone request would have returned it. */
export type InputResponse = JsonObject;

/** Outstanding questions by input key. A key is never reused within a task's life (T31). */
export type InputRequests = Readonly<Record<string, InputRequest>>;

/** Answers by input key. */
export type InputResponses = Readonly<Record<string, InputResponse>>;

/** A task as every Tasks message carries it (T10). */
export interface Task {
	readonly taskId: string;
	readonly status: TaskStatus;
	/** Words for a person about where the task stands. */
	readonly statusMessage?: string;
	/** ISO 8601. */
	readonly createdAt: string;
	/** ISO 8601. */
	readonly lastUpdatedAt: string;
	/** Milliseconds after `createdAt` for which the task is kept; null is unlimited. holdfast always gives a number. */
	readonly ttlMs: number | null;
	/** Milliseconds that a client should wait between two `tasks/get`. holdfast always gives it. */
	readonly pollIntervalMs?: number;
}

/** The answer to a `tools/call` that became a task (T10): flat, with nothing else in it. */
export interface CreateTaskResult extends Task {
	readonly resultType: 'task';
}

/** What `tasks/get` and `notifications/tasks` carry (T20, T21, T52). */
export interface DetailedTask extends Task {
	/** All outstanding questions; only while `input_required`. */
	readonly inputRequests?: InputRequests;
	/** What the call would have returned; only when `completed`. */
	readonly result?: JsonObject;
	/** The JSON-RPC error; only when `failed`. */
	readonly error?: WireError;
}
