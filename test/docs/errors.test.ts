import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/errors.ts';

test('docs/errors.md has one row for each error code, with its meaning', () => {
	const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
	const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (.*) \|$/gm)].map(([, code, meaning]) => [
		code,
		meaning,
	]);
	expect(Object.fromEntries(rows)).toEqual(ERROR_CODES);
});
