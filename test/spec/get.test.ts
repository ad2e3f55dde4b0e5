/** tasks/get: what it says in each status, and that it only reads. */
import { afterEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { DAY_MS, MINUTE_MS, question, SECOND_MS, SLOW_BEAT } from '../support/engine-rig.ts';
import { type Fixture, type FixtureOptions, ROUTES } from '../support/fixture-server.ts';
import {
	begin,
	call,
	foreignTask,
	getTask,
	inStatus,
	paramsFor,
	TASK_METHODS,
	withoutMeta,
} from '../support/steps.ts';
import { eventually, type Wire } from '../support/wire.ts';
import { newBackend } from '../support/backends.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

const PARTS = ['result', 'error', 'inputRequests'] as const;

function partsOf(task: object): string[] {
	return PARTS.filter((part) => Object.hasOwn(task, part));
}

/** One task in each status, by status. */
async function oneOfEach(wire: Wire): Promise<[string, string][]> {
	const started: [string, string][] = [
		['working', await begin(wire, 'slow', { gate: 'each' })],
		['input_required', await begin(wire, 'asking', { keys: ['a', 'b'] })],
		['completed', await begin(wire, 'structured')],
		['failed', await begin(wire, 'failing')],
		['cancelled', await begin(wire, 'polite', { gate: 'never' })],
	];
	await wire.request('tasks/cancel', { taskId: started[4]?.[1] ?? '' });
	for (const [status, taskId] of started) await inStatus(wire, taskId, status);
	return started;
}

/** A clock that a test moves, under the store and the engine. */
function standing(): { readonly clock: FakeClock; readonly options: FixtureOptions } {
	const clock = new FakeClock();
	const backend = newBackend(clock);
	return { clock, options: { backend, server: { clock, timing: SLOW_BEAT } } };
}

describe.each(ROUTES)('tasks/get through %s', (_name, open) => {
	test('T20: reads, in every status, and leaves the stored task as it was', async () => {
		fixture = await open();
		const { wire, backend } = fixture;
		for (const [status, taskId] of await oneOfEach(wire)) {
			const before = await backend.store.load(taskId);
			const first = await getTask(wire, taskId);
			expect(first).toMatchObject({ resultType: 'complete', status });
			for (let poll = 0; poll < 3; poll++) expect(await getTask(wire, taskId)).toEqual(first);
			expect(await backend.store.load(taskId), status).toEqual(before);
		}
	});

	test('T20: answers while the work goes on, to many at once', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		const polls = await Promise.all(Array.from({ length: 50 }, () => getTask(wire, taskId)));
		expect(new Set(polls.map(({ status }) => status))).toEqual(new Set(['working']));
		control.open('a');
		await inStatus(wire, taskId, 'completed');
	});

	test('T21: has exactly what belongs to the status', async () => {
		fixture = await open();
		const { wire } = fixture;
		const expected: Record<string, string[]> = {
			working: [],
			input_required: ['inputRequests'],
			completed: ['result'],
			failed: ['error'],
			cancelled: [],
		};
		const task = ['createdAt', 'lastUpdatedAt', 'pollIntervalMs', 'resultType', 'status', 'taskId', 'ttlMs'];
		for (const [status, taskId] of await oneOfEach(wire)) {
			const seen = withoutMeta(await getTask(wire, taskId));
			expect(partsOf(seen), status).toEqual(expected[status]);
			const others = Object.keys(seen).filter(
				(key) => key !== 'statusMessage' && !partsOf(seen).includes(key),
			);
			expect(others.toSorted(), status).toEqual(task);
		}
	});

	test('T21: gives all questions that are open', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await begin(wire, 'asking', { keys: ['a', 'b'] });
		const { inputRequests } = await eventually(async () => {
			const task = await inStatus(wire, taskId, 'input_required');
			expect(Object.keys(task['inputRequests'] ?? {})).toHaveLength(2);
			return task;
		});
		expect(inputRequests).toEqual({
			a: { method: 'elicitation/create', params: question('a?') },
			b: { method: 'elicitation/create', params: question('b?') },
		});
	});

	test('T21: gives the result of a completed task exactly as the call would have returned it', async () => {
		fixture = await open();
		const { wire } = fixture;
		const task = await inStatus(wire, await begin(wire, 'structured'), 'completed');
		const direct = await call(wire, 'structured', {}, { declare: false });
		expect(withoutMeta(task['result'] as typeof task)).toEqual(withoutMeta(direct.result ?? {}));
		expect(task['result']).toEqual({
			resultType: 'complete',
			content: [{ type: 'text', text: '42' }],
			structuredContent: { answer: 42 },
			_meta: { 'example.com/own': true },
		});
		expect(direct.result?.['_meta']).toMatchObject({ 'example.com/own': true });
	});

	test('T21: a result that came from a thrown error is whole', async () => {
		fixture = await open();
		const task = await inStatus(fixture.wire, await begin(fixture.wire, 'throwing'), 'completed');
		expect(task['result']).toEqual({
			resultType: 'complete',
			content: [{ type: 'text', text: 'no such branch' }],
			isError: true,
		});
	});

	test('T21: gives the JSON-RPC error of a failed task, and words for a person', async () => {
		fixture = await open();
		const { wire } = fixture;
		const task = await inStatus(wire, await begin(wire, 'failing'), 'failed');
		expect(task['error']).toEqual({ code: -32099, message: 'quota used up', data: { left: 0 } });
		expect(task['statusMessage']).toEqual(expect.stringMatching(/\w/));
		const direct = await call(wire, 'failing', {}, { declare: false });
		expect(direct.error).toEqual(task['error']);
	});

	test('T22: an error that the tool reports is a result, as it is without tasks', async () => {
		fixture = await open();
		const { wire } = fixture;
		const task = await inStatus(wire, await begin(wire, 'throwing'), 'completed');
		expect(task).toMatchObject({ result: { isError: true } });
		const direct = await call(wire, 'throwing', {}, { declare: false });
		expect(withoutMeta(direct.result ?? {})).toEqual(task['result']);
	});

	test('T23: unknown, foreign and expired tasks cannot be told apart', async () => {
		const { clock, options } = standing();
		fixture = await open(options);
		const { wire, server } = fixture;
		const expired = await begin(wire, 'structured');
		await inStatus(wire, expired, 'completed');
		clock.jump(2 * DAY_MS);
		const foreign = await foreignTask(server);
		for (const method of TASK_METHODS) {
			const seen = await Promise.all(
				['0'.repeat(40), foreign, expired].map(async (taskId) => {
					const { status, error, result } = await wire.request(method, paramsFor(method, taskId));
					expect(error?.code, method).toBe(-32602);
					return { status, error, result };
				}),
			);
			expect(seen[1], method).toEqual(seen[0]);
			expect(seen[2], method).toEqual(seen[0]);
		}
		fixture.control.open('foreign');
	});

	test('T24: nothing moves a task that has ended', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		for (const [status, taskId] of await oneOfEach(wire)) {
			if (status === 'working' || status === 'input_required') continue;
			const ended = await getTask(wire, taskId);
			await wire.request('tasks/cancel', { taskId });
			await wire.request('tasks/update', { taskId, inputResponses: { a: { action: 'accept' } } });
			control.open('never');
			expect(await getTask(wire, taskId), status).toEqual(ended);
		}
	});

	test('T24: a task goes from working to its questions and back before it ends', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await begin(wire, 'asking', { keys: ['a'] });
		const stream = await wire.listen([taskId]);
		await stream.task(taskId, 'input_required');
		await wire.request('tasks/update', { taskId, inputResponses: { a: { action: 'accept' } } });
		await stream.task(taskId, 'completed');
		const statuses = stream.messages.slice(1).map(({ params }) => (params as { status?: unknown }).status);
		const path = statuses.filter((status, index) => status !== statuses[index - 1]).join(' ');
		// A subscription may pass over what did not last.
		expect(path).toMatch(/^(?:working )?input_required (?:working )?completed$/);
		await stream.close();
	});

	test('T25: a task that runs outlives what was promised at first, and is polled less often', async () => {
		const { clock, options } = standing();
		fixture = await open(options);
		const { wire, control } = fixture;
		const made = (await call(wire, 'slow', { gate: 'a' })).result ?? {};
		const taskId = made['taskId'] as string;
		await eventually(() => expect(control.log).toContain('slow a'));
		const bornAtMs = Date.parse(made['createdAt'] as string);
		await clock.advance(MINUTE_MS);
		const young = await getTask(wire, taskId);
		expect(young['pollIntervalMs']).toBeGreaterThan(made['pollIntervalMs'] as number);
		while (clock.nowMs() < bornAtMs + (made['ttlMs'] as number) + DAY_MS) await clock.advance(DAY_MS / 8);
		const old = await getTask(wire, taskId);
		expect(old['status']).toBe('working');
		expect(old['ttlMs']).toBeGreaterThan(clock.nowMs() - bornAtMs);
		control.open('a');
		await clock.advance(SECOND_MS);
		const ended = await inStatus(wire, taskId, 'completed');
		expect(ended['createdAt']).toBe(made['createdAt']);
		expect(bornAtMs + (ended['ttlMs'] as number)).toBeGreaterThanOrEqual(clock.nowMs() + DAY_MS - MINUTE_MS);
	});
});
