import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { toJSONSchema } from 'zod';
import { gatewayConfigSchema } from '../../src/gateway/config.ts';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';

/** Every key of a schema by its path, with its default; what has keys of its own is no row. */
function keysOf(schema: JsonObject, path: string, names: readonly string[]): [string, unknown][] {
	const { properties, additionalProperties } = schema;
	if (isJsonObject(properties))
		return Object.entries(properties).flatMap(([key, inner]) =>
			isJsonObject(inner) ? keysOf(inner, path === '' ? key : `${path}.${key}`, names) : [],
		);
	const [name = '', ...deeper] = names;
	if (isJsonObject(additionalProperties) && isJsonObject(additionalProperties['properties']))
		return keysOf(additionalProperties, `${path}.<${path.includes('.') ? 'tool' : name}>`, deeper);
	return [[path, schema['default']]];
}

test('docs/gateway.md has one row for each key of the configuration, with its default', () => {
	const page = readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8');
	const rows = new Map(
		[...page.matchAll(/^\| `([\w.<>]+)` \| (.*?) \| .* \|$/gm)].map(([, key = '', value = '']) => [
			key,
			value,
		]),
	);
	const schema = toJSONSchema(gatewayConfigSchema, { io: 'input', unrepresentable: 'any' }) as JsonObject;
	const keys = keysOf(schema, '', ['name']);
	expect([...rows.keys()]).toEqual(keys.map(([key]) => key));
	for (const [key, value] of keys) {
		if (value === undefined) continue;
		const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
		expect([key, rows.get(key)]).toEqual([
			key,
			isEmpty ? 'none' : `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``,
		]);
	}
});
