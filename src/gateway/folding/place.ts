import * as z from 'zod';
import type { CallToolResult } from '../../client/sdk.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/json.ts';
import { textOf } from './template.ts';

/** A path such as `data.runs[0].id`; one of JSONPath, which begins with `$`, would never find anything. */
const PATH = /^(?!\$(?:[.[]|$))[^.[\]]+(\[\d+\])*(\.[^.[\]]+(\[\d+\])*)*$/;

/**
 * Where in a reply a value is: at a `path` of its structured content or else of the JSON in its texts; where the first
 * group of an expression stands in its texts (`text`); or in the arguments of the call that started the work.
 */
export const placeSchema = z.preprocess(
	(value) => (typeof value === 'string' ? { path: value } : value),
	z
		.strictObject({
			path: z.string().regex(PATH, 'must be a path like data.runs[0].id').optional(),
			text: z
				.string()
				.refine(hasGroup, 'must be a regular expression with one group in parentheses')
				.optional(),
			argument: z.string().min(1).optional(),
			/** What the value is made into. */
			as: z.enum(['string', 'number']).optional(),
		})
		.refine(({ path, text, argument }) => [path, text, argument].filter(isGiven).length === 1, {
			error: 'needs exactly one of path, text and argument',
		}),
);

/** One place, or several of which the first that has a value counts. */
export const placesSchema = z.preprocess(
	(value) => (Array.isArray(value) ? value : [value]),
	z.array(placeSchema).min(1),
);

/** Where in a reply a value is. */
export type Place = z.output<typeof placeSchema>;

/** The reply of a tool, to be looked into. */
export class Reply {
	readonly result: CallToolResult;
	readonly #startArguments: JsonObject;
	#documents: readonly JsonValue[] | undefined;

	constructor(result: CallToolResult, startArguments: JsonObject) {
		this.result = result;
		this.#startArguments = startArguments;
	}

	/** All its texts, one after the other. */
	get text(): string {
		return this.result.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
	}

	/** The value at the first of the places that has one; null is none. */
	find(places: readonly Place[]): JsonValue | undefined {
		for (const place of places) {
			const value = this.#at(place);
			if (value !== undefined && value !== null)
				return place.as === undefined ? value : converted(value, place.as);
		}
		return undefined;
	}

	#at({ path, text, argument }: Place): JsonValue | undefined {
		if (argument !== undefined) return this.#startArguments[argument];
		if (text !== undefined) return new RegExp(text, 'm').exec(this.text)?.[1];
		this.#documents ??= documentsOf(this.result);
		for (const document of this.#documents) {
			const value = valueAt(document, path ?? '');
			if (value !== undefined && value !== null) return value;
		}
		return undefined;
	}
}

function documentsOf(result: CallToolResult): readonly JsonValue[] {
	const structured = result.structuredContent as JsonValue | undefined;
	const texts = result.content.flatMap((part) => (part.type === 'text' ? jsonIn(part.text) : []));
	return [...(structured === undefined ? [] : [structured]), ...texts];
}

/** JSON that is the whole of a text, or stands in a fence, or between other words. */
function jsonIn(text: string): readonly JsonValue[] {
	const inner = /```(?:json)?\s*\n([\s\S]*?)```/.exec(text)?.[1];
	const from = text.search(/[{[]/);
	const to = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'));
	for (const candidate of [text, inner, from < 0 ? undefined : text.slice(from, to + 1)]) {
		if (candidate === undefined) continue;
		try {
			return [JSON.parse(candidate) as JsonValue];
		} catch {
			// Prose, then; the next way of reading it may fit.
		}
	}
	return [];
}

function valueAt(document: JsonValue, path: string): JsonValue | undefined {
	let value: JsonValue | undefined = document;
	for (const part of path.split(/[.[\]]+/).filter((name) => name !== '')) {
		if (Array.isArray(value)) value = (value as readonly JsonValue[])[Number(part)];
		else value = isJsonObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
	}
	return value;
}

function converted(value: JsonValue, type: 'string' | 'number'): JsonValue | undefined {
	if (type === 'string') return textOf(value);
	const number = Number(value);
	return Number.isFinite(number) ? number : undefined;
}

function hasGroup(source: string): boolean {
	try {
		return (new RegExp(`${source}|`, 'm').exec('')?.length ?? 0) > 1;
	} catch {
		return false;
	}
}

function isGiven(value: unknown): boolean {
	return value !== undefined;
}
