/** `kill -9` of the host at random points. HOLDFAST_KILL_RUNS sets how often. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { serveHttp, text } from './server.ts';

const RUNS = Number(process.env['HOLDFAST_KILL_RUNS'] ?? 12);
const TASKS = 6;

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

/** Runs the host; kills it after so many milliseconds. Whether it ended by itself. */
function runHost(url: string, folder: string, killAfterMs: number | undefined): Promise<boolean> {
	return new Promise((resolve, reject) => {
		const host = spawn(
			process.execPath,
			[join(import.meta.dirname, 'crash-host.ts'), url, folder, `${TASKS}`],
			{
				stdio: ['ignore', 'ignore', 'inherit'],
			},
		);
		const timer = killAfterMs === undefined ? undefined : setTimeout(() => host.kill('SIGKILL'), killAfterMs);
		host.on('exit', (code, signal) => {
			clearTimeout(timer);
			if (code !== null && code !== 0) reject(new Error(`The host ended with ${code}`));
			else resolve(signal === null);
		});
	});
}

describe('a host that is killed', () => {
	it(`at ${RUNS} random points loses no handle, no result and no answer (C7, T72, T34)`, {
		timeout: 60_000 + RUNS * 10_000,
	}, async () => {
		/** The questions that the server has an answer to. */
		const answered = new Set<string>();
		const server = await serveHttp((mcp, tasks) =>
			mcp.registerTool(
				'work',
				{ inputSchema: z.object({ index: z.number() }) },
				tasks.handler({ syncWindowMs: 0 }, async ({ index }, task) => {
					await task.sleep('before', 50 * index);
					const requestedSchema = { type: 'object', properties: { ok: { type: 'boolean' } } };
					const message = `${index} ${task.taskId}`;
					await task.requireInput('sure', { mode: 'form', message, requestedSchema });
					answered.add(message);
					await task.sleep('after', 100);
					return text(message);
				}),
			),
		);
		ends.push(() => server.close(0));
		let kills = 0;
		let asked = 0;
		let results = 0;
		while (kills < RUNS) {
			const folder = mkdtempSync(join(tmpdir(), 'holdfast-crash-'));
			ends.push(() => rmSync(folder, { recursive: true, force: true }));
			let killed = 0;
			for (let life = 0; ; life++) {
				const ended = await runHost(server.url, folder, life < 4 ? 350 + Math.random() * 1_400 : undefined);
				if (ended) break;
				kills += 1;
				killed += 1;
			}
			const lines = readFileSync(join(folder, 'log'), 'utf8').trim().split('\n');
			const of = (word: string): string[] =>
				lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
			// Every index has its result; a second one only where the crash came before the handle was journalled.
			const indexes = of('result').map((line) => line.split(' ')[0] ?? '');
			expect(new Set(indexes).size).toBe(TASKS);
			expect(new Set(of('result')).size).toBe(of('result').length);
			const restarted = of('starting').length - of('started').length;
			expect(indexes.length).toBeLessThanOrEqual(TASKS + restarted);
			// A question is asked again only if the host died while it was open, so at most once more for each kill.
			for (const question of new Set(of('asked')))
				expect(of('asked').filter((line) => line === question).length).toBeLessThanOrEqual(killed + 1);
			asked += of('asked').length;
			results += of('result').length;
		}
		console.log(
			`${kills} kills: ${results} results, each once; ${asked} questions for ${answered.size} answers`,
		);
	});
});
