/** What a mapping may say, and what is said about one that is wrong. */
import { expect, test } from 'vitest';
import { foldMappingSchema, hiddenOf } from '../../src/gateway/folding/fold-mapping.ts';
import { COMMON_WORDS, stateOf, type StateWords } from '../../src/gateway/folding/fold-state.ts';
import { Reply } from '../../src/gateway/folding/place.ts';
import { FOLD_PRESETS, foldSchema } from '../../src/gateway/folding/presets.ts';
import { REPORTS } from './folding-gateway.ts';
import { jsonText, structured, texts } from './folding-stand-in.ts';

/** What is wrong, as `path: message`. */
function problems(mapping: unknown): readonly string[] {
	const { error } = foldSchema.safeParse([mapping]);
	return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`);
}

const NO_WORDS: StateWords = {
	...{ working: [], input_required: [], completed: [], failed: [], cancelled: [], lost: [] },
};

test('a mapping needs a start, a handle and a check, and has a default for the rest', () => {
	const mapping = foldMappingSchema.parse({
		start: { tool: 'start' },
		ids: { id: 'id' },
		check: { tool: 'check', arguments: { id: '{id}' } },
	});
	expect(mapping).toMatchObject({
		pollMs: 5_000,
		maxPollMs: 60_000,
		deadlineMs: 86_400_000,
		hideFrom: 'tasks',
	});
	expect(mapping.status.paths).toEqual([{ path: 'status' }]);
	expect(hiddenOf(mapping)).toEqual(['check']);
});

test.each<[string, unknown, string]>([
	['an unknown preset', 'firecrawl', '0: there is no preset "firecrawl"; there are firecrawl-agent, '],
	['an unknown key', { ...REPORTS, timeout: 5 }, '0: Unrecognized key: "timeout"'],
	[
		'a floor below a second',
		{ ...REPORTS, pollMs: 500 },
		'0.pollMs: Too small: expected number to be >=1000',
	],
	[
		'a ceiling below the floor',
		{ ...REPORTS, pollMs: 9_000, maxPollMs: 8_000 },
		'0.maxPollMs: must be at least pollMs (9000)',
	],
	[
		'a part that is none',
		{ ...REPORTS, check: { tool: 'get_report', arguments: { job: '{run}' } } },
		'0.check.arguments: {run} is none of the parts: job',
	],
	['no handle', { ...REPORTS, ids: {} }, '0.ids: needs at least one part of a handle'],
	[
		'a path that is none',
		{ ...REPORTS, ids: { job: '$.job' } },
		'0.ids.job.0.path: must be a path like data.runs[0].id',
	],
	[
		'an expression without a group',
		{ ...REPORTS, ids: { job: { text: 'job .*' } } },
		'0.ids.job.0.text: must be a regular expression with one group in parentheses',
	],
	[
		'a place that is two',
		{ ...REPORTS, ids: { job: { path: 'a', argument: 'b' } } },
		'0.ids.job.0: needs exactly one of path, text and argument',
	],
	[
		'arguments for no tool',
		{ ...REPORTS, result: { arguments: { job: '{job}' } } },
		'0.result.arguments: are given to no tool; name it in tool',
	],
])('%s is refused with the place and the reason', (_what, mapping, problem) => {
	expect(problems(mapping).join('\n')).toContain(problem);
});

test('presets and mappings may be mixed; one needs no list', () => {
	expect(foldSchema.parse(['aws-cloud-control', REPORTS])).toHaveLength(4);
	expect(foldSchema.parse('exa-agent')).toEqual(FOLD_PRESETS['exa-agent'].mappings);
	expect(foldSchema.parse(undefined)).toEqual([]);
});

test('words are the same in any case and spelling, numbers only as numbers, and the mapping goes first', () => {
	expect(stateOf('In-Progress', NO_WORDS)).toBe('working');
	expect(stateOf('TIMED-OUT', NO_WORDS)).toBe('failed');
	expect(stateOf(10, NO_WORDS)).toBeUndefined();
	expect(stateOf('10', { ...NO_WORDS, completed: [10] })).toBeUndefined();
	expect(stateOf('ready', { ...NO_WORDS, completed: ['READY'] })).toBe('completed');
	const all = Object.values(COMMON_WORDS).flat();
	expect(new Set(all).size).toBe(all.length);
});

test('a value is looked for in structured content, then in JSON wherever a text has it, then in words', () => {
	const find = (result: ReturnType<typeof texts>, place: unknown) =>
		new Reply(result, { org: 'acme' }).find(foldMappingSchema.shape.ids.parse({ it: place })['it'] ?? []);
	expect(find({ ...structured({ job: { id: 1 } }), content: [] }, 'job.id')).toBe(1);
	expect(find(jsonText({ jobs: [{ id: 'a' }] }), 'jobs[0].id')).toBe('a');
	expect(find(texts('Started:\n```json\n{"id": "b"}\n```'), 'id')).toBe('b');
	expect(find(texts('Started {"id": "c"} just now'), 'id')).toBe('c');
	expect(find(texts('first', 'job 42 started'), ['id', { text: String.raw`job (\d+)`, as: 'number' }])).toBe(
		42,
	);
	expect(find(texts(''), { argument: 'org' })).toBe('acme');
	expect(find(texts('{"id": null}'), 'id')).toBeUndefined();
});
