/** The result that says that a call became a task. */
import { afterEach, describe, expect, test } from 'vitest';
import { type Fixture, ROUTES } from '../support/fixture-server.ts';
import { gate, question, withStore } from '../support/engine-rig.ts';
import { begin, call, getTask, inStatus, TASK_METHODS, withoutMeta } from '../support/steps.ts';
import { newBackend } from '../support/backends.ts';

let fixtures: Fixture[] = [];

afterEach(async () => {
	for (const fixture of fixtures) await fixture.close();
	fixtures = [];
});

const track = (fixture: Fixture): Fixture => {
	fixtures.push(fixture);
	return fixture;
};

const FLAT = ['createdAt', 'lastUpdatedAt', 'pollIntervalMs', 'resultType', 'status', 'taskId', 'ttlMs'];
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

describe.each(ROUTES)('creation through %s', (_name, open) => {
	test('T10: the result is flat, with the fields of a task and no other', async () => {
		const { wire } = track(await open());
		const result = withoutMeta((await call(wire, 'slow', { gate: 'a' })).result ?? {});
		expect(
			Object.keys(result)
				.filter((key) => key !== 'statusMessage')
				.toSorted(),
		).toEqual(FLAT);
		expect(result).toMatchObject({
			resultType: 'task',
			status: 'working',
			taskId: expect.any(String),
			createdAt: expect.stringMatching(ISO),
			lastUpdatedAt: expect.stringMatching(ISO),
		});
		expect(Number.isInteger(result['ttlMs'])).toBe(true);
		expect(Number.isInteger(result['pollIntervalMs'])).toBe(true);
		expect(result['ttlMs']).toBeGreaterThan(0);
		expect(result['pollIntervalMs']).toBeGreaterThan(0);
	});

	test('T10: a task that already asks is given at once, without its questions', async () => {
		const { wire } = track(await open());
		const result = withoutMeta((await call(wire, 'asking_soon')).result ?? {});
		expect(
			Object.keys(result)
				.filter((key) => key !== 'statusMessage')
				.toSorted(),
		).toEqual(FLAT);
		expect(result['status']).toBe('input_required');
		const task = await getTask(wire, result['taskId'] as string);
		expect(Object.keys(task['inputRequests'] ?? {})).toEqual(['soon']);
	});

	test('T11: a call that ended in time, one that asks first and one that fails are no tasks', async () => {
		const { wire } = track(await open());
		expect((await call(wire, 'quick')).result?.['resultType']).toBe('complete');
		expect((await call(wire, 'plain')).result?.['resultType']).toBe('complete');
		expect((await call(wire, 'prepared')).result?.['resultType']).toBe('input_required');
		expect((await call(wire, 'nothing_of_the_kind')).result?.['resultType']).not.toBe('task');
		expect((await wire.request('server/discover')).result?.['resultType']).toBe('complete');
	});

	test('T11: neither does a task of any status say so once it was given', async () => {
		const { wire, control } = track(await open());
		const taskIds = [
			await begin(wire, 'slow', { gate: 'a' }),
			await begin(wire, 'asking', { keys: ['a'] }),
			await begin(wire, 'failing'),
			await begin(wire, 'throwing'),
		];
		control.open('a');
		for (const taskId of taskIds) expect((await getTask(wire, taskId))['resultType']).toBe('complete');
	});

	test('T12: the handle is known to another replica as soon as it is given', async () => {
		const backend = newBackend();
		const first = track(await open({ backend }));
		const second = track(await open({ backend }));
		const made = (await call(first.wire, 'slow', { gate: 'a' })).result ?? {};
		const { result } = await second.wire.request('tasks/get', { taskId: made['taskId'] ?? '' });
		expect(result).toMatchObject({ status: 'working', createdAt: made['createdAt'] });
		first.control.open('a');
		second.control.open('a');
	});

	test('T12: the handle is not given before the store has the task', async () => {
		const written = gate();
		const reached = gate();
		const backend = withStore(newBackend(), (store) => ({
			create: async (details, limits) => {
				reached.open();
				await written.opened;
				return store.create(details, limits);
			},
		}));
		const { wire } = track(await open({ backend }));
		let answered = false;
		const answer = call(wire, 'slow', { gate: 'a' }).finally(() => {
			answered = true;
		});
		await reached.opened;
		await wire.request('server/discover');
		expect(answered).toBe(false);
		written.open();
		await getTask(wire, (await answer).result?.['taskId'] as string);
	});

	test('T12: where the store refuses the task there is no handle, and no work', async () => {
		const backend = withStore(newBackend(), () => ({
			create: () => Promise.reject(new Error('disk full at /var/lib/tasks.db')),
		}));
		const { wire, control } = track(await open({ backend }));
		const answer = await call(wire, 'slow', { gate: 'a' });
		expect(answer.result?.['resultType']).not.toBe('task');
		expect(JSON.stringify(answer)).not.toContain('taskId');
		expect(control.log).toEqual([]);
	});

	test('T13: what decides about the start is asked before the task, and its keys are no keys of the task', async () => {
		const { wire, backend } = track(await open());
		const asked = (await call(wire, 'prepared')).result ?? {};
		expect(asked).toMatchObject({
			resultType: 'input_required',
			inputRequests: { who: { method: 'elicitation/create', params: { message: 'Who?' } } },
		});
		const all = { principal: null, statuses: null, limit: 10, cursor: null } as const;
		expect((await backend.store.list(all)).records).toEqual([]);
		const ada = { action: 'accept', content: { name: 'Ada' } };
		const made = await wire.request('tools/call', {
			name: 'prepared',
			arguments: {},
			inputResponses: { who: ada },
			...(typeof asked['requestState'] === 'string' && { requestState: asked['requestState'] }),
		});
		expect(made.result).toMatchObject({ resultType: 'task' });
		expect(made.result).not.toHaveProperty('requestState');
		expect(made.result).not.toHaveProperty('inputRequests');
		const taskId = made.result?.['taskId'] as string;
		const asking = await inStatus(wire, taskId, 'input_required');
		expect(asking['inputRequests']).toEqual({
			who: { method: 'elicitation/create', params: question('Who again?') },
		});
		expect(asking).not.toHaveProperty('requestState');
		const grace = { action: 'accept', content: { name: 'Grace' } };
		await wire.request('tasks/update', { taskId, inputResponses: { who: grace } });
		const { result } = await inStatus(wire, taskId, 'completed');
		expect(result).toMatchObject({ content: [{ type: 'text', text: JSON.stringify([ada, grace]) }] });
	});

	test('T14: ids are long, stand in a header as they are, and come one after another without order', async () => {
		const { wire } = track(await open());
		const ids: string[] = [];
		while (ids.length < 100) ids.push(await begin(wire, 'structured'));
		expect(new Set(ids).size).toBe(100);
		for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32,128}$/);
		const rising = ids.filter((id, index) => index > 0 && id > (ids[index - 1] ?? '')).length;
		// 99 tosses of a coin, 8 standard deviations wide.
		expect(Math.abs(rising - 49.5)).toBeLessThan(40);
	});

	test('T14: a part of an id, or more than it, is not it', async () => {
		const { wire } = track(await open());
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		for (const near of [taskId.slice(0, -1), taskId.slice(1), `${taskId}0`, taskId.toUpperCase(), '', '%'])
			for (const method of TASK_METHODS) {
				if (near === taskId) continue;
				const params = { taskId: near, inputResponses: {} };
				expect((await wire.request(method, params)).error, `${method} ${near}`).toMatchObject({
					code: -32602,
				});
			}
		expect((await getTask(wire, taskId))['status']).toBe('working');
	});
});
