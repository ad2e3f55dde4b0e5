import assert from 'node:assert/strict';
import type { Signals, TaskChange } from '../../backend/signals.ts';
import { leased, newDetails, newRecord, revised, T0 } from '../records.ts';
import { type Check, create } from './check.ts';

/** Deadlines, the dispatcher and signals. */
export function checkWakeUps(check: Check): void {
	check('due tasks, longest overdue first', async ({ store }) => {
		const due = [30, 10, 40, 20].map((after) => newRecord({ dueAtMs: T0 + after }));
		for (const record of due) await create(store, newDetails(record));
		const [thirty, ten, , twenty] = due.map(({ taskId }) => taskId);
		assert.deepEqual(await store.due(T0 + 9, 10), []);
		assert.deepEqual(await store.due(T0 + 30, 10), [ten, twenty, thirty]);
		assert.deepEqual(await store.due(T0 + 30, 2), [ten, twenty]);
		await store.replace(revised(due[1] ?? newRecord(), { dueAtMs: T0 + 25 }), 'full');
		assert.deepEqual(await store.due(T0 + 30, 10), [twenty, ten, thirty]);
	});

	check('runnable tasks, longest waiting first', async ({ store, dispatcher }) => {
		assert.equal(await dispatcher.nextRunAtMs(), null);
		assert.deepEqual(await dispatcher.take(T0, 10), []);
		const records = [30, 10, 40, 20, null].map((after) => newRecord({ runAtMs: after && T0 + after }));
		for (const record of records) await create(store, newDetails(record));
		const [thirty, ten, , twenty] = records.map(({ taskId }) => taskId);
		assert.equal(await dispatcher.nextRunAtMs(), T0 + 10);
		assert.deepEqual(await dispatcher.take(T0 + 9, 10), []);
		assert.deepEqual(await dispatcher.take(T0 + 10, 10), [ten]);
		for (const index of [1, 3])
			await store.replace(revised(records[index] ?? newRecord(), leased('t', T0 + 99)), 'normal');
		assert.equal(await dispatcher.nextRunAtMs(), T0 + 30);
		assert.deepEqual(await dispatcher.take(T0 + 35, 10), [thirty]);
		await store.replace({ ...newRecord(records[3]), revision: 3, runAtMs: T0 + 15 }, 'normal');
		assert.equal(await dispatcher.nextRunAtMs(), T0 + 15);
		assert.deepEqual(await dispatcher.take(T0 + 50, 1), [twenty]);
	});

	check('a change is told to every listener until it leaves', async ({ store, signals }) => {
		const record = newRecord();
		await create(store, newDetails(record));
		const change = { taskId: record.taskId, revision: 1, runnable: true };
		const heard: TaskChange[] = [];
		const leave = signals.subscribe((told) => void heard.push(told));
		await told(signals, change);
		assert.deepEqual(heard[0], change);
		leave();
		leave();
		const count = heard.length;
		await told(signals, { ...change, revision: 2 });
		assert.equal(heard.length, count);
	});

	check('a listener that throws harms neither the publisher nor the others', async ({ signals }) => {
		const leave = signals.subscribe(() => {
			throw new Error('a listener that throws, on purpose');
		});
		await told(signals, { taskId: 'x', revision: 1, runnable: false });
		leave();
	});
}

/** Publishes a change and waits until a listener has heard of it. */
function told(signals: Signals, change: TaskChange): Promise<void> {
	return new Promise((resolve) => {
		const leave = signals.subscribe((heard) => {
			if (heard.taskId !== change.taskId || heard.revision < change.revision) return;
			leave();
			resolve();
		});
		signals.publish(change);
	});
}
