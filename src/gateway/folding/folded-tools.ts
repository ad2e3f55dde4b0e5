import { isJsonObject, type JsonObject } from '../../protocol/json.ts';
import { type FoldMapping, hiddenOf, membersOf, optionalParts } from './fold-mapping.ts';
import { propertyOf, takesOnlyNamed } from './tool-schema.ts';

/** From which hosts a tool is hidden. */
export type HiddenFrom = FoldMapping['hideFrom'];

/** A tool of an upstream as hosts see it. */
export interface FoldedTool {
	/** The upstream's own name of the tool that is called, or that is called first. */
	readonly tool: string;
	/** What hosts call it, without the upstream's prefix. */
	readonly name: string;
	readonly entry: JsonObject;
	/** The families that begin with it; which one a call starts its arguments say. */
	readonly mappings: readonly FoldMapping[];
	readonly hiddenFrom: HiddenFrom;
}

/** What is wrong with a mapping for the tools that a server has; empty when it fits. */
export function misfits(mapping: FoldMapping, tools: readonly JsonObject[]): readonly string[] {
	const find = (name: string): JsonObject | undefined => tools.find((tool) => tool['name'] === name);
	const missing = membersOf(mapping).filter((name) => !find(name));
	if (missing.length > 0) return missing.map((name) => `there is no tool "${name}"`);
	const { start, check, cancel, result, failedResult } = mapping;
	const optional = optionalParts(mapping);
	const needed = (template: JsonObject): readonly string[] =>
		Object.keys(template).filter((name) => !optional.some((part) => template[name] === `{${part}}`));
	const used: readonly (readonly [tool: string, names: readonly string[]])[] = [
		[start.tool, [...Object.keys(start.when), ...Object.keys(start.arguments)]],
		[check.tool, needed(check.arguments)],
		...[cancel, result, failedResult].flatMap((member) =>
			member?.tool === undefined ? [] : [[member.tool, needed(member.arguments)] as const],
		),
	];
	return used.flatMap(([tool, names]) =>
		takesOnlyNamed(find(tool))
			? names
					.filter((name) => !propertyOf(find(tool), name))
					.map((name) => `the tool "${tool}" has no argument "${name}"`)
			: [],
	);
}

/**
 * A server's tools with its families folded. A mapping that does not fit is left out, so that its tools stay as they
 * are; `onMisfit` hears why.
 */
export function foldTools(
	tools: readonly JsonObject[],
	mappings: readonly FoldMapping[],
	onMisfit: (mapping: FoldMapping, reasons: readonly string[]) => void,
): readonly FoldedTool[] {
	const fitting = mappings.filter((mapping) => {
		const reasons = misfits(mapping, tools);
		if (reasons.length > 0) onMisfit(mapping, reasons);
		return reasons.length === 0;
	});
	const named = tools.flatMap((entry) =>
		typeof entry['name'] === 'string' ? [{ entry, name: entry['name'] }] : [],
	);
	return named.flatMap(({ entry, name }) => {
		const begun = fitting.filter(({ start }) => start.tool === name);
		const shown = [...new Set(begun.map((mapping) => mapping.name ?? name))];
		const folded = shown.map((shownName): FoldedTool => {
			const own = begun.filter((mapping) => (mapping.name ?? name) === shownName);
			return {
				tool: name,
				name: shownName,
				entry: foldedEntry(entry, own),
				mappings: own,
				hiddenFrom: 'nobody',
			};
		});
		// The start itself is gone where every call of it is one of the folded tool.
		const isGone = shown.includes(name) || begun.some(({ start }) => Object.keys(start.when).length === 0);
		return isGone
			? folded
			: [...folded, { tool: name, name, entry, mappings: [], hiddenFrom: hiddenFrom(name, fitting) }];
	});
}

function hiddenFrom(tool: string, mappings: readonly FoldMapping[]): HiddenFrom {
	const wishes = mappings
		.filter((mapping) => hiddenOf(mapping).includes(tool))
		.map((mapping) => mapping.hideFrom);
	return wishes.includes('everyone') ? 'everyone' : wishes.includes('tasks') ? 'tasks' : 'nobody';
}

/** The start tool as hosts see it: without what only its family needs, and without the shape of its own reply. */
function foldedEntry(entry: JsonObject, mappings: readonly FoldMapping[]): JsonObject {
	const { description, inputSchema, ...others } = entry;
	const rest = Object.fromEntries(Object.entries(others).filter(([key]) => key !== 'outputSchema'));
	const words = mappings.map((mapping) => mapping.description).find((text) => text !== undefined);
	const gone = mappings.flatMap(({ start }) => [...start.hide, ...Object.keys(start.arguments)]);
	return {
		...rest,
		description:
			words ??
			`${typeof description === 'string' ? `${description}\n\n` : ''}The call returns the result itself, however long it takes: do not check on it with another tool.`,
		inputSchema: isJsonObject(inputSchema) ? without(inputSchema, gone) : { type: 'object' },
	};
}

function without(schema: JsonObject, names: readonly string[]): JsonObject {
	const { properties, required } = schema;
	return {
		...schema,
		...(isJsonObject(properties) && {
			properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !names.includes(name))),
		}),
		...(Array.isArray(required) && { required: required.filter((name) => !names.includes(String(name))) }),
	};
}
