/** docs/folding.md says what the code does. `UPDATE_DOCS=1` writes the tables that are made from it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { foldMappingSchema } from '../../src/gateway/folding/fold-mapping.ts';
import { COMMON_WORDS, FOLD_STATES, type FoldState } from '../../src/gateway/folding/fold-state.ts';
import { FOLD_PRESETS, type FoldPreset, foldSchema } from '../../src/gateway/folding/presets.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { begin, getTask, inStatus } from '../support/steps.ts';
import { eventually } from '../support/wire.ts';
import { openGateway, serveStandIn } from '../gateway/folding-rig.ts';
import { jsonText, oneByOne, texts } from '../gateway/folding-stand-in.ts';

const FILE = new URL('../../docs/folding.md', import.meta.url);
const page = readFileSync(FILE, 'utf8');

const BECOMES: Readonly<Record<FoldState, string>> = {
	working: '`working`',
	input_required: '`working`; `statusMessage` says that the server needs something',
	completed: '`completed`, with the result',
	failed: '`completed`, with a result that has `isError`',
	cancelled: '`completed`, with a result that has `isError` and says so; `cancelled` after `tasks/cancel`',
	lost: '`failed`: the outcome is unknown',
};

/** The rows that the code makes, by the name of their table. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
	presets: Object.entries<FoldPreset>(FOLD_PRESETS).map(([name, { server, note, mappings }]) => {
		const starts = mappings.map(({ start }) => `\`${start.tool}\``).join(', ');
		return `| \`${name}\` | ${server} | ${starts} | ${note} |`;
	}),
	words: FOLD_STATES.map(
		(state) => `| \`${state}\` | ${COMMON_WORDS[state].join(', ')} | ${BECOMES[state]} |`,
	),
};

/** The page with its tables made anew. */
function renewed(): string {
	return Object.entries(TABLES).reduce((text, [name, rows]) => {
		const begun = new RegExp(
			`(<!-- ${name}: [^>]*-->\\n(?:\\|.*\\n\\|---.*\\n)?)[\\s\\S]*?(<!-- /${name} -->)`,
		);
		expect(text).toMatch(begun);
		return text.replace(begun, (_all, head: string, tail: string) => `${head}${rows.join('\n')}\n${tail}`);
	}, page);
}

/** The examples in YAML, as configurations. */
const examples = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(
	([, text = '']) => parse(text) as { upstreams: Record<string, { fold: unknown }> },
);

test('its tables are those of the code', () => {
	if (process.env['UPDATE_DOCS'] === '1') writeFileSync(FILE, renewed());
	else expect(page).toBe(renewed());
});

test('it names every key of a mapping', () => {
	const table = page.slice(page.indexOf('| key | meaning |'), page.indexOf('A place in a reply'));
	for (const key of Object.keys(foldMappingSchema.shape)) expect(table).toMatch(new RegExp(`\`${key}[\`.]`));
});

test('its examples are right', () => {
	expect(examples).toHaveLength(2);
	for (const { upstreams } of examples)
		for (const { fold } of Object.values(upstreams)) expect(foldSchema.parse(fold).length).toBeGreaterThan(0);
});

test('its own mapping does what is written beside it', async () => {
	const integer = { type: 'integer' };
	const reply = oneByOne({ state: 'rendering', percent: 40 }, { state: 'published', percent: 100 });
	const server = await serveStandIn({
		start_report: {
			properties: { topic: { type: 'string' }, notify_url: { type: 'string' } },
			call: () => jsonText({ report: { id: 7 } }),
		},
		get_report: { properties: { report_id: integer }, call: () => jsonText(reply()) },
		download_report: {
			properties: { report_id: integer, format: { type: 'string' } },
			call: ({ report_id, format }) => texts(`report ${JSON.stringify([report_id, format])}`),
		},
		cancel_report: { properties: { report_id: integer }, call: () => texts('') },
	});
	const wire = await openGateway(server.url, examples[1]?.upstreams['reports']?.fold, {
		tools: { start_report: { syncWindowMs: 0 } },
	});
	const { result: list } = await wire.request('tools/list');
	const tools = list?.['tools'] as readonly JsonObject[];
	expect(new Set(tools.map(({ name }) => name))).toEqual(new Set(['download_report', 'report']));
	expect(JSON.stringify(tools)).not.toContain('notify_url');
	const taskId = await begin(wire, 'report', { topic: 'bees' });
	await eventually(async () => expect((await getTask(wire, taskId))['statusMessage']).toContain('40%'));
	const { result } = await inStatus(wire, taskId, 'completed');
	expect(result).toMatchObject({ content: [{ text: 'report [7,"text"]' }] });
	expect(server.of('get_report')[0]).toEqual({ report_id: 7 });
});
