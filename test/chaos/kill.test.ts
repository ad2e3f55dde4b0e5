/**
 * What a `kill -9` of the serving process may and may not do. `KILLS` sets how often (default 200), `SEED` plays the
 * choices of an earlier run again; the moments at which the processes are hit differ all the same.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Campaign } from './campaign.ts';
import type { Findings } from './ledger.ts';
import { Random } from './random.ts';
import { VictimProcess } from './victim-process.ts';

const KILLS = Number(process.env['KILLS'] ?? 200);
/** Kills under the timing that users get; the rest is under a faster one, so that they fit into a minute. */
const KILLS_AT_DEFAULT_TIMING = Math.min(10, KILLS);
const SEED = Number(process.env['SEED'] ?? Math.trunc(Math.random() * 2 ** 31));
const QUICK_TIMING = { leaseMs: 2_000, renewMs: 500, sweepMs: 250 };
const STUCK_AFTER_MS = 10_000;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-kill-'));
const cacheFolder = join(folder, 'cache');

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function campaigns(
	name: string,
	count: number,
	kills: number,
	options: Pick<Options, 'timing' | 'repliesPerLife' | 'awaitRecovery'>,
) {
	const startedAtMs = performance.now();
	const parts = await Promise.all(
		Array.from({ length: count }, (_, index) =>
			new Campaign({
				...options,
				folder: join(folder, `${name}-${index}`),
				cacheFolder,
				random: new Random(SEED + index),
				kills: Math.floor(kills / count) + (index < kills % count ? 1 : 0),
			}).run(),
		),
	);
	report(name, parts, performance.now() - startedAtMs);
	return parts;
}
type Options = ConstructorParameters<typeof Campaign>[0];

function report(name: string, parts: readonly (Findings & { tasks: number })[], tookMs: number): void {
	const recoveries = parts.flatMap(({ recoveriesMs }) => recoveriesMs).sort((a, b) => a - b);
	const at = (share: number): number => Math.round(recoveries[Math.ceil(share * recoveries.length) - 1] ?? 0);
	const sum = (pick: (part: Findings & { tasks: number }) => number): number =>
		parts.reduce((total, part) => total + pick(part), 0);
	const kills = sum(({ openAtKill }) => openAtKill.length);
	const open = sum(({ openAtKill }) => openAtKill.reduce((a, b) => a + b, 0));
	const requests = sum(({ requestsAtKill }) => requestsAtKill.reduce((a, b) => a + b, 0));
	console.log(
		[
			`${name}, seed ${SEED}: ${kills} kills in ${(tookMs / 1000).toFixed(1)} s, ${sum(({ tasks }) => tasks)} tasks`,
			`open tasks per kill ${(open / kills).toFixed(1)}, requests in flight per kill ${(requests / kills).toFixed(1)}`,
			`steps cut off between work and record ${sum(({ unrecordedSteps }) => unrecordedSteps)}, run again ${sum(({ repeatedSteps }) => repeatedSteps)}`,
			`ended as outcome unknown ${sum(({ unknownOutcomes }) => unknownOutcomes)}`,
			`recoveries ${recoveries.length}: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`,
		].join('\n  '),
	);
}

it(`no task is lost, stuck, repeated or rewritten over ${KILLS} kills of the serving process`, {
	timeout: 400_000,
}, async () => {
	const warmUp = new VictimProcess({
		dbFile: join(folder, 'warm-up.db'),
		effectsFile: join(folder, 'warm-up.txt'),
		cacheFolder,
		timing: {},
	});
	await warmUp.serve();
	await warmUp.kill('SIGTERM');
	const quick = await campaigns('quick timing', 2, KILLS - KILLS_AT_DEFAULT_TIMING, {
		timing: QUICK_TIMING,
		repliesPerLife: [0, 60],
		awaitRecovery: false,
	});
	const usual = await campaigns('default timing', 5, KILLS_AT_DEFAULT_TIMING, {
		timing: {},
		repliesPerLife: [40, 120],
		awaitRecovery: true,
	});
	const all = [...quick, ...usual];
	expect(all.flatMap(({ violations }) => violations)).toEqual([]);
	expect(Math.max(...all.flatMap(({ recoveriesMs }) => recoveriesMs))).toBeLessThan(STUCK_AFTER_MS);
	expect(all.flatMap(({ openAtKill }) => openAtKill)).toHaveLength(KILLS);
});
