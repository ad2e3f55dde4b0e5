import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/json.ts';

/** What is wrong with a value; undefined when nothing is. */
export type Check = (value: JsonValue | undefined) => string | undefined;

/** One of the values that a field allows. */
export interface FieldOption {
	readonly value: JsonValue;
	readonly label: string;
}

/** One field of a form, as it is asked for. */
export interface FormField {
	readonly name: string;
	/** What the field is called, with what must be known to fill it in. */
	readonly label: string;
	readonly isRequired: boolean;
	/** How it is asked for; `json` for whatever the others cannot be. */
	readonly kind: 'text' | 'number' | 'yes-no' | 'one-of' | 'some-of' | 'json';
	/** Of `one-of` and `some-of`. */
	readonly options: readonly FieldOption[];
	/** What the form suggests. */
	readonly initial: JsonValue | undefined;
	readonly check: Check;
}

/** The fields of a form's schema, in its order. */
export function fieldsOf(schema: unknown): readonly FormField[] {
	if (!isJsonObject(schema) || !isJsonObject(schema['properties'])) return [];
	const required = Array.isArray(schema['required']) ? schema['required'] : [];
	return Object.entries(schema['properties']).map(([name, field]) =>
		fieldOf(name, isJsonObject(field) ? field : {}, required.includes(name)),
	);
}

/** Reads what was typed for a field; undefined for nothing. @throws SyntaxError for `json` that is none. */
export function readTyped({ kind }: FormField, typed: string): JsonValue | undefined {
	if (kind === 'text') return typed === '' ? undefined : typed;
	const trimmed = typed.trim();
	if (trimmed === '') return undefined;
	// What is no number stays text, so that the check says what is wrong with it.
	if (kind === 'number') return Number.isFinite(Number(trimmed)) ? Number(trimmed) : typed;
	return JSON.parse(trimmed) as JsonValue;
}

function fieldOf(name: string, schema: JsonObject, isRequired: boolean): FormField {
	const ownOptions = optionsOf(schema);
	const items = isJsonObject(schema['items']) ? optionsOf(schema['items']) : [];
	const [kind, options] =
		ownOptions.length > 0
			? (['one-of', ownOptions] as const)
			: schema['type'] === 'array' && items.length > 0
				? (['some-of', items] as const)
				: ([kindOf(schema), []] as const);
	const rules = rulesOf(schema, kind);
	return {
		...{ name, isRequired, kind, options, initial: schema['default'] },
		label: labelOf(name, schema, isRequired, rules),
		check: checkOf(schema, isRequired, rules),
	};
}

function kindOf({ type }: JsonObject): FormField['kind'] {
	return (typeof type === 'string' ? KINDS[type] : undefined) ?? 'json';
}

const KINDS: Readonly<Record<string, FormField['kind']>> = {
	string: 'text',
	number: 'number',
	integer: 'number',
	boolean: 'yes-no',
};

/** The values of an enumeration, in each of the ways in which MCP writes one. */
function optionsOf(schema: JsonObject): FieldOption[] {
	const titled = [schema['oneOf'], schema['anyOf']].find(Array.isArray);
	if (titled)
		return titled.flatMap((option) =>
			isJsonObject(option) && option['const'] !== undefined
				? [{ value: option['const'], label: textOr(option['title'], option['const']) }]
				: [],
		);
	const names = Array.isArray(schema['enumNames']) ? schema['enumNames'] : [];
	const values = Array.isArray(schema['enum']) ? schema['enum'] : [];
	return values.map((value, index) => ({ value, label: textOr(names[index], value) }));
}

function textOr(title: JsonValue | undefined, value: JsonValue): string {
	if (typeof title === 'string' && title !== '') return title;
	return typeof value === 'string' ? value : JSON.stringify(value);
}

function labelOf(name: string, schema: JsonObject, isRequired: boolean, rules: readonly string[]): string {
	const { title, description } = schema;
	const hints = [...(isRequired ? [] : ['may be left out']), ...rules];
	const heading = `${textOr(title, name)}${hints.length === 0 ? '' : ` (${hints.join(', ')})`}`;
	return typeof description === 'string' && description !== '' ? `${heading}\n${description}` : heading;
}

/** What a value must be, in words. */
function rulesOf(schema: JsonObject, kind: FormField['kind']): string[] {
	return [
		...(typeof schema['format'] === 'string' && kind === 'text' ? [formatHint(schema['format'])] : []),
		...(schema['type'] === 'integer' && kind === 'number' ? ['a whole number'] : []),
		...(schema['type'] === 'number' && kind === 'number' ? ['a number'] : []),
		...boundsHint(schema, 'minimum', 'maximum', ''),
		...boundsHint(schema, 'minLength', 'maxLength', ' characters'),
		...boundsHint(schema, 'minItems', 'maxItems', ' of them'),
		...(kind === 'json' ? ['JSON'] : []),
	];
}

function formatHint(format: string): string {
	return FORMAT_HINTS[format] ?? format;
}

const FORMAT_HINTS: Readonly<Record<string, string>> = {
	email: 'an email address',
	uri: 'a URL',
	date: 'a date like 2026-07-28',
	'date-time': 'a time like 2026-07-28T15:00:00Z',
};

function boundsHint(schema: JsonObject, low: string, high: string, unit: string): string[] {
	const [least, greatest] = [schema[low], schema[high]];
	if (typeof least === 'number' && typeof greatest === 'number')
		return [least === greatest ? `${least}${unit}` : `${least} to ${greatest}${unit}`];
	if (typeof least === 'number') return [`at least ${least}${unit}`];
	return typeof greatest === 'number' ? [`at most ${greatest}${unit}`] : [];
}

function checkOf(schema: JsonObject, isRequired: boolean, rules: readonly string[]): Check {
	let form: z.ZodType | undefined;
	try {
		form = z.fromJSONSchema(schema);
	} catch {
		// A schema that cannot be read is the tool's affair.
	}
	return (value) => {
		if (value === undefined) return isRequired ? 'An answer is needed.' : undefined;
		const checked = form?.safeParse(value);
		if (!checked || checked.success) return undefined;
		return rules.length > 0
			? `It must be ${rules.join(', ')}.`
			: checked.error.issues.map(({ message }) => message).join('; ');
	};
}
