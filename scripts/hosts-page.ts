// Writes into docs/hosts.md what is known about hosts, from the table that the gateway uses: `npm run docs`.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { HOSTS, type KnownHost, UNKNOWN_HOST } from '../src/gateway/host-table.ts';

const PAGE = fileURLToPath(new URL('../docs/hosts.md', import.meta.url));
const BEGIN = '<!-- from src/gateway/host-table.ts; `npm run docs` writes it anew -->';
const END = '<!-- end of what is written by `npm run docs` -->';

/** The page as it is. */
export function currentPage(): string {
	return readFileSync(PAGE, 'utf8');
}

/** The page as it should be: its part between the two marks made from the table. */
export function freshPage(page: string): string {
	const [before, rest] = page.split(BEGIN);
	const after = rest?.split(END)[1];
	if (before === undefined || after === undefined)
		throw new Error(`docs/hosts.md has lost its marks: ${BEGIN}`);
	return `${before}${BEGIN}\n\n${table()}\n\n${recipes()}\n\n${END}${after}`;
}

function table(): string {
	const rows = [...HOSTS, UNKNOWN_HOST].map(
		({ title, clientNames, budgetMs: { http, stdio, withToken }, source }) =>
			`| ${title} | ${clientNames.map((name) => `\`${name}\``).join(', ')} | ${seconds(http)} | ${seconds(stdio)} | ${
				withToken === undefined ? '' : seconds(withToken)
			} | ${source} |`,
	);
	return [
		'| host | name in `clientInfo` | held over HTTP | held over stdio | with a progress token | from |',
		'|---|---|---|---|---|---|',
		...rows,
	].join('\n');
}

function seconds(ms: number | null): string {
	return ms === null ? 'to the end' : `${ms / 1_000} s`;
}

function recipes(): string {
	return HOSTS.flatMap((host) => recipe(host)).join('\n\n');
}

function recipe({ title, recipe: found }: KnownHost): string[] {
	if (!found) return [];
	return [`### ${title}`, `${found.file}:`, `\`\`\`${found.language}\n${found.text}\n\`\`\``];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, freshPage(currentPage()));
