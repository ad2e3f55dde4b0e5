import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { run } from '../cli/harness.ts';

const PAGE = fileURLToPath(new URL('../../docs/cli.md', import.meta.url));

/** A heading with a command's name, and what the command prints for `--help`. */
const SECTION = /^## `holdfast ?([a-z ]*)`\n\n```text\n([\s\S]*?)```$/gm;

const helpOf = async (command: string): Promise<string> =>
	(await run([...command.split(' ').filter(Boolean), '--help'])).stdout;

test('docs/cli.md has what --help of each command prints', async () => {
	const page = readFileSync(PAGE, 'utf8');
	const commands = Array.from(page.matchAll(SECTION), ([, command = '']) => command);
	const helps = new Map(
		await Promise.all(commands.map(async (command) => [command, await helpOf(command)] as const)),
	);
	const current = page.replace(
		SECTION,
		(_, command: string) =>
			`## \`holdfast${command && ` ${command}`}\`\n\n\`\`\`text\n${helps.get(command)}\`\`\``,
	);
	await expect(current).toMatchFileSnapshot(PAGE);
});

test('docs/cli.md has a section for every command', async () => {
	const page = readFileSync(PAGE, 'utf8');
	const sections = Array.from(page.matchAll(SECTION), ([, command]) => command);
	const namesIn = (help: string): string[] =>
		Array.from(
			(help.split('Commands:')[1] ?? '').split('\n\n')[0]?.matchAll(/^ {2}([a-z]+)/gm) ?? [],
			([, name = '']) => name,
		).filter((name) => name !== 'help');
	const commands = ['', ...namesIn(await helpOf(''))];
	const below = namesIn(await helpOf('tasks')).map((name) => `tasks ${name}`);
	expect(new Set(sections)).toEqual(new Set([...commands, ...below]));
	expect(sections, 'none twice').toHaveLength(commands.length + below.length);
});
