import { expect, test } from 'vitest';
import { currentPage, freshPage } from '../../scripts/hosts-page.ts';

test('docs/hosts.md says of hosts what the table of the gateway says; `npm run docs` writes it', () => {
	expect(currentPage()).toBe(freshPage(currentPage()));
});
