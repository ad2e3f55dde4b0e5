/** The programs in the docs compile as they stand there. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

// docs/client.md is one program, and has a test of its own.
test.each([['docs/agents.md', 2]])('the programs in %s compile', (file, count) => {
	const page = readFileSync(join(root, file), 'utf8');
	const programs = Array.from(page.matchAll(/```ts\n([\s\S]*?)```/g), ([, program = '']) => program);
	expect(programs).toHaveLength(count);
	// Below the package, so that its dependencies are found.
	const folder = mkdtempSync(join(root, 'test/docs/.programs-'));
	try {
		for (const [index, program] of programs.entries())
			writeFileSync(join(folder, `program-${index}.ts`), program);
		writeFileSync(
			join(folder, 'tsconfig.json'),
			JSON.stringify({ extends: '../../../tsconfig.json', include: ['*.ts'] }),
		);
		const { stdout, stderr } = spawnSync(
			process.execPath,
			[join(root, 'node_modules/typescript/bin/tsc'), '-p', folder],
			{ encoding: 'utf8' },
		);
		expect(stdout + stderr).toBe('');
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
});
