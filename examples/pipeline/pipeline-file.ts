/** Pipeline files: what may stand in one, and what is wrong with one, by line and key. */
import { readFileSync, statSync } from 'node:fs';
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import * as z from 'zod';

const HOUR_MS = 3_600_000;
const MAX_FILE_BYTES = 1_048_576;

const envValue = z.union([z.string(), z.number(), z.boolean()]).transform(String);

/** One stage. Every duration is in milliseconds. */
export const stageSchema = z.strictObject({
	/** Also the name of its log file and of its step in the journal. */
	name: z
		.string()
		.max(64)
		.regex(/^[A-Za-z0-9][\w.-]*$/, 'must consist of letters, digits, ".", "_" and "-"'),
	/** For `/bin/sh -e`; may have several lines. */
	run: z.string().min(1),
	/** How long the stage may take. */
	timeoutMs: z
		.number()
		.int()
		.min(1)
		.max(24 * HOUR_MS)
		.default(HOUR_MS),
	/** Added to the server's own environment. */
	env: z.record(z.string().regex(/^[A-Za-z_]\w*$/, 'is not a name for a variable'), envValue).default({}),
	/** A question that somebody must say yes to before the stage starts. */
	approval: z.string().min(1).max(1_000).nullable().default(null),
	/** How long the stage has between SIGTERM and SIGKILL when it is stopped. */
	killGraceMs: z.number().int().min(0).max(60_000).default(5_000),
});

export type Stage = z.infer<typeof stageSchema>;

const pipelineSchema = z.strictObject({
	stages: z
		.array(stageSchema)
		.min(1, 'must have at least one stage')
		.max(100)
		.superRefine((stages, context) => {
			for (const [index, { name }] of stages.entries()) {
				const first = stages.findIndex((stage) => stage.name.toLowerCase() === name.toLowerCase());
				if (first < index)
					context.addIssue({
						code: 'custom',
						path: [index, 'name'],
						message: `"${name}" is the name of another stage`,
					});
			}
		}),
});

/**
 * Reads a pipeline file.
 *
 * @throws an error whose message names every problem as `FILE:LINE: KEY: WHAT`.
 */
export function readPipeline(path: string, shownAs: string): readonly Stage[] {
	if (statSync(path).size > MAX_FILE_BYTES)
		throw new Error(`${shownAs} is larger than ${MAX_FILE_BYTES} bytes`);
	const lines = new LineCounter();
	const document = parseDocument(readFileSync(path, 'utf8'), { lineCounter: lines, prettyErrors: false });
	const problem = (offset: number, text: string): string =>
		`${shownAs}:${lines.linePos(offset).line}: ${text}`;
	if (document.errors.length > 0)
		throw new Error(document.errors.map(({ pos, message }) => problem(pos[0], message)).join('\n'));
	// Fails when aliases multiply beyond measure.
	const checked = pipelineSchema.safeParse(document.toJS() ?? {});
	if (checked.success) return checked.data.stages;
	const problems = checked.error.issues.flatMap((issue) => {
		const unknown = issue.code === 'unrecognized_keys' ? issue.keys : [undefined];
		return unknown.map((key) => {
			const keys = key === undefined ? issue.path : [...issue.path, key];
			const text = key === undefined ? issue.message : 'is not a key that is known here';
			return problem(offsetOf(document, keys), `${nameOf(keys)}: ${text}`);
		});
	});
	throw new Error(problems.join('\n'));
}

/** The stages that were asked for, in the order of the file. */
export function chooseStages(
	stages: readonly Stage[],
	wanted: readonly string[] | undefined,
): readonly Stage[] {
	if (wanted === undefined) return stages;
	const names = stages.map(({ name }) => name);
	const unknown = wanted.filter((name) => !names.includes(name));
	if (unknown.length > 0)
		throw new Error(`No stage is called ${unknown.join(', ')}; the stages are ${names.join(', ')}`);
	return stages.filter(({ name }) => wanted.includes(name));
}

/** Where a key stands in the text; of a missing one, where its map stands. */
function offsetOf(document: Document, path: readonly PropertyKey[]): number {
	for (let length = path.length; length > 0; length -= 1) {
		const key = path[length - 1];
		const parent = document.getIn(path.slice(0, length - 1), true);
		const pair = isMap(parent)
			? parent.items.find((item) => isScalar(item.key) && item.key.value === key)
			: undefined;
		const node = pair ? pair.key : document.getIn(path.slice(0, length), true);
		if (isNode(node) && node.range) return node.range[0];
	}
	return document.contents?.range?.[0] ?? 0;
}

/** `stages[2].timeoutMs` for a path. */
function nameOf(path: readonly PropertyKey[]): string {
	const name = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
	return name.replace(/^\./, '') || 'the file';
}
