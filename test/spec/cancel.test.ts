/** tasks/cancel, and what is none. */
import { afterEach, describe, expect, test } from 'vitest';
import { type Fixture, overHttp, overStdio, ROUTES, throughSdk } from '../support/fixture-server.ts';
import { begin, call, foreignTask, getTask, inStatus, withoutMeta } from '../support/steps.ts';
import { eventually } from '../support/wire.ts';
import { newBackend } from '../support/backends.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

const ACK = { resultType: 'complete' };

describe.each(ROUTES)('tasks/cancel through %s', (_name, open) => {
	test('T40: is acknowledged with an empty complete result, and work that stops is cancelled', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await begin(wire, 'polite', { gate: 'a' });
		const { result } = await wire.request('tasks/cancel', { taskId });
		expect(withoutMeta(result ?? {})).toEqual(ACK);
		const task = await inStatus(wire, taskId, 'cancelled');
		for (const key of ['result', 'error', 'inputRequests']) expect(task).not.toHaveProperty(key);
	});

	test('T40: may be outrun by the work', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		await eventually(() => expect(control.log).toContain('slow a'));
		await wire.request('tasks/cancel', { taskId });
		await eventually(() => expect(control.log).toContain('abort a'));
		expect((await getTask(wire, taskId))['status']).toBe('working');
		control.open('a', 'finished anyway');
		expect(await inStatus(wire, taskId, 'completed')).toMatchObject({
			result: { content: [{ type: 'text', text: 'finished anyway' }] },
		});
	});

	test('T40: twice is as good as once', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		await eventually(() => expect(control.log).toContain('slow a'));
		for (let time = 0; time < 3; time++) {
			const { result } = await wire.request('tasks/cancel', { taskId });
			expect(withoutMeta(result ?? {})).toEqual(ACK);
		}
		await eventually(() => expect(control.log).toContain('abort a'));
		control.open('a');
		await inStatus(wire, taskId, 'completed');
		expect(control.log.filter((line) => line === 'abort a')).toHaveLength(1);
	});

	test.each([
		['structured', 'completed'],
		['throwing', 'completed'],
		['failing', 'failed'],
	])('T40: changes nothing about a task that has ended: %s', async (tool, status) => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await begin(wire, tool);
		const ended = await inStatus(wire, taskId, status);
		const { result } = await wire.request('tasks/cancel', { taskId });
		expect(withoutMeta(result ?? {})).toEqual(ACK);
		expect(await getTask(wire, taskId)).toEqual(ended);
	});

	test('T40: ends a task that asks, and takes its questions away', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await begin(wire, 'asking', { keys: ['a', 'b'] });
		await inStatus(wire, taskId, 'input_required');
		await wire.request('tasks/cancel', { taskId });
		expect(await inStatus(wire, taskId, 'cancelled')).not.toHaveProperty('inputRequests');
	});

	test('T41: notifications/cancelled for a request that has to do with a task leaves the task alone', async () => {
		fixture = await open();
		const { wire, backend, control } = fixture;
		const made = await call(wire, 'slow', { gate: 'a' }, { id: 'the-call' });
		const taskId = made.result?.['taskId'] as string;
		await wire.request('tasks/get', { taskId }, { id: 'the-poll' });
		for (const requestId of ['the-call', 'the-poll', taskId])
			await wire.notify('notifications/cancelled', { requestId, reason: 'not wanted any more', taskId });
		expect((await getTask(wire, taskId))['status']).toBe('working');
		expect((await backend.store.get(taskId))?.cancelRequestedAtMs).toBeNull();
		control.open('a');
		await inStatus(wire, taskId, 'completed');
		expect(control.log).not.toContain('abort a');
	});

	test('T41: the end of a listen stream leaves its tasks alone', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		const stream = await wire.listen([taskId]);
		await stream.task(taskId, 'working');
		await stream.close();
		expect((await getTask(wire, taskId))['status']).toBe('working');
		control.open('a');
		await inStatus(wire, taskId, 'completed');
		expect(control.log).not.toContain('abort a');
	});

	test('T42: of an unknown or foreign task is refused, and the foreign task goes on', async () => {
		fixture = await open();
		const { wire, server, backend } = fixture;
		const taskId = await foreignTask(server);
		const unknown = await wire.request('tasks/cancel', { taskId: '0'.repeat(40) });
		const foreign = await wire.request('tasks/cancel', { taskId });
		expect(unknown.error).toMatchObject({ code: -32602 });
		expect([foreign.error, foreign.status]).toEqual([unknown.error, unknown.status]);
		expect(await backend.store.get(taskId)).toMatchObject({ status: 'working', cancelRequestedAtMs: null });
		fixture.control.open('foreign');
	});
});

describe('the client goes away', () => {
	test.each([
		['HTTP', overHttp],
		['the SDK alone', throughSdk],
	])('T41: through %s, and finds its task as it was', async (_name, open) => {
		fixture = await open();
		const { control } = fixture;
		const taskId = await begin(fixture.wire, 'slow', { gate: 'a' });
		await eventually(() => expect(control.log).toContain('slow a'));
		await fixture.wire.close();
		const other = fixture.another();
		expect((await getTask(other, taskId))['status']).toBe('working');
		control.open('a');
		await inStatus(other, taskId, 'completed');
		expect(control.log).not.toContain('abort a');
	});

	test('T41: over stdio, and the next process goes on with its task', async () => {
		const backend = newBackend();
		fixture = await overStdio({ backend });
		const taskId = await begin(fixture.wire, 'polite', { gate: 'a' });
		await fixture.wire.close();
		await fixture.close();
		expect(await backend.store.get(taskId)).toMatchObject({ status: 'working', cancelRequestedAtMs: null });
		fixture = await overStdio({ backend });
		expect((await getTask(fixture.wire, taskId))['status']).toBe('working');
		fixture.control.open('a');
		await inStatus(fixture.wire, taskId, 'completed');
	});
});
