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
		/** When the server had the answer to a question. */
		const answeredAtMs = new Map<string, number>();
		const server = await serveHttp((mcp, tasks) =>
			mcp.registerTool(
				'work',
				{ inputSchema: z.object({ index: z.number() }) },
				tasks.handler({ syncWindowMs: 0 }, async ({ index }, task) => {
					await task.sleep('before', 50 * index);
					const requestedSchema = { type: 'object', properties: { ok: { type: 'boolean' } } };
					const message = `${index} ${task.taskId}`;
					await task.requireInput('sure', { mode: 'form', message, requestedSchema });
					if (!answeredAtMs.has(message)) answeredAtMs.set(message, Date.now());
					await task.sleep('after', 100);
					return text(message);
				}),
			),
		);
		ends.push(() => server.close(0));
		let kills = 0;
		let asked = 0;
		let handles = 0;
		let repeated = 0;
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
			// Each handle that the host received has its result, once.
			for (const handle of of('handle'))
				expect(of('result').filter((result) => result === handle)).toEqual([handle]);
			// A second task of an index only where the crash came before the handle was received.
			const indexes = of('result').map((line) => line.split(' ')[0] ?? '');
			expect(new Set(indexes).size).toBe(TASKS);
			expect(new Set(of('result')).size).toBe(of('result').length);
			const restarted = of('starting').length - of('started').length;
			expect(indexes.length).toBeLessThanOrEqual(TASKS + restarted);
			const questions = of('asked').map((line) => {
				const [atMs, ...message] = line.split(' ');
				return { atMs: Number(atMs), message: message.join(' ') };
			});
			// None is asked that the server has an answer to.
			for (const { atMs, message } of questions)
				expect(atMs).toBeLessThanOrEqual(answeredAtMs.get(message) ?? 0);
			for (const message of new Set(of('answered'))) {
				// Once more at most when it was answered: where the crash came before the answer was kept.
				const first = lines.indexOf(`answered ${message}`);
				const later = lines
					.slice(first)
					.filter((line) => line.startsWith('asked ') && line.endsWith(message));
				repeated += later.length;
				expect(later.length).toBeLessThanOrEqual(1);
			}
			handles += of('handle').length;
			asked += of('asked').length;
			results += of('result').length;
		}
		console.log(
			`${kills} kills: ${handles} handles received, ${results} results, each once; ${answeredAtMs.size} questions ` +
				`asked ${asked} times, ${repeated} of them after their answer was given and before it was kept`,
		);
	});
});
