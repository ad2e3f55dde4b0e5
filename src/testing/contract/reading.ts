import assert from 'node:assert/strict';
import type { TaskRecord } from '../../backend/record.ts';
import type { JsonObject } from '../../protocol/json.ts';
import { ALL, EVERYTHING, newDetails, newRecord, revised, T0 } from '../records.ts';
import { type Check, create } from './check.ts';

/** What was created is read back exactly. */
export function checkReading(check: Check): void {
	check('closing twice does nothing', async (backend) => {
		await backend.close();
		await backend.close();
	});

	check('the clock gives milliseconds since the epoch', async ({ store }) => {
		assert.ok((await store.nowMs()) >= T0);
	});

	check('an unknown id has no record', async ({ store }) => {
		assert.equal(await store.get('nothing'), undefined);
		assert.equal(await store.load('nothing'), undefined);
	});

	check('every field comes back as it was written', async ({ store }) => {
		const details = newDetails(EVERYTHING, {
			arguments: { nested: { list: [1, 'two', null, true, 0.1, 1e300] } },
			prepared: { plan: ['a'] },
			steps: [
				{ name: 'zebra', value: 1 },
				{ name: 'apple', value: null },
			],
		});
		assert.deepEqual(await create(store, details), { kind: 'created' });
		assert.deepEqual(await store.get(details.record.taskId), details.record);
		assert.deepEqual(await store.load(details.record.taskId), details);
	});

	for (const [what, text] of Object.entries(STRANGE_TEXTS))
		check(`${what} comes back wherever it can stand`, async ({ store }) => {
			const value: JsonObject = { [text]: text };
			const details = newDetails(
				{
					...{
						principal: text,
						idempotencyKey: text,
						tool: text,
						statusMessage: text,
						argumentsDigest: text,
					},
					lease: { owner: text, token: text, expiresAtMs: T0 },
					openInputs: {
						[text]: { request: { method: 'roots/list', params: value }, askedAtMs: 1, deadlineAtMs: 2 },
					},
					...{
						inputResponses: { [text]: value },
						result: value,
						error: { code: 1, message: text, data: value },
					},
				},
				{ arguments: value, prepared: [text], steps: [{ name: text, value }] },
			);
			const { taskId } = details.record;
			await create(store, details);
			assert.deepEqual(await store.load(taskId), details);
			assert.equal(
				(await create(store, newDetails({ principal: text, idempotencyKey: text }))).kind,
				'exists',
			);
			assert.equal(await store.saveStep(taskId, text, { name: text, value: 'another' }), true);
			assert.deepEqual((await store.load(taskId))?.steps, details.steps);
			assert.equal((await store.list({ ...ALL, principal: text })).records.length, 1);
			assert.equal((await store.list({ ...ALL, principal: `${text}x` })).records.length, 0);
		});

	check('keys that mean something to JavaScript are only keys', async ({ store }) => {
		const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', ''];
		const value = JSON.parse(
			`{${names.map((name) => `${JSON.stringify(name)}:{"polluted":1}`).join()}}`,
		) as JsonObject;
		const details = newDetails(
			{ result: value, inputResponses: value as TaskRecord['inputResponses'] },
			{ arguments: value, prepared: value, steps: names.map((name) => ({ name, value })) },
		);
		await create(store, details);
		const loaded = await store.load(details.record.taskId);
		assert.equal(JSON.stringify(loaded?.record.result), JSON.stringify(value));
		assert.equal(JSON.stringify(loaded?.record.inputResponses), JSON.stringify(value));
		assert.equal(JSON.stringify(loaded?.arguments), JSON.stringify(value));
		assert.equal(JSON.stringify(loaded?.steps), JSON.stringify(details.steps));
		for (const name of names) assert.equal(await store.get(name), undefined);
		assert.equal(Reflect.get({}, 'polluted'), undefined);
	});

	check('values of a megabyte come back', async ({ store }) => {
		const large = { text: 'ä😀'.repeat(200_000) };
		const details = newDetails(
			{ result: large, inputResponses: { answer: large } },
			{ arguments: large, prepared: large, steps: [{ name: 'large', value: large }] },
		);
		await create(store, details);
		assert.deepEqual(await store.load(details.record.taskId), details);
	});

	check('what was written does not change with the object that was given', async ({ store }) => {
		const result = { list: [1] };
		const record = newRecord();
		await create(store, newDetails(record));
		await store.replace(revised(record, { status: 'completed', result }), 'full');
		result.list.push(2);
		assert.deepEqual((await store.get(record.taskId))?.result, { list: [1] });
	});
}

const STRANGE_TEXTS: Readonly<Record<string, string>> = {
	'unicode text': 'Zoë 雪 😀 e\u0301 \u202e',
	'a NUL': 'a\0b',
	'a lone surrogate': 'a\ud800b',
	'JSON text': '"a"',
	'quoted text': `'; DROP TABLE tasks; -- \\ % _ $1 \n`,
};
