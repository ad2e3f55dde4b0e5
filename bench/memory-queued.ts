/** What tasks that wait for a worker cost the process that made them. */
import { join } from 'node:path';
import type { Figure } from './figures.ts';
import { backendOn, callOf, FixedDatabase, inParallel, startEngine, withFolder } from './fixture.ts';
import { each, settled } from './memory.ts';

const TASKS = 100_000;
const WARM_UP = 2_000;
const BUSY = 16;

export function measure(): Promise<readonly Figure[]> {
	return withFolder(async (folder) => {
		const backend = backendOn(new FixedDatabase(join(folder, 'tasks.db'), 'normal'));
		const engine = await startEngine(backend, BUSY, () => new Promise(() => {}));
		const call = async (number: number): Promise<void> => void (await engine.call(callOf('deploy', number)));
		// As many as run at once never end, so that all others wait.
		await inParallel(BUSY + WARM_UP, 16, call);
		const before = await settled();
		await inParallel(TASKS, 16, call);
		const cost = each(before, await settled(), TASKS);
		await engine.stop(0);
		await backend.close();
		return [
			{ what: 'heap of one of 100,000 open tasks', value: cost.heap, unit: 'KB', goal: { atMost: 2 } },
			{ what: 'resident memory of one', value: cost.resident, unit: 'KB', goal: { atMost: 2 } },
			{ what: 'resident memory before the first', value: before.resident / 2 ** 20, unit: 'MB' },
		];
	});
}
