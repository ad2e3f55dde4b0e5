import { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { HoldfastError } from '../errors.ts';
import { type GatewayConfig, gatewayConfigSchema } from './config.ts';

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
		throw invalid(document.errors.map(({ message, pos }) => `${lineAt(pos[0])}: ${message.split('\n')[0]}`));
	const missing: string[] = [];
	const expand = (value: unknown, path: readonly (string | number)[]): unknown => {
		if (typeof value === 'string')
			return value.replace(/\$\{(\w+)\}/g, (_all, name: string) => {
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
	const value = expand(document.toJS() ?? {}, []);
	const parsed = gatewayConfigSchema.safeParse(value);
	const problems = parsed.error?.issues.map((issue) => {
		const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
		const keys = issue.code === 'unrecognized_keys' ? issue.keys : [];
		const where = lineAt(offsetOf(document.contents, [...path, ...keys.slice(0, 1)]));
		const hint = keys.some((key) => UNITLESS.test(key))
			? '; durations have their unit in the name, as in startTimeoutMs'
			: '';
		return `${where}: ${path.join('.') || 'the file'}: ${issue.message}${hint}`;
	});
	if (missing.length > 0 || problems) throw invalid([...missing, ...(problems ?? [])]);
	if (!parsed.success) throw invalid([file]);
	return parsed.data;
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
		const pair = node.items.find(({ key }) => isScalar(key) && key.value === part);
		if (!pair) break;
		if (isScalar(pair.key)) offset = pair.key.range?.[0];
		node = pair.value;
	}
	return offset;
}
