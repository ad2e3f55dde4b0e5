/**
 * What a fleet of processes on one store may lose when anything of it fails: nothing. `TASKS` sets how many tasks go
 * through it at least (default 150), `SEED` plays the choices of an earlier run again, `HOLDFAST_TEST_BACKEND` chooses the store.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { messageOf } from '../../src/errors.ts';
import { Fleet } from './fleet.ts';
import { Random } from './random.ts';
import { type FleetStore, fleetStore } from './stores.ts';

const KIND = process.env['HOLDFAST_TEST_BACKEND'] || 'postgres';
const TASKS = Number(process.env['TASKS'] ?? 150);
const SEED = Number(process.env['SEED'] ?? Math.trunc(Math.random() * 2 ** 31));
const SHARED = ['postgres', 'redis'];

const folder = mkdtempSync(join(tmpdir(), 'holdfast-fleet-'));
const store = SHARED.includes(KIND) ? await startStore() : `${KIND} is not for several machines`;

afterAll(async () => {
	if (typeof store !== 'string') await store.remove();
	rmSync(folder, { recursive: true, force: true });
});

async function startStore(): Promise<FleetStore | string> {
	try {
		return await fleetStore(KIND);
	} catch (error) {
		if (process.env['CI']) throw error;
		return messageOf(error);
	}
}

it.skipIf(typeof store === 'string')(
	`${TASKS} tasks or more outlive what happens to 3 servers, 3 workers and the store (${typeof store === 'string' ? store : KIND})`,
	{ timeout: 1_500_000 },
	async () => {
		if (typeof store === 'string') return;
		const startedAtMs = performance.now();
		const fleet = new Fleet({
			store,
			random: new Random(SEED),
			tasks: TASKS,
			effectsFile: join(folder, 'effects.txt'),
			cacheFolder: join(folder, 'cache'),
		});
		await fleet.run();
		const { ledger, blows } = fleet;
		const { repeated, inspected } = ledger.close(3);
		const still = [...ledger.stillMs.values()].sort((a, b) => a - b);
		const at = (share: number): number => Math.round(still[Math.ceil(share * still.length) - 1] ?? 0);
		console.log(
			[
				`${KIND}, seed ${SEED}: ${ledger.tasks.size} handles of ${fleet.begun} calls in ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s`,
				`blows: ${JSON.stringify(blows)}; open tasks at each: ${fleet.openAtBlow.join(', ')}`,
				`longest stillness of a task: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, max ${at(1)} ms`,
				`steps run again because they were cut off before they were on record: ${repeated}; steps on record looked at: ${inspected}`,
			].join('\n  '),
		);
		expect(ledger.violations).toEqual([]);
		expect(ledger.tasks.size).toBeGreaterThan(fleet.begun * 0.9);
		expect(Math.min(...Object.values(blows))).toBeGreaterThan(0);
	},
);
