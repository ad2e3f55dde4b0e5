import assert from 'node:assert/strict';
import type { TaskRecord } from '../../backend/record.ts';
import type { TaskQuery, TaskStore } from '../../backend/store.ts';
import { ALL, ENDED, EVERYTHING, newDetails, newRecord, revised } from '../records.ts';
import { type Check, create, ids } from './check.ts';

/** Pages, filters and cursors. */
export function checkLists(check: Check): void {
	check('newest first, without results', async ({ store }) => {
		const records = [newRecord({ ...EVERYTHING, idempotencyKey: null }), newRecord(), newRecord()];
		for (const record of records) await create(store, newDetails(record));
		const page = await store.list(ALL);
		assert.deepEqual(page, {
			records: records.reverse().map((record) => ({ ...record, result: null })),
			nextCursor: null,
		});
	});

	check('by principal and by status', async ({ store }) => {
		const records: TaskRecord[] = [];
		for (const status of [
			'working',
			'completed',
			'input_required',
			'failed',
			'cancelled',
			'working',
		] as const)
			for (const principal of ['ada', 'bob']) records.push(newRecord({ principal, status }));
		for (const record of records) await create(store, newDetails(record));
		for (const principal of [null, 'ada', 'bob', 'nobody'])
			for (const statuses of [
				null,
				[],
				['working'],
				['failed', 'working'],
				['cancelled', 'completed', 'failed'],
			] as const) {
				const expected = records
					.filter((record) => principal === null || record.principal === principal)
					.filter((record) => statuses?.some((status) => status === record.status) ?? true)
					.map(({ taskId }) => taskId)
					.reverse();
				const query = { principal, statuses };
				assert.deepEqual(ids(await store.list({ ...ALL, ...query })), expected, JSON.stringify(query));
				assert.deepEqual(await pages(store, { ...ALL, ...query, limit: 2 }), expected, JSON.stringify(query));
			}
	});

	check('a cursor stays where it was while tasks come, change and go', async ({ store }) => {
		const records = Array.from({ length: 6 }, () => newRecord());
		for (const record of records) await create(store, newDetails(record));
		const [a, b, c, d, e, f] = records.map(({ taskId }) => taskId);
		const first = await store.list({ ...ALL, limit: 2 });
		assert.deepEqual(ids(first), [f, e]);
		await create(store, newDetails());
		await store.replace(revised(records[1] ?? newRecord(), ENDED), 'full');
		await store.remove(e ?? '', 1);
		await store.remove(c ?? '', 1);
		const second = await store.list({ ...ALL, limit: 2, cursor: first.nextCursor });
		assert.deepEqual(ids(second), [d, b]);
		const third = await store.list({ ...ALL, limit: 2, cursor: second.nextCursor });
		assert.deepEqual({ ids: ids(third), next: third.nextCursor }, { ids: [a], next: null });
	});

	check('a full last page has no next one', async ({ store }) => {
		for (let n = 0; n < 4; n++) await create(store, newDetails());
		const first = await store.list({ ...ALL, limit: 2 });
		const second = await store.list({ ...ALL, limit: 2, cursor: first.nextCursor });
		assert.equal(second.records.length, 2);
		assert.equal(second.nextCursor, null);
	});
}

async function pages(store: TaskStore, query: TaskQuery): Promise<string[]> {
	const page = await store.list(query);
	if (page.nextCursor === null) return ids(page);
	return [...ids(page), ...(await pages(store, { ...query, cursor: page.nextCursor }))];
}
