/** subscriptions/listen with task ids. */
import { afterEach, describe, expect, test } from 'vitest';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import { type Fixture, overHttp, overStdio, ROUTES, throughSdk } from '../support/fixture-server.ts';
import { begin, foreignTask, getTask, inStatus, withoutMeta } from '../support/steps.ts';
import { eventually, META, TASKS, WireRefusal, type WireStream } from '../support/wire.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const paramsOf = ({ params }: JsonObject): JsonObject => (isJsonObject(params) ? params : {});
const subscriptionOf = (message: JsonObject): unknown =>
	(paramsOf(message)['_meta'] as JsonObject)?.[META.subscription];

/** Everything that a stream carried about one task. */
function about(stream: WireStream, taskId: string): JsonObject[] {
	return stream.messages.map(paramsOf).filter((params) => params['taskId'] === taskId);
}

describe.each(ROUTES)('subscriptions through %s', (_name, open) => {
	test('T50: begin with the acknowledgement, and everything carries the id of the subscription', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const one = await begin(wire, 'slow', { gate: 'one' });
		const two = await begin(wire, 'slow', { gate: 'two' });
		const stream = await wire.listen([one, two], { id: 'my-listen' });
		expect(await stream.honoured()).toEqual([one, two]);
		control.open('one');
		await eventually(() => expect(about(stream, one).at(-1)).toMatchObject({ status: 'completed' }));
		control.open('two');
		await eventually(() => expect(about(stream, two).at(-1)).toMatchObject({ status: 'completed' }));
		expect(stream.messages[0]?.['method']).toBe(ACKNOWLEDGED);
		for (const message of stream.messages) expect(subscriptionOf(message)).toBe('my-listen');
		expect(stream.messages.filter(({ method }) => method === ACKNOWLEDGED)).toHaveLength(1);
		await stream.close();
	});

	test('T50: the acknowledgement comes first also for tasks that change all the time', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskIds: string[] = [];
		for (let index = 0; index < 10; index++) taskIds.push(await begin(wire, 'slow', { gate: `g${index}` }));
		const opening = wire.listen(taskIds);
		for (let index = 0; index < 10; index++) control.open(`g${index}`);
		const stream = await opening;
		for (const taskId of taskIds)
			await eventually(() => expect(about(stream, taskId).at(-1)).toMatchObject({ status: 'completed' }));
		expect(stream.messages[0]?.['method']).toBe(ACKNOWLEDGED);
		await stream.close();
	});

	test('T50: two subscriptions of one client are told apart', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const one = await begin(wire, 'slow', { gate: 'one' });
		const two = await begin(wire, 'slow', { gate: 'two' });
		const first = await wire.listen([one], { id: 'first' });
		const second = await wire.listen([two], { id: 2 });
		control.open('one');
		control.open('two');
		await first.task(one, 'completed');
		await second.task(two, 'completed');
		expect(new Set(first.messages.map(subscriptionOf))).toEqual(new Set(['first']));
		expect(new Set(second.messages.map(subscriptionOf))).toEqual(new Set([2]));
		expect(about(first, two)).toEqual([]);
		expect(about(second, one)).toEqual([]);
		await first.close();
		await second.close();
	});

	// where nothing but the signal says so.
	const onSignal = open === throughSdk ? test : test;

	onSignal('T50: a client that has left a subscription is told nothing more on it', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		const left = await wire.listen([taskId]);
		await left.task(taskId, 'working');
		await left.close();
		const kept = await wire.listen([taskId]);
		control.open('a');
		await kept.task(taskId, 'completed');
		expect(about(left, taskId).map(({ status }) => status)).toEqual(['working']);
		await kept.close();
	});

	test.each([
		['tasks of its own', (taskId: string) => [taskId]],
		['unknown tasks', () => ['nothing-of-the-kind']],
		['no tasks', () => []],
	])('T51: a client that does not declare the extension and names %s is refused', async (_case, name) => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		const refused = await wire.listen(name(taskId), { declare: false }).catch((error: unknown) => error);
		expect(refused).toBeInstanceOf(WireRefusal);
		expect((refused as WireRefusal).answer.error).toMatchObject({
			code: -32021,
			data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
		});
		control.open('a');
		await inStatus(wire, taskId, 'completed');
	});

	test('T52: each notification is the whole task, as tasks/get gives it then', async () => {
		fixture = await open();
		const { wire } = fixture;
		const asking = await begin(wire, 'asking', { keys: ['a'] });
		const ended = await Promise.all(['structured', 'failing', 'throwing'].map((tool) => begin(wire, tool)));
		await inStatus(wire, asking, 'input_required');
		const cancelled = await begin(wire, 'polite', { gate: 'never' });
		await wire.request('tasks/cancel', { taskId: cancelled });
		await inStatus(wire, cancelled, 'cancelled');
		for (const taskId of ended)
			await eventually(async () => {
				expect((await getTask(wire, taskId))['status']).toMatch(/completed|failed/);
			});
		const stream = await wire.listen([asking, cancelled, ...ended]);
		for (const taskId of [asking, cancelled, ...ended]) {
			await eventually(() => expect(about(stream, taskId)).not.toEqual([]));
			const { resultType, ...task } = withoutMeta(await getTask(wire, taskId));
			expect(resultType).toBe('complete');
			expect(withoutMeta(about(stream, taskId).at(-1) ?? {})).toEqual(task);
		}
		await wire.request('tasks/update', { taskId: asking, inputResponses: { a: { action: 'decline' } } });
		await eventually(() => expect(about(stream, asking).at(-1)).toMatchObject({ status: 'completed' }));
		const { resultType, ...task } = withoutMeta(await getTask(wire, asking));
		expect(resultType).toBe('complete');
		expect(withoutMeta(about(stream, asking).at(-1) ?? {})).toEqual(task);
		await stream.close();
	});

	test('T53: a handler that reports progress is told of in the task, and by nothing else', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const made = await wire.request(
			'tools/call',
			{ name: 'noisy', arguments: { gate: 'a' } },
			{ meta: { progressToken: 'p1', 'io.modelcontextprotocol/logLevel': 'debug' } },
		);
		const taskId = made.result?.['taskId'] as string;
		const stream = await wire.listen([taskId], {
			meta: { progressToken: 'p2', 'io.modelcontextprotocol/logLevel': 'debug' },
		});
		await eventually(async () =>
			expect((await getTask(wire, taskId))['statusMessage']).toEqual(expect.stringContaining('one of four')),
		);
		control.open('a');
		await stream.task(taskId, 'completed');
		expect(new Set(stream.messages.map(({ method }) => method))).toEqual(
			new Set([ACKNOWLEDGED, 'notifications/tasks']),
		);
		await stream.close();
	});

	test('T54: unknown and foreign ids are left out, and named twice is named once', async () => {
		fixture = await open();
		const { wire, server, control } = fixture;
		const own = await begin(wire, 'slow', { gate: 'own' });
		const foreign = await foreignTask(server);
		const strange = ['nothing-of-the-kind', '', '__proto__', 'x'.repeat(10_000)];
		const stream = await wire.listen([...strange, foreign, own, own]);
		expect(await stream.honoured()).toEqual([own]);
		control.open('foreign');
		await eventually(async () =>
			expect((await fixture?.backend.store.get(foreign))?.status).toBe('completed'),
		);
		control.open('own');
		await stream.task(own, 'completed');
		expect(about(stream, foreign)).toEqual([]);
		expect(JSON.stringify(stream.messages)).not.toContain(foreign);
		await stream.close();
	});

	test('T54: where none is left the acknowledgement says so', async () => {
		fixture = await open();
		const foreign = await foreignTask(fixture.server);
		const stream = await fixture.wire.listen([foreign, 'nothing-of-the-kind']);
		expect(await stream.honoured()).toEqual([]);
		fixture.control.open('foreign');
		await stream.close();
	});

	const endsOnce = open === overStdio ? test : test;

	endsOnce('T55: a server that shuts down ends the subscription once', async () => {
		fixture = await open();
		const taskId = await begin(fixture.wire, 'polite', { gate: 'a' });
		const stream = await fixture.wire.listen([taskId], { id: 'my-listen' });
		await stream.task(taskId, 'working');
		await fixture.closeServer();
		await stream.ended;
		expect(stream.messages.filter(({ id }) => id === 'my-listen')).toHaveLength(1);
	});

	test('T55: a server that shuts down ends the subscription with a result', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await begin(wire, 'polite', { gate: 'a' });
		const stream = await wire.listen([taskId], { id: 'my-listen' });
		await stream.task(taskId, 'working');
		await fixture.closeServer();
		await stream.ended;
		expect(stream.messages.at(-1)).toEqual({
			jsonrpc: '2.0',
			id: 'my-listen',
			result: expect.objectContaining({ resultType: 'complete' }),
		});
		const result = stream.messages.at(-1)?.['result'] as JsonObject;
		expect(result['_meta']).toMatchObject({ [META.subscription]: 'my-listen' });
	});

	test('T55: a client that listens anew is told what it missed', async () => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		const first = await wire.listen([taskId]);
		await first.task(taskId, 'working');
		await first.close();
		control.open('a', 'while nobody listened');
		await inStatus(wire, taskId, 'completed');
		const second = await wire.listen([taskId]);
		expect(paramsOf(await second.task(taskId, 'completed'))).toMatchObject({
			result: { content: [{ type: 'text', text: 'while nobody listened' }] },
		});
		await second.close();
	});
});

describe('a connection that breaks', () => {
	test('T55: takes one subscription with it and no other', async () => {
		fixture = await overHttp();
		const { control } = fixture;
		const taskId = await begin(fixture.wire, 'slow', { gate: 'a' });
		const kept = await fixture.another().listen([taskId]);
		const broken = await fixture.wire.listen([taskId]);
		await broken.task(taskId, 'working');
		await fixture.wire.close();
		await broken.ended;
		control.open('a');
		await kept.task(taskId, 'completed');
		expect(about(broken, taskId).map(({ status }) => status)).toEqual(['working']);
		await kept.close();
	});
});
