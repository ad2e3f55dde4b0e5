import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { chooseStages, readPipeline, type Stage } from '../pipeline-file.ts';
import { Scratch } from './scratch.ts';

const scratch = new Scratch();

afterAll(() => scratch.remove());

function read(yaml: string): readonly Stage[] {
	const path = join(scratch.folder, 'pipeline.yaml');
	writeFileSync(path, yaml);
	return readPipeline(path, 'pipeline.yaml');
}

describe('readPipeline', () => {
	it('fills in what is left out', () => {
		expect(read('stages: [{ name: a, run: make, env: { N: 1, ON: true } }]')).toEqual([
			{
				name: 'a',
				run: 'make',
				env: { N: '1', ON: 'true' },
				timeoutMs: 3_600_000,
				approval: null,
				killGraceMs: 5_000,
			},
		]);
	});

	it.each([
		['stages: [', /^pipeline\.yaml:\d+: /],
		['', /^pipeline\.yaml:1: stages: .*expected array/],
		['- a', /^pipeline\.yaml:1: the file: .*expected object/],
		['stages: []', /^pipeline\.yaml:1: stages: must have at least one stage$/],
		[
			'stages:\n- { name: a, run: x }\n- { name: A, run: y }',
			/^pipeline\.yaml:3: stages\[1\]\.name: "A" is the name of another stage$/,
		],
		['a: 1\na: 2', /^pipeline\.yaml:2: Map keys must be unique/],
		['stages:\n- name: ../a\n  run: x', /^pipeline\.yaml:2: stages\[0\]\.name: must consist of/],
		[
			'stages:\n- name: a\n  run: x\n  env:\n    A: b\n    C-D: e',
			/^pipeline\.yaml:6: stages\[0\]\.env\.C-D: /,
		],
		['stages:\n- name: a\n  run: x\n  env:\n    A: [b]', /^pipeline\.yaml:5: stages\[0\]\.env\.A: /],
		['stages:\n- name: a\n  run: x\n  timeoutMs: 1.5', /^pipeline\.yaml:4: stages\[0\]\.timeoutMs: /],
		[`a: &a [${'x,'.repeat(200)}]\nb: &b [${'*a,'.repeat(200)}]\nstages: [${'*b,'.repeat(200)}]`, /alias/i],
	])('refuses %j', (yaml, message) => {
		expect(() => read(yaml)).toThrow(message);
	});
});

describe('chooseStages', () => {
	it('keeps the order of the file', () => {
		const stages = read('stages: [{ name: a, run: x }, { name: b, run: x }, { name: c, run: x }]');
		expect(chooseStages(stages, ['c', 'a']).map(({ name }) => name)).toEqual(['a', 'c']);
		expect(chooseStages(stages, undefined)).toHaveLength(3);
	});
});
