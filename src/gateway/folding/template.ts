import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/json.ts';

const NAME = /\{([\w-]+)\}/g;

/**
 * Arguments with `{name}` in their texts replaced by values. A text that is nothing but one name becomes the value
 * itself, so that a number stays a number; without a value the argument is left out.
 */
export function fill(template: JsonObject, values: JsonObject): JsonObject {
	const filled = Object.entries(template).map(([key, entry]) => [key, fillValue(entry, values)] as const);
	return Object.fromEntries(filled.filter(([key, value]) => value !== null || template[key] === null));
}

/** The names that a template has values put in for. */
export function namesIn(template: JsonValue): readonly string[] {
	if (typeof template === 'string') return [...template.matchAll(NAME)].map(([, name = '']) => name);
	if (Array.isArray(template)) return template.flatMap((entry: JsonValue) => namesIn(entry));
	return isJsonObject(template) ? Object.values(template).flatMap(namesIn) : [];
}

function fillValue(template: JsonValue, values: JsonObject): JsonValue {
	if (typeof template === 'string') {
		const [whole, name = ''] = /^\{([\w-]+)\}$/.exec(template) ?? [];
		if (whole !== undefined) return values[name] ?? null;
		return template.replace(NAME, (_all, part: string) => textOf(values[part] ?? ''));
	}
	if (Array.isArray(template)) return template.map((entry: JsonValue) => fillValue(entry, values));
	return isJsonObject(template) ? fill(template, values) : template;
}

/** A value as it stands in a text. */
export function textOf(value: JsonValue): string {
	return typeof value === 'string' ? value : JSON.stringify(value);
}
