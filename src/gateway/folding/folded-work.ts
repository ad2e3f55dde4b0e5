import { sleep } from '../../client/clock.ts';
import { problemOf } from '../../client/problem.ts';
import type { CallToolResult } from '../../client/sdk.ts';
import { durationText } from '../../engine/progress.ts';
import { messageOf } from '../../errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/json.ts';
import { outcomeUnknown } from '../upstream-call.ts';
import type { Family } from './family.ts';
import type { FoldMapping, ResultPlace } from './fold-mapping.ts';
import { type FoldState, isEnd } from './fold-state.ts';
import { type FoldStatus, noteOf, readStatus } from './fold-status.ts';
import { Reply } from './place.ts';
import { textOf } from './template.ts';

/** Pauses after a check that failed, in milliseconds. */
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 30_000;

/** How many replies in a row may say nothing, or errors, before nobody can tell any more what becomes of the work. */
const MAX_TROUBLES = 5;

/** How long a server may take until it knows the work that it has just started, in milliseconds. */
const UNKNOWN_AT_FIRST_MS = 60_000;

/** How often a server must say that it does not know the work any more: one of its replicas may be behind. */
const LOST_REPLIES = 2;

/** How long work that was cancelled has to end, in milliseconds; the task is cancelled then in any case. */
export const CANCEL_GRACE_MS = 15_000;
const CANCEL_POLL_MS = 1_000;

/** Work that a server has started, as the task knows it again after a crash. */
export interface StartedWork {
	readonly ids: JsonObject;
	readonly startedAtMs: number;
}

/** How work ended, and the reply that said so. */
export interface WorkEnding {
	readonly state: FoldState;
	readonly word: JsonValue;
	readonly result: CallToolResult;
}

/** Words that nobody knows, by mapping, so that each is told once. */
const toldWords = new WeakMap<FoldMapping, Set<string>>();

/** Follows the work of a family from its start to its result. */
export class FoldedWork {
	readonly #family: Family;
	readonly #work: StartedWork;
	#wasSeen = false;
	#troubles = 0;
	#outages = 0;
	#losses = 0;
	#told = '';

	constructor(family: Family, work: StartedWork) {
		this.#family = family;
		this.#work = work;
	}

	/**
	 * Checks until the work has ended. Outages are waited out up to the deadline of the mapping.
	 *
	 * @throws TaskFailure when nobody can tell any more what becomes of the work; the signal's reason when the task is
	 * cancelled, after the server was told, or left.
	 */
	async ended(firstPauseMs: number): Promise<WorkEnding> {
		const { task, call } = this.#family;
		const { clock, mapping } = call;
		const untilMs = this.#work.startedAtMs + mapping.deadlineMs;
		let pauseMs = firstPauseMs;
		for (;;) {
			await sleep(clock, Math.min(pauseMs, Math.max(0, untilMs - clock.nowMs())), task.signal);
			if (task.signal.aborted) return this.#stopped();
			const ending = await this.#look(task.signal);
			if (ending) return ending;
			if (clock.nowMs() >= untilMs)
				throw outcomeUnknown(call, `it has not ended within ${durationText(mapping.deadlineMs)}`);
			pauseMs = this.#pauseMs();
		}
	}

	/** The result of work that has ended. */
	async result({ state, word, result }: WorkEnding): Promise<CallToolResult> {
		const { mapping, arguments: startArguments } = this.#family.call;
		const isGood = state === 'completed';
		const place = isGood ? mapping.result : mapping.failedResult;
		const found = await this.#resultAt(place, new Reply(result, startArguments));
		if (isGood) return found;
		const words = state === 'cancelled' ? `It was cancelled on the server (${textOf(word)}).` : undefined;
		const content = [
			...(words === undefined ? [] : [{ type: 'text' as const, text: words }]),
			...found.content,
		];
		return { ...found, content, isError: true };
	}

	/** One check. The ending, if it says that there is one. */
	async #look(signal?: AbortSignal): Promise<WorkEnding | undefined> {
		const { call } = this.#family;
		let reply: Reply;
		try {
			reply = await this.#family.check(this.#work.ids, signal);
		} catch (error) {
			if (signal?.aborted) return undefined;
			this.#failed(error);
			return undefined;
		}
		this.#outages = 0;
		const status = readStatus(call.mapping, reply);
		const { state, word } = status;
		if (state === 'lost') {
			this.#lost(reply);
			return undefined;
		}
		this.#losses = 0;
		if (word === undefined) {
			this.#troubled(
				reply.text === '' ? 'the check says nothing' : `the check answers "${reply.text.slice(0, 200)}"`,
			);
			return undefined;
		}
		this.#troubles = 0;
		this.#wasSeen = true;
		if (state !== undefined && isEnd(state)) return { state, word, result: reply.result };
		if (state === undefined) this.#unknown(word);
		this.#tell(status, reply);
		return undefined;
	}

	#failed(error: unknown): void {
		const problem = problemOf(error);
		this.#outages += 1;
		const { upstream, log } = this.#family.call;
		log.warn(
			{ upstream: upstream.options.name, error: problem.message },
			'a check failed; it is tried again',
		);
		if (problem.kind !== 'outage') this.#troubled(problem.message);
	}

	#troubled(what: string): void {
		this.#troubles += 1;
		if (this.#troubles >= MAX_TROUBLES) throw outcomeUnknown(this.#family.call, what);
	}

	#lost(reply: Reply): void {
		const { call } = this.#family;
		const isYoung = call.clock.nowMs() - this.#work.startedAtMs < UNKNOWN_AT_FIRST_MS;
		if (!this.#wasSeen && isYoung) return;
		this.#losses += 1;
		if (this.#losses < LOST_REPLIES) return;
		throw outcomeUnknown(call, `the server does not know it any more ("${reply.text.slice(0, 200)}")`);
	}

	#unknown(word: JsonValue): void {
		const { mapping, upstream, log } = this.#family.call;
		const told = toldWords.get(mapping) ?? new Set<string>();
		toldWords.set(mapping, told);
		const name = JSON.stringify(word);
		if (told.has(name)) return;
		told.add(name);
		log.warn(
			{ upstream: upstream.options.name, tool: mapping.check.tool, status: word },
			'a status that the mapping does not know; the work is taken to go on',
		);
	}

	#tell(status: FoldStatus, reply: Reply): void {
		const { call, task } = this.#family;
		const note = { ...noteOf(call.mapping, status, reply), pollIntervalMs: this.#pauseMs() };
		const { message, progress, total } = note;
		const told = JSON.stringify([message, progress, total]);
		if (told === this.#told) return;
		this.#told = told;
		task.progress(note);
	}

	/** The longer the work has taken, the more seldom it is looked at; where the check itself waits, at once again. */
	#pauseMs(): number {
		const { clock, mapping } = this.#family.call;
		const { pollMs, maxPollMs, check } = mapping;
		const ageMs = clock.nowMs() - this.#work.startedAtMs;
		const backoffMs = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (this.#outages - 1));
		// Where a check does something, one more after a reply that was lost must be as rare as any.
		if (this.#outages > 0) return this.#family.isCheckReadOnly ? backoffMs : Math.max(pollMs, backoffMs);
		if (check.wait) return pollMs;
		return Math.round(Math.min(maxPollMs, Math.max(pollMs, ageMs / 10)));
	}

	/** Tells the server once that the task is cancelled, and looks for a while whether the work ends. */
	async #stopped(): Promise<WorkEnding> {
		const { task, call } = this.#family;
		const { clock, mapping, log, upstream } = call;
		if (task.stopReason === 'cancelled' && mapping.cancel) {
			const { tool, arguments: template } = mapping.cancel;
			const untilMs = clock.nowMs() + CANCEL_GRACE_MS;
			await this.#family
				.other(tool, template, this.#work.ids)
				.catch((error: unknown) =>
					log.warn({ upstream: upstream.options.name, error: messageOf(error) }, 'a cancel did not arrive'),
				);
			while (clock.nowMs() < untilMs) {
				const ending = await this.#look().catch(() => undefined);
				// What was finished before the cancel arrived is a result all the same.
				if (ending?.state === 'completed') return ending;
				if (ending) break;
				await sleep(clock, CANCEL_POLL_MS, NEVER);
			}
		}
		throw task.signal.reason;
	}

	async #resultAt(place: ResultPlace, last: Reply): Promise<CallToolResult> {
		const { tool, arguments: template, path } = place;
		const ids = { ...this.#work.ids, ...partsOf(place, last) };
		const reply = tool === undefined ? last : await this.#fetch(tool, template, ids);
		const value = path === undefined || reply.result.isError === true ? undefined : reply.find([path]);
		return value === undefined ? reply.result : resultOf(value);
	}

	/** Calls the tool that has the result; asking again does no harm, since the work is done. */
	async #fetch(tool: string, template: JsonObject, ids: JsonObject): Promise<Reply> {
		const { call, task } = this.#family;
		for (;;) {
			try {
				return await this.#family.other(tool, template, ids, task.signal);
			} catch (error) {
				task.signal.throwIfAborted();
				this.#failed(error);
				if (call.clock.nowMs() >= this.#work.startedAtMs + call.mapping.deadlineMs) throw error;
				await sleep(call.clock, this.#pauseMs(), task.signal);
			}
		}
	}
}

const NEVER = new AbortController().signal;

function partsOf({ ids }: ResultPlace, reply: Reply): JsonObject {
	const parts: Record<string, JsonValue> = {};
	for (const [name, places] of Object.entries(ids)) parts[name] = reply.find(places) ?? null;
	return parts;
}

/** A result that is one value out of a reply. */
function resultOf(value: JsonValue): CallToolResult {
	return {
		content: [{ type: 'text', text: textOf(value) }],
		...(isJsonObject(value) && { structuredContent: { ...value } }),
	};
}
