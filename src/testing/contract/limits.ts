import assert from 'node:assert/strict';
import type { TaskRecord } from '../../backend/record.ts';
import type { TaskStore } from '../../backend/store.ts';
import { ENDED, newDetails, newRecord, revised, TEST_LIMITS } from '../records.ts';
import { type Check, create } from './check.ts';

/** Idempotency keys, limits and eviction. */
export function checkLimits(check: Check): void {
	check('an idempotency key belongs to one task of a principal', async ({ store }) => {
		const first = newRecord({ principal: 'ada', idempotencyKey: 'k' });
		await create(store, newDetails(first));
		const second = newRecord({ principal: 'ada', idempotencyKey: 'k', tool: 'other' });
		assert.deepEqual(await create(store, newDetails(second)), { kind: 'exists', record: first });
		assert.equal(await store.get(second.taskId), undefined);
		const others = [newRecord({ principal: 'ada' }), newRecord({ principal: 'bob', idempotencyKey: 'k' })];
		for (const record of others) assert.equal((await create(store, newDetails(record))).kind, 'created');
	});

	check('a principal and a key are never mixed up', async ({ store }) => {
		for (const [principal, idempotencyKey] of [
			['a', 'b:c'],
			['a:b', 'c'],
			['a","b', 'c'],
			['a', 'b","c'],
			['', 'a'],
			['a', ''],
		] as const)
			assert.equal((await create(store, newDetails({ principal, idempotencyKey }))).kind, 'created');
	});

	check('of many creates with one key at the same time one wins', async ({ store }) => {
		const outcomes = await Promise.all(
			Array.from({ length: 20 }, () => create(store, newDetails({ idempotencyKey: 'k' }))),
		);
		assert.equal(outcomes.filter(({ kind }) => kind === 'created').length, 1);
		assert.equal(outcomes.filter(({ kind }) => kind === 'exists').length, 19);
	});

	check('a removed task gives its key back', async ({ store }) => {
		const record = newRecord({ idempotencyKey: 'k' });
		await create(store, newDetails(record));
		await store.remove(record.taskId, 1);
		assert.equal((await create(store, newDetails({ idempotencyKey: 'k' }))).kind, 'created');
	});

	check('a principal has at most so many open tasks', async ({ store }) => {
		const limits = { ...TEST_LIMITS, maxOpenPerPrincipal: 2 };
		const first = newRecord({ principal: 'ada', idempotencyKey: 'k' });
		await store.create(newDetails(first), limits);
		await store.create(newDetails({ principal: 'ada', status: 'input_required' }), limits);
		const refused = newDetails({ principal: 'ada' });
		assert.deepEqual(await store.create(refused, limits), { kind: 'limit', scope: 'principal', limit: 2 });
		assert.equal(await store.get(refused.record.taskId), undefined);
		const repeated = await store.create(newDetails({ principal: 'ada', idempotencyKey: 'k' }), limits);
		assert.equal(repeated.kind, 'exists');
		assert.equal((await store.create(newDetails({ principal: 'bob' }), limits)).kind, 'created');
		await store.replace(revised(first, ENDED), 'full');
		assert.equal((await store.create(refused, limits)).kind, 'created');
		assert.equal((await store.create(newDetails({ principal: 'ada' }), limits)).kind, 'limit');
	});

	check('all principals together have at most so many open tasks', async ({ store }) => {
		const limits = { ...TEST_LIMITS, maxOpen: 2 };
		const first = newRecord({ principal: 'ada' });
		await store.create(newDetails(first), limits);
		await store.create(newDetails({ principal: 'bob' }), limits);
		const refused = newDetails({ principal: 'eve' });
		assert.deepEqual(await store.create(refused, limits), { kind: 'limit', scope: 'total', limit: 2 });
		await store.remove(first.taskId, 1);
		assert.equal((await store.create(refused, limits)).kind, 'created');
		assert.equal((await store.create(newDetails(), limits)).kind, 'limit');
	});

	check('the oldest ended tasks of a principal make room', async ({ store }) => {
		const create = (fields: Partial<TaskRecord>) => {
			const record = newRecord(fields);
			const limits = { ...TEST_LIMITS, maxKeptPerPrincipal: 2 };
			return store.create(newDetails(record), limits).then(() => record);
		};
		const foreign = await create({ principal: 'bob', ...ENDED });
		const open = await create({ principal: 'ada' });
		const records: TaskRecord[] = [];
		for (const status of ['completed', 'failed', 'cancelled', 'completed'] as const)
			records.push(await create({ principal: 'ada', idempotencyKey: `key ${records.length}`, status }));
		assert.deepEqual(await kept(store, records), [false, false, true, true]);
		assert.deepEqual(await kept(store, [foreign, open]), [true, true]);
		const again = await create({ principal: 'ada', idempotencyKey: 'key 0' });
		assert.deepEqual(await kept(store, [again]), [true]);
		await store.replace(revised(open, ENDED), 'full');
		await create({ principal: 'ada' });
		assert.deepEqual(await kept(store, [open, ...records]), [false, false, false, true, true]);
	});
}

async function kept(store: TaskStore, records: readonly TaskRecord[]): Promise<boolean[]> {
	return Promise.all(records.map(async ({ taskId }) => (await store.get(taskId)) !== undefined));
}
