import assert from 'node:assert/strict';
import { ALL, ENDED, EVERYTHING, newDetails, newRecord, revised } from '../records.ts';
import { type Check, create } from './check.ts';

/** Compare-and-set, and forgetting. */
export function checkWriting(check: Check): void {
	check('a record is replaced only by its next revision', async ({ store }) => {
		const record = newRecord();
		await create(store, newDetails(record));
		for (const revision of [0, 1, 3])
			assert.equal(await store.replace({ ...record, revision, statusMessage: 'wrong' }, 'full'), false);
		assert.deepEqual(await store.get(record.taskId), record);
		const second = revised(record, { statusMessage: 'right' });
		assert.equal(await store.replace(second, 'normal'), true);
		assert.equal(await store.replace(second, 'full'), false);
		assert.deepEqual(await store.get(record.taskId), second);
		assert.equal(await store.replace(revised(newRecord()), 'full'), false);
	});

	check('every changeable field is replaced, and emptied again', async ({ store }) => {
		const empty = newRecord();
		await create(store, newDetails(empty));
		const { taskId, tool, principal, idempotencyKey, createdAtMs } = empty;
		const full = {
			...newRecord(EVERYTHING),
			taskId,
			tool,
			principal,
			idempotencyKey,
			createdAtMs,
			revision: 2,
		};
		assert.equal(await store.replace(full, 'full'), true);
		assert.deepEqual(await store.get(taskId), full);
		assert.equal(await store.replace({ ...empty, revision: 3 }, 'normal'), true);
		assert.deepEqual(await store.get(taskId), { ...empty, revision: 3 });
		assert.equal(await store.replace({ ...full, revision: 4 }, 'full'), true);
		assert.deepEqual(await store.get(taskId), { ...full, revision: 4 });
	});

	check('arguments and steps outlive a replacement', async ({ store }) => {
		const details = newDetails({}, { prepared: 'p', steps: [{ name: 's', value: 1 }] });
		await create(store, details);
		const record = revised(details.record, ENDED);
		await store.replace(record, 'full');
		assert.deepEqual(await store.load(record.taskId), { ...details, record });
	});

	check('of many replacements at the same time one wins', async ({ store }) => {
		const record = newRecord();
		await create(store, newDetails(record));
		const results = await Promise.all(
			Array.from({ length: 20 }, (_, n) => store.replace(revised(record, { statusMessage: `${n}` }), 'full')),
		);
		assert.equal(results.filter(Boolean).length, 1);
		const winner = (await store.get(record.taskId))?.statusMessage;
		assert.equal(winner, String(results.indexOf(true)));
	});

	check('a task is forgotten only at its revision, with all it had', async ({ store, dispatcher }) => {
		const details = newDetails({}, { steps: [{ name: 's', value: 1 }] });
		const { taskId } = details.record;
		await create(store, details);
		assert.equal(await store.remove(taskId, 2), false);
		assert.equal(await store.remove(taskId, 1), true);
		assert.equal(await store.remove(taskId, 1), false);
		assert.equal(await store.load(taskId), undefined);
		assert.equal(await store.replace(revised(details.record), 'full'), false);
		assert.deepEqual(await store.due(Number.MAX_SAFE_INTEGER, 10), []);
		assert.equal(await dispatcher.nextRunAtMs(), null);
		assert.deepEqual((await store.list(ALL)).records, []);
		// A task that takes its place has nothing of it.
		const next = newDetails();
		await create(store, next);
		assert.deepEqual(await store.load(next.record.taskId), next);
	});
}
