import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import type { TaskRecord } from '../backend/record.ts';
import type { Call } from '../engine/call.ts';
import { MAX_TIMER_MS } from '../engine/clock.ts';
import type { Engine } from '../engine/engine.ts';
import { isHoldfastError, messageOf } from '../errors.ts';
import { canAsk } from '../protocol/capabilities.ts';
import { type JsonObject, without } from '../protocol/json.ts';
import { isTerminal } from '../protocol/status.ts';
import type { InputRequest, InputResponses } from '../protocol/task.ts';
import type { LegacyClient } from './legacy-client.ts';
import { relatedTo } from './legacy-task.ts';
import type { ServerContext } from './sdk.ts';
import { checkResponses } from './task-methods.ts';

/** A legacy request that waits for the end of a task, and whose client can be asked meanwhile. */
export interface Waiting {
	readonly ctx: ServerContext;
	/** Fires when the request need not be answered any more. */
	readonly signal: AbortSignal;
	readonly call: Call;
	readonly client: LegacyClient;
	readonly engine: Engine;
	readonly principal: string;
	/** Whether messages name the task: the client knows it by its id. */
	readonly isTask: boolean;
}

/** How long a request waits for a task. */
export interface Patience {
	readonly isEnough: (record: TaskRecord) => boolean;
	/** Null is for ever. */
	readonly waitMs: number | null;
}

const UNTIL_ITS_END: Patience = { isEnough: (record) => isTerminal(record.status), waitMs: null };

/** A client that is asked and cannot answer: the question stays open, the request that waits ends. */
export class Unanswered extends Error {}

/**
 * Asks the questions of tasks on the streams of those who wait for their end. Of several requests that wait for
 * one task, the last one that came is asked: the stream of an earlier one may be dead without a sign. When it
 * goes away the one before is asked again, so that each question stands with one client at a time.
 */
export class QuestionDesk {
	readonly #askers = new Map<string, Asker[]>();

	/** The task at its end, or once it `isEnough`; undefined when `waitMs` passed or the request's signal fired first. */
	async waitFor(waiting: Waiting, { isEnough, waitMs } = UNTIL_ITS_END): Promise<TaskRecord | undefined> {
		const { call, client } = waiting;
		// Who cannot be asked anything takes nobody's place.
		if (!Object.values(client.input).includes(true)) return call.until(isEnough, waitMs, waiting.signal);
		const left = new AbortController();
		const asker = new Asker(waiting, left);
		const line = this.#askers.get(call.taskId) ?? [];
		this.#askers.set(call.taskId, line);
		line.at(-1)?.rest();
		line.push(asker);
		try {
			const signal = AbortSignal.any([waiting.signal, left.signal]);
			const look = (record: TaskRecord): boolean => {
				if (line.at(-1) === asker) asker.ask(record);
				return isEnough(record);
			};
			const record = await call.until(look, waitMs, signal);
			if (!record && left.signal.aborted) throw left.signal.reason;
			return record;
		} finally {
			asker.rest();
			const wasAsked = line.at(-1) === asker;
			line.splice(line.indexOf(asker), 1);
			if (line.length === 0) this.#askers.delete(call.taskId);
			else if (wasAsked) this.#askNext(line, call);
		}
	}

	#askNext(line: readonly Asker[], call: Call): void {
		const next = line.at(-1);
		call.current().then(
			(record) => {
				if (line.at(-1) === next) next?.ask(record);
			},
			// A record that cannot be read now is looked at with its next change.
			() => {},
		);
	}
}

/** Asks one client. */
class Asker {
	readonly #waiting: Waiting;
	readonly #left: AbortController;
	/** The questions that stand with the client. */
	readonly #asked = new Map<string, AbortController>();

	constructor(waiting: Waiting, left: AbortController) {
		this.#waiting = waiting;
		this.#left = left;
	}

	/** Asks what is open and was not asked, and takes back what somebody else has answered. */
	ask(record: TaskRecord): void {
		for (const [key, asked] of this.#asked)
			if (!Object.hasOwn(record.openInputs, key)) {
				asked.abort('The question was answered elsewhere');
				this.#asked.delete(key);
			}
		for (const [key, { request }] of Object.entries(record.openInputs)) {
			if (this.#asked.has(key) || !canAsk(this.#waiting.client.input, request)) continue;
			const asked = new AbortController();
			this.#asked.set(key, asked);
			this.#put(key, request, asked.signal).catch((error: unknown) => {
				if (!asked.signal.aborted) this.#left.abort(error);
			});
		}
	}

	/** Takes every question back. */
	rest(): void {
		for (const asked of this.#asked.values()) asked.abort('Nobody waits for the answer here any more');
		this.#asked.clear();
	}

	async #put(key: string, request: InputRequest, signal: AbortSignal): Promise<void> {
		const { ctx, call, client, engine, principal, isTask } = this.#waiting;
		await call.keep();
		const params = paramsFor(request, client);
		const message = {
			method: request.method,
			...(isTask ? { params: relatedTo(call.taskId, params) } : Object.keys(params).length > 0 && { params }),
		};
		let answers: InputResponses;
		try {
			// The task itself ends when its question has waited for too long.
			const response = await ctx.mcpReq.send(message, z.looseObject({}), { timeout: MAX_TIMER_MS, signal });
			answers = checkResponses({ [key]: without(response as JsonObject, '_meta') });
		} catch (error) {
			throw new Unanswered(`The client could not answer ${request.method}: ${messageOf(error)}`, {
				cause: error,
			});
		}
		try {
			await engine.update(call.taskId, principal, answers);
		} catch (error) {
			// Whoever waits sees by itself that the task is gone.
			if (!isHoldfastError(error, 'TASK_NOT_FOUND')) throw error;
		}
	}
}

/** The parameters of a question in the words of the client's protocol version. */
function paramsFor({ method, params = {} }: InputRequest, client: LegacyClient): JsonObject {
	if (method !== 'elicitation/create') return params;
	if (params['mode'] === 'url') return { elicitationId: randomUUID(), ...params };
	return client.hasModes ? params : without(params, 'mode');
}
