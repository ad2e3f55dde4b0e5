import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { REQUIREMENTS } from './requirements.ts';

const tests = join(import.meta.dirname, '..');

/** Ids that stand in the name of a test or of a group of tests. */
function citedIds(): Set<string> {
	const cited = new Set<string>();
	for (const file of globSync('**/*.test.ts', { cwd: tests })) {
		const source = readFileSync(join(tests, file), 'utf8');
		for (const [name] of source.matchAll(
			/\b(?:it|test|describe|differs)\b[\w.]*\(\s*(?:\[[\s\S]*?\]\)\()?(['"`])[\s\S]*?\1/g,
		))
			for (const [id] of name.matchAll(/\b[TL]\d\d\b/g)) cited.add(id);
	}
	return cited;
}

describe('the requirements of the specification', () => {
	const cited = citedIds();

	test('are each cited by the name of a test, unless they are deferred with a reason', () => {
		const missing = REQUIREMENTS.filter(({ id, deferred }) => !cited.has(id) && deferred === undefined);
		expect(missing.map(({ id, text }) => `${id} ${text}`)).toEqual([]);
	});

	test('are cited by ids that exist', () => {
		const known = new Set(REQUIREMENTS.map(({ id }) => id));
		expect([...cited].filter((id) => !known.has(id))).toEqual([]);
	});

	test('are not deferred any more once a test cites them', () => {
		expect(REQUIREMENTS.filter(({ id, deferred }) => deferred !== undefined && cited.has(id))).toEqual([]);
	});
});
