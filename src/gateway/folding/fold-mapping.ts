import * as z from 'zod';
import type { JsonObject, JsonValue } from '../../protocol/json.ts';
import { FOLD_STATES, type FoldState } from './fold-state.ts';
import { placeSchema, placesSchema } from './place.ts';
import { namesIn } from './template.ts';

const SECOND_MS = 1_000;
const DAY_MS = 24 * 3_600 * SECOND_MS;

const json: z.ZodType<JsonValue> = z.json();
const templateSchema = z.record(z.string(), json).default({});
const toolName = z.string().min(1);

/** An argument with which a tool waits before it answers. */
const waitSchema = z.strictObject({
	argument: z.string().min(1),
	/** What the argument counts in. */
	unit: z.enum(['s', 'ms']),
	/** How long to have the tool wait, in milliseconds. Clamped to the bounds in the tool's own schema. */
	waitMs: z.number().int().min(0).max(600_000),
});

const wordsSchema = z.array(z.union([z.string().min(1), z.number(), z.boolean()])).default([]);

/** Where the result is, when it is not the reply of the check as a whole. */
const resultSchema = z.strictObject({
	/** A tool that has it. Default: the check has it already. */
	tool: toolName.optional(),
	/** The arguments of that tool. `{name}` stands for a part of `ids`, of the mapping or of the result. */
	arguments: templateSchema,
	/** Further parts, that are in the last reply of the check. */
	ids: z.record(z.string(), placesSchema).default({}),
	/** Where in the reply the result is. Default: it is the whole reply. */
	path: placeSchema.optional(),
});

const MAPPING = z.strictObject({
	/** What hosts call the folded tool. Default: the name of the start tool. */
	name: z.string().min(1).optional(),
	/** What hosts read about it. Default: the start tool's own words, and that the call returns the result itself. */
	description: z.string().optional(),
	start: z.strictObject({
		tool: toolName,
		/**
		 * Which calls of the tool start work: those whose arguments have one of these values, or with null do not have
		 * the argument at all. Other calls of it are passed on as they are. Default: every call.
		 */
		when: z.record(z.string(), z.union([json, z.array(json)])).default({}),
		/** Arguments that are always given, whatever the host says. */
		arguments: z.record(z.string(), json).default({}),
		/** Arguments that hosts are not shown. */
		hide: z.array(z.string().min(1)).default([]),
		wait: waitSchema.optional(),
	}),
	/**
	 * The handle: named parts, and where in the reply of the start each is. A part that is an argument of the start
	 * may be missing; an argument that is nothing but that part is then left out.
	 */
	ids: z
		.record(z.string().regex(/^[\w-]+$/, 'a part is named in letters, digits, - and _'), placesSchema)
		.refine((ids) => Object.keys(ids).length > 0, { error: 'needs at least one part of a handle' }),
	check: z.strictObject({
		tool: toolName,
		/** `{name}` stands for a part of `ids`. */
		arguments: templateSchema,
		wait: waitSchema.optional(),
		/** Whether a check changes nothing. Default: what the tool's `readOnlyHint` says. */
		readOnly: z.boolean().optional(),
	}),
	status: z
		.strictObject({
			/** The first place with a word that is known decides. */
			paths: placesSchema.prefault(['status']),
			/** Where a server that says "completed" says how; a word that is known there decides. */
			outcome: placeSchema.optional(),
			/** Words beside the common ones, or that mean something else here. */
			words: z
				.strictObject(
					Object.fromEntries(FOLD_STATES.map((state) => [state, wordsSchema])) as Record<
						FoldState,
						typeof wordsSchema
					>,
				)
				.prefault({}),
		})
		.prefault({}),
	/** How far the work is, in the reply of the check. */
	progress: z
		.strictObject({
			done: placeSchema.optional(),
			total: placeSchema.optional(),
			/** From 0 to 100. */
			percent: placeSchema.optional(),
			message: placeSchema.optional(),
		})
		.prefault({}),
	result: resultSchema.prefault({}),
	/** The same for work that failed. */
	failedResult: resultSchema.prefault({}),
	cancel: z.strictObject({ tool: toolName, arguments: templateSchema }).optional(),
	/** Least time between two checks. */
	pollMs: z.number().int().min(SECOND_MS).max(3_600_000).default(5_000),
	/** Most time between two checks; they become more seldom as the work grows older. */
	maxPollMs: z.number().int().min(SECOND_MS).max(3_600_000).default(60_000),
	/** How long the work is waited for. */
	deadlineMs: z
		.number()
		.int()
		.min(SECOND_MS)
		.max(365 * DAY_MS)
		.default(DAY_MS),
	/** Tools that are not shown any more. Default: those that check and cancel. */
	hide: z.array(toolName).optional(),
	/** From which hosts they are hidden. */
	hideFrom: z.enum(['tasks', 'everyone', 'nobody']).default('tasks'),
});

/**
 * How a family of tools that start work, check on it and cancel it becomes one tool.
 * Unknown keys are refused, and so are names in `{…}` that no part has.
 */
export const foldMappingSchema = MAPPING.superRefine((mapping, context) => {
	const parts = Object.keys(mapping.ids);
	const check = (path: string[], template: JsonObject, known: readonly string[]): void => {
		for (const name of namesIn(template))
			if (!known.includes(name))
				context.addIssue({
					code: 'custom',
					path,
					message: `{${name}} is none of the parts: ${known.join(', ')}`,
				});
	};
	check(['check', 'arguments'], mapping.check.arguments, parts);
	if (mapping.cancel) check(['cancel', 'arguments'], mapping.cancel.arguments, parts);
	for (const key of ['result', 'failedResult'] as const) {
		const { arguments: template, ids, tool } = mapping[key];
		check([key, 'arguments'], template, [...parts, ...Object.keys(ids)]);
		if (tool === undefined && Object.keys(template).length > 0)
			context.addIssue({
				code: 'custom',
				path: [key, 'arguments'],
				message: 'are given to no tool; name it in tool',
			});
	}
	if (mapping.maxPollMs < mapping.pollMs)
		context.addIssue({
			code: 'custom',
			path: ['maxPollMs'],
			message: `must be at least pollMs (${mapping.pollMs})`,
		});
});

/** How a family of tools becomes one; checked and filled up. */
export type FoldMapping = z.output<typeof foldMappingSchema>;

/** A mapping as it is written. */
export type FoldMappingInput = z.input<typeof foldMappingSchema>;

/** Where a result is. */
export type ResultPlace = FoldMapping['result'];

/** Whether a call of the start tool starts work. */
export function startsWork({ start }: FoldMapping, given: JsonObject): boolean {
	const sent = { ...given, ...start.arguments };
	return Object.entries(start.when).every(([name, wanted]) => {
		const value = sent[name] ?? null;
		const values: readonly JsonValue[] = Array.isArray(wanted) ? wanted : [wanted];
		return values.some((candidate) => JSON.stringify(candidate) === JSON.stringify(value));
	});
}

/** The tools that a mapping speaks of. */
export function membersOf({ start, check, result, failedResult, cancel }: FoldMapping): readonly string[] {
	const tools = [start.tool, check.tool, result.tool, failedResult.tool, cancel?.tool];
	return [...new Set(tools.filter((tool) => tool !== undefined))];
}

/** The tools that are hidden where the family is folded. */
export function hiddenOf(mapping: FoldMapping): readonly string[] {
	const { start, check, cancel, hide } = mapping;
	return (
		hide ?? [check.tool, cancel?.tool].filter((tool) => tool !== undefined && tool !== start.tool).map(String)
	);
}

/** The parts of the handle that may be missing: those that are arguments of the start. */
export function optionalParts({ ids }: FoldMapping): readonly string[] {
	return Object.keys(ids).filter((name) => ids[name]?.every(({ argument }) => argument !== undefined));
}
