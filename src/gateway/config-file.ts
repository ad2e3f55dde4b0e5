import { type Document, isMap, isScalar, LineCounter, parseDocument, type YAMLError } from 'yaml';
import { HoldfastError, messageOf } from '../errors.ts';
import { type GatewayConfig, gatewayConfigSchema } from './config.ts';

/** What stands for an environment variable. */
const VARIABLE = /\$\{(\w+)\}/;
const VARIABLES = new RegExp(VARIABLE, 'g');

/** Words that are durations in other programs' configurations, where the unit is not in the name. */
const UNITLESS = /^(timeout|interval|delay|ttl|budget|wait)$/i;

/**
 * Reads a configuration in YAML. `${NAME}` in a value stands for an environment variable.
 *
 * @param file - its name, for errors.
 * @throws INVALID_CONFIG with the line and the reason of everything that is wrong.
 */
export function readConfig(
	text: string,
	file: string,
	environment: Readonly<Record<string, string | undefined>>,
): GatewayConfig {
	const lines = new LineCounter();
	const document = parseDocument(text, { lineCounter: lines });
	const lineAt = (offset: number | undefined): string =>
		offset === undefined ? file : `${file}:${lines.linePos(offset).line}`;
	if (document.errors.length > 0)
		throw invalid(document.errors.map((error) => `${lineAt(error.pos[0])}: ${wordsOf(error)}`));
	const missing: string[] = [];
	const expand = (value: unknown, path: readonly (string | number)[]): unknown => {
		if (typeof value === 'string')
			return value.replace(VARIABLES, (_all, name: string) => {
				const found = environment[name];
				if (found === undefined)
					missing.push(`${lineAt(offsetOf(document.contents, path))}: the environment has no ${name}`);
				return found ?? '';
			});
		if (Array.isArray(value)) return value.map((entry, index) => expand(entry, [...path, index]));
		if (typeof value === 'object' && value !== null)
			return Object.fromEntries(
				Object.entries(value).map(([key, entry]) => [key, expand(entry, [...path, key])]),
			);
		return value;
	};
	const value = expand(plainValueOf(document, file) ?? {}, []);
	const parsed = gatewayConfigSchema.safeParse(value);
	const problems = parsed.error?.issues.map((issue) => {
		const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
		const keys = issue.code === 'unrecognized_keys' ? issue.keys : [];
		const where = lineAt(offsetOf(document.contents, [...path, ...keys.slice(0, 1)]));
		const hint = keys.some((key) => UNITLESS.test(key))
			? '; durations have their unit in the name, as in startTimeoutMs'
			: '';
		const reason =
			issue.code === 'invalid_key' ? issue.issues.map(({ message }) => message).join('; ') : issue.message;
		return `${where}: ${path.join('.') || 'the file'}: ${reason}${hint}`;
	});
	if (missing.length > 0 || problems) throw invalid([...missing, ...(problems ?? [])]);
	if (!parsed.success) throw invalid([file]);
	return parsed.data;
}

/**
 * A configuration to be shown: with `${NAME}` where the file has it, and not what it stands for.
 *
 * @param text - what the configuration was read from.
 */
export function shownConfig(config: GatewayConfig, text: string): GatewayConfig {
	return asWritten(config, parseDocument(text).toJS()) as GatewayConfig;
}

function asWritten(value: unknown, written: unknown): unknown {
	if (typeof written === 'string' && VARIABLE.test(written)) return written;
	if (Array.isArray(value)) return value.map((entry, index) => asWritten(entry, memberOf(written, index)));
	if (typeof value !== 'object' || value === null) return value;
	return Object.fromEntries(
		Object.entries(value).map(([key, entry]) => [key, asWritten(entry, memberOf(written, key))]),
	);
}

function memberOf(value: unknown, key: string | number): unknown {
	return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** @throws INVALID_CONFIG for aliases that lead nowhere, or to more than a file can mean. */
function plainValueOf(document: Document, file: string): unknown {
	try {
		return document.toJS();
	} catch (error) {
		throw invalid([`${file}: ${messageOf(error)}`]);
	}
}

/** What the parser says, without the place, which it says in its own way. */
function wordsOf({ code, message }: YAMLError): string {
	if (code === 'MULTIPLE_DOCS') return 'the file may have one document, and a second one begins here';
	return message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? code;
}

function invalid(problems: readonly string[]): HoldfastError {
	return new HoldfastError('INVALID_CONFIG', problems.join('\n'));
}

/** Where a value, or else the nearest thing around it, stands in the text. */
function offsetOf(contents: unknown, path: readonly (string | number)[]): number | undefined {
	let node = contents;
	let offset: number | undefined;
	for (const part of path) {
		if (!isMap(node)) break;
		const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
		if (!pair) break;
		if (isScalar(pair.key)) offset = pair.key.range?.[0];
		node = pair.value;
	}
	return offset;
}
