import assert from 'node:assert/strict';
import { leased, newDetails, newRecord, T0 } from '../records.ts';
import { type Check, create } from './check.ts';

/** Fencing by the token of a lease. */
export function checkLeases(check: Check): void {
	check('only the holder of the lease saves steps', async ({ store }) => {
		const record = newRecord(leased('mine', T0 + 10));
		await create(store, newDetails(record));
		assert.equal(await store.saveStep(record.taskId, 'other', { name: 's', value: 1 }), false);
		assert.equal(await store.saveStep('nothing', 'mine', { name: 's', value: 1 }), false);
		assert.deepEqual(await store.load(record.taskId), newDetails(record));
		const free = newRecord();
		await create(store, newDetails(free));
		assert.equal(await store.saveStep(free.taskId, 'mine', { name: 's', value: 1 }), false);
	});

	check('a step marks the record as journalled without a new revision', async ({ store }) => {
		const record = newRecord(leased('mine', T0 - 10));
		await create(store, newDetails(record));
		assert.equal(await store.saveStep(record.taskId, 'mine', { name: 's', value: 1 }), true);
		assert.deepEqual(await store.get(record.taskId), { ...record, journalled: true });
	});

	check('steps keep their order and their first value', async ({ store }) => {
		const details = newDetails(leased('mine', T0), { steps: [{ name: 'zero', value: 0 }] });
		const { taskId } = details.record;
		await create(store, details);
		for (const [name, value] of Object.entries({ two: 2, one: { a: [1] }, three: null }))
			assert.equal(await store.saveStep(taskId, 'mine', { name, value }), true);
		assert.equal(await store.saveStep(taskId, 'mine', { name: 'two', value: 'again' }), true);
		assert.deepEqual((await store.load(taskId))?.steps, [
			{ name: 'zero', value: 0 },
			{ name: 'two', value: 2 },
			{ name: 'one', value: { a: [1] } },
			{ name: 'three', value: null },
		]);
	});

	check('leases that are still held go on, also lapsed ones', async ({ store }) => {
		const [lapsed, other, taken, free] = [
			newRecord({ ...leased('a', T0 - 10), revision: 7 }),
			newRecord(leased('b', T0 + 10)),
			newRecord(leased('c', T0 + 10)),
			newRecord(),
		];
		for (const record of [lapsed, other, taken, free]) await create(store, newDetails(record));
		const held = await store.renew(
			[
				{ taskId: lapsed.taskId, token: 'a' },
				{ taskId: taken.taskId, token: 'old' },
				{ taskId: free.taskId, token: 'c' },
				{ taskId: 'nothing', token: 'c' },
				{ taskId: other.taskId, token: 'b' },
			],
			T0 + 100,
		);
		assert.deepEqual(
			[...held].sort((a, b) => a.revision - b.revision),
			[
				{ taskId: other.taskId, revision: 1 },
				{ taskId: lapsed.taskId, revision: 7 },
			],
		);
		const lease = { owner: 'worker', token: 'a', expiresAtMs: T0 + 100 };
		assert.deepEqual(await store.get(lapsed.taskId), { ...lapsed, lease, dueAtMs: T0 + 100 });
		assert.deepEqual(await store.get(taken.taskId), taken);
		assert.deepEqual(await store.get(free.taskId), free);
		assert.deepEqual(await store.due(T0 + 50, 10), [taken.taskId]);
		assert.deepEqual(await store.renew([], T0), []);
	});
}
