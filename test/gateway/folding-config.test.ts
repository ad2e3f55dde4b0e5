/** Folding in a configuration file. */
import { expect, test } from 'vitest';
import { upstreamsOf } from '../../src/gateway/config.ts';
import { readConfig } from '../../src/gateway/config-file.ts';

/** A configuration of one server with this under `fold`. */
function withFold(fold: string): string {
	return `upstreams:\n  reports:\n    command: [node, reports.js]\n${fold}`;
}

test('presets and mappings are read', () => {
	const text = withFold(
		'    fold:\n      - exa-agent\n      - start: { tool: a }\n        ids: { id: id }\n        check: { tool: b }\n',
	);
	const [upstream] = upstreamsOf(readConfig(text, 'gateway.yaml', {}), {}, '/');
	expect(upstream?.folds.map(({ start, check }) => [start.tool, check.tool])).toEqual([
		['agent_run', 'agent_run'],
		['a', 'b'],
	]);
});

test('nothing is folded by itself', () => {
	expect(upstreamsOf(readConfig(withFold(''), 'gateway.yaml', {}), {}, '/')[0]?.folds).toEqual([]);
});

test('a wrong mapping is refused with the line and the reason', () => {
	const text = withFold('    fold: [firecrawl]\n');
	expect(() => readConfig(text, 'gateway.yaml', {})).toThrow(
		/^gateway\.yaml:4: upstreams\.reports\.fold\.0: there is no preset "firecrawl"; there are firecrawl-agent, /,
	);
});
