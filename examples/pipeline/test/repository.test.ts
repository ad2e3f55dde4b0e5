/** The example on real input: the stages of pipeline.yaml on this repository. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PipelineServer } from './pipeline-server.ts';
import { Checkout, Scratch } from './scratch.ts';

const repository = new Checkout(join(import.meta.dirname, '../../..'));
const scratch = new Scratch();
let server: PipelineServer;

beforeAll(async () => {
	server = await PipelineServer.start(scratch.database, repository.folder);
});

afterAll(async () => {
	await server.end('SIGTERM');
	scratch.remove();
});

it('runs the stages of this repository', { timeout: 120_000 }, async () => {
	const taskId = await server.run(repository, { file: 'examples/pipeline/pipeline.yaml' });
	const { content, structuredContent } = await server.result(taskId, 110_000);
	expect(structuredContent?.status, content[0]?.text).toBe('passed');
	expect(structuredContent?.stages.map(({ name, exitCode }) => [name, exitCode])).toEqual([
		['history', 0],
		['listing', 0],
		['types', 0],
		['lint', 0],
		['test', 0],
	]);
	const [history, listing, , , test] =
		structuredContent?.stages.map(({ logFile }) => readFileSync(logFile ?? '', 'utf8')) ?? [];
	expect(history).toMatch(/^[0-9a-f]{7,} \S/);
	expect(listing).toContain('package.json');
	expect(test).toMatch(/Tests\s+\d+ passed/);
});
