import type { TaskRecord } from './record.ts';

/** The fields of a record that no statement asks for: one column of JSON in a relational store. */
export type TaskBody = Pick<
	TaskRecord,
	| 'argumentsDigest'
	| 'statusMessage'
	| 'progress'
	| 'inputCapabilities'
	| 'attempt'
	| 'retries'
	| 'crashes'
	| 'waitedMs'
	| 'waitingSinceMs'
	| 'releasedSinceMs'
	| 'error'
	| 'trace'
>;

/** Questions and answers: one column of JSON, which is empty for most tasks. */
export type TaskInputs = Pick<TaskRecord, 'openInputs' | 'inputResponses'>;

export function encodeBody(record: TaskRecord): string {
	const body: TaskBody = {
		argumentsDigest: record.argumentsDigest,
		statusMessage: record.statusMessage,
		progress: record.progress,
		inputCapabilities: record.inputCapabilities,
		attempt: record.attempt,
		retries: record.retries,
		crashes: record.crashes,
		waitedMs: record.waitedMs,
		waitingSinceMs: record.waitingSinceMs,
		releasedSinceMs: record.releasedSinceMs,
		error: record.error,
		trace: record.trace,
	};
	return JSON.stringify(body);
}

export function decodeBody(text: string): TaskBody {
	return JSON.parse(text) as TaskBody;
}

/** Null where the record has neither questions nor answers. */
export function encodeInputs({ openInputs, inputResponses }: TaskRecord): string | null {
	if (isEmpty(openInputs) && isEmpty(inputResponses)) return null;
	return JSON.stringify({ openInputs, inputResponses } satisfies TaskInputs);
}

export function decodeInputs(text: string | null): TaskInputs {
	return text === null ? NO_INPUTS : (JSON.parse(text) as TaskInputs);
}

const NO_INPUTS: TaskInputs = { openInputs: Object.freeze({}), inputResponses: Object.freeze({}) };

/**
 * A string for a text column. Databases keep text as UTF-8, which has no lone surrogates, so that two different
 * strings would become one, and a NUL ends it or is refused. Such strings are written as JSON, and so is
 * one that looks like it.
 */
export function encodeText(text: string): string {
	return text.isWellFormed() && !text.includes('\0') && !text.startsWith('"') ? text : JSON.stringify(text);
}

/** What {@link encodeText} was given. */
export function decodeText(text: string): string {
	return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}

function isEmpty(object: object): boolean {
	for (const _ in object) return false;
	return true;
}
