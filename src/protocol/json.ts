/** A value that survives `JSON.stringify` and `JSON.parse` unchanged. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object: what MCP calls params, arguments, results and `_meta`. */
export interface JsonObject {
	readonly [key: string]: JsonValue;
}

/**
 * What a `T` must be to come back from JSON as it was: interfaces and optional keys may be, which {@link JsonValue} has
 * no room for; a function, and what carries one as a Date or a Map does, may not.
 */
export type JsonOf<T> = JsonValue | { [K in keyof T]: JsonMember<T[K]> };

type JsonMember<T> = T extends JsonValue | undefined
	? T
	: T extends (...args: never[]) => unknown
		? never
		: T extends object
			? { [K in keyof T]: JsonMember<T[K]> }
			: never;

/** Whether a value is a plain JSON object (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same object without one of its keys. */
export function without(object: JsonObject, key: string): JsonObject {
	return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}

/**
 * Deeper than anything that a form, a model or a person makes. Encoders that recurse end far below what parsers
 * take, so that a deeper value is refused where it arrives.
 */
export const MAX_JSON_DEPTH = 200;

/** Whether a value is nested more than `levels` deep. Does not recurse, so it answers for any depth. */
export function isDeeperThan(value: unknown, levels: number): boolean {
	let layer: unknown[] = [value];
	for (let level = 0; layer.length > 0; level++) {
		if (level > levels) return true;
		layer = layer.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
	}
	return false;
}
