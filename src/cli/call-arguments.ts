import { text } from 'node:stream/consumers';
import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/json.ts';
import { UsageError } from './failure.ts';

/** One `--arg name=value`, read but not converted. */
export interface NamedArgument {
	readonly name: string;
	readonly value: string;
}

/** A parser for `--arg`. */
export function namedArgument(
	given: string,
	before: readonly NamedArgument[] = [],
): readonly NamedArgument[] {
	const at = given.indexOf('=');
	if (at < 1) throw new UsageError(`--arg ${given}: it must be name=value.`);
	return [...before, { name: given.slice(0, at), value: given.slice(at + 1) }];
}

/** Reads `--json-args`: a JSON object, or `-` for one on stdin. @throws UsageError */
export async function readJsonArguments(given: string): Promise<JsonObject> {
	const source = given === '-' ? await text(process.stdin) : given;
	let value: unknown;
	try {
		value = JSON.parse(source);
	} catch {
		value = undefined;
	}
	if (isJsonObject(value)) return value;
	const where = given === '-' ? 'what stdin has' : given;
	throw new UsageError(
		`--json-args: it must be a JSON object such as '{"month": "July"}', not ${where || 'nothing'}.`,
	);
}

/**
 * Makes a tool's arguments of words, each converted to the type that the tool's schema gives it. A name that is given
 * several times is a list.
 *
 * @throws UsageError for a value that is not of its type.
 */
export function convertArguments(given: readonly NamedArgument[], inputSchema: unknown): JsonObject {
	const properties =
		isJsonObject(inputSchema) && isJsonObject(inputSchema['properties']) ? inputSchema['properties'] : {};
	const byName = Map.groupBy(given, ({ name }) => name);
	return Object.fromEntries(
		Array.from(byName, ([name, values]) => {
			const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
			return [
				name,
				convertAll(
					name,
					values.map(({ value }) => value),
					isJsonObject(schema) ? schema : {},
				),
			];
		}),
	);
}

function convertAll(name: string, values: readonly string[], schema: JsonObject): JsonValue {
	const [first = ''] = values;
	const types = typesOf(schema);
	if (types.includes('array')) {
		const whole = values.length === 1 ? parsed(first) : undefined;
		if (Array.isArray(whole)) return whole;
		const items = isJsonObject(schema['items']) ? schema['items'] : {};
		return values.map((value) => convert(name, value, items));
	}
	if (values.length === 1) return convert(name, first, schema);
	if (types.length > 0)
		throw new UsageError(`--arg ${name} is given ${values.length} times, and the tool takes one.`);
	return values.map((value) => convert(name, value, schema));
}

function convert(name: string, value: string, schema: JsonObject): JsonValue {
	const types = typesOf(schema);
	const json = parsed(value);
	// Only where the tool takes no text: "007" is a text that looks like a number.
	if (types.includes('string'))
		return types.some((type) => type !== 'string' && isOf(type, json)) ? (json ?? null) : value;
	if (types.length === 0) return json === undefined ? value : json;
	if (json !== undefined && types.some((type) => isOf(type, json))) return json;
	throw new UsageError(
		`--arg ${name}=${value}: the tool wants ${types.map((type) => TYPE_WORDS[type] ?? type).join(' or ')}.`,
	);
}

function typesOf(schema: JsonObject): readonly string[] {
	const { type } = schema;
	if (typeof type === 'string') return [type];
	if (Array.isArray(type)) return type.filter((name) => typeof name === 'string');
	const parts = [schema['anyOf'], schema['oneOf']].find(Array.isArray) ?? [];
	const isText = Array.isArray(schema['enum']) && schema['enum'].every((value) => typeof value === 'string');
	return isText ? ['string'] : parts.flatMap((part) => (isJsonObject(part) ? typesOf(part) : []));
}

function isOf(type: string, value: JsonValue | undefined): boolean {
	switch (type) {
		case 'null':
			return value === null;
		case 'array':
			return Array.isArray(value);
		case 'object':
			return isJsonObject(value);
		case 'integer':
			return Number.isInteger(value);
		default:
			return typeof value === type;
	}
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
	integer: 'a whole number',
	number: 'a number',
	boolean: 'true or false',
	object: 'a JSON object',
	null: 'null',
};

function parsed(value: string): JsonValue | undefined {
	try {
		return JSON.parse(value) as JsonValue;
	} catch {
		return undefined;
	}
}
