import { afterEach, describe, expect, test } from 'vitest';
import { type Fixture, ROUTES, overHttp } from '../support/fixture-server.ts';
import { TASKS, type Wire, WireRefusal } from '../support/wire.ts';
import { newBackend } from '../support/backends.ts';

const METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const;
const MISSING = {
	code: -32021,
	data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
};

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

async function begin(wire: Wire, gate = 'a'): Promise<string> {
	const made = await wire.request('tools/call', { name: 'slow', arguments: { gate } });
	return made.result?.['taskId'] as string;
}

function paramsOf(method: (typeof METHODS)[number], taskId: string) {
	return method === 'tasks/update' ? { taskId, inputResponses: {} } : { taskId };
}

describe.each(ROUTES)('on the wire through %s', (_name, open) => {
	test('T04: a tool that needs tasks refuses a client that declares none, and says what is missing', async () => {
		fixture = await open();
		const answer = await fixture.wire.request(
			'tools/call',
			{ name: 'required', arguments: {} },
			{ declare: false },
		);
		expect(answer.error).toMatchObject(MISSING);
	});

	test('T05: a task parameter decides nothing', async () => {
		fixture = await open();
		const hinted = { name: 'quick', arguments: {}, task: { ttl: 1_000 } };
		expect((await fixture.wire.request('tools/call', hinted)).result).toMatchObject({
			resultType: 'complete',
		});
		const undeclared = await fixture.wire.request('tools/call', hinted, { declare: false });
		expect(undeclared.result).toMatchObject({ resultType: 'complete' });
	});

	test('T11, T20: no answer but that to a call says that it is a task; get, update and cancel are complete', async () => {
		fixture = await open();
		const taskId = await begin(fixture.wire);
		for (const method of METHODS) {
			const { result } = await fixture.wire.request(method, paramsOf(method, taskId));
			expect(result?.['resultType'], method).toBe('complete');
		}
		expect((await fixture.wire.request('tools/list')).result?.['resultType']).toBe('complete');
	});

	test('T20: a get changes nothing', async () => {
		fixture = await open();
		const taskId = await begin(fixture.wire);
		const before = await fixture.backend.store.get(taskId);
		for (let poll = 0; poll < 5; poll++) await fixture.wire.request('tasks/get', { taskId });
		expect(await fixture.backend.store.get(taskId)).toEqual(before);
	});

	test('T14, T42: an id of any length or look that is none of ours is unknown to every method', async () => {
		fixture = await open();
		for (const taskId of ['x', '0'.repeat(40), 'y'.repeat(10_000)])
			for (const method of METHODS) {
				const { error } = await fixture.wire.request(method, paramsOf(method, taskId));
				expect(error, `${method} ${taskId.length}`).toMatchObject({
					code: -32602,
					message: 'Task not found',
				});
			}
	});

	test('T51: a listen request that names tasks needs the extension', async () => {
		fixture = await open();
		const taskId = await begin(fixture.wire);
		const refused = await fixture.wire.listen([taskId], { declare: false }).catch((error: unknown) => error);
		expect(refused).toBeInstanceOf(WireRefusal);
		expect((refused as WireRefusal).answer.error).toMatchObject(MISSING);
	});

	test('T53: the stream of a subscription carries tasks, and neither progress nor log messages', async () => {
		fixture = await open();
		const taskId = await begin(fixture.wire);
		const stream = await fixture.wire.listen([taskId], { meta: { progressToken: 1 } });
		await stream.task(taskId, 'working');
		fixture.control.open('a');
		await stream.task(taskId, 'completed');
		const methods = new Set(stream.messages.map((message) => message['method']));
		expect([...methods]).toEqual(['notifications/subscriptions/acknowledged', 'notifications/tasks']);
		await stream.close();
	});

	test('T61: every method refuses a request that does not declare the extension, whatever the id', async () => {
		fixture = await open();
		const taskId = await begin(fixture.wire);
		for (const method of METHODS)
			for (const id of [taskId, 'unknown']) {
				const { error } = await fixture.wire.request(method, paramsOf(method, id), { declare: false });
				expect(error, method).toMatchObject(MISSING);
			}
	});

	test('T62: the methods of the earlier protocol version do not exist', async () => {
		fixture = await open();
		for (const method of ['tasks/result', 'tasks/list'])
			expect((await fixture.wire.request(method, { taskId: 'x' })).error?.code, method).toBe(-32601);
	});

	test('T63: trouble in the store is an internal error that tells nothing', async () => {
		const backend = newBackend();
		backend.store.get = async () => {
			throw new Error('disk I/O error in /var/lib/secret.db');
		};
		fixture = await open({ backend });
		for (const method of METHODS) {
			const { error } = await fixture.wire.request(method, paramsOf(method, '0'.repeat(40)));
			expect(error, method).toEqual({ code: -32603, message: 'Internal error' });
		}
	});
});

describe('over HTTP', () => {
	test('T60: a header that names another method or task than the body is refused', async () => {
		fixture = await overHttp();
		const taskId = await begin(fixture.wire);
		for (const method of METHODS)
			for (const headers of [
				{ 'mcp-name': 'other' },
				{ 'mcp-method': 'tools/call' },
				{ 'mcp-name': undefined },
			]) {
				const answer = await fixture.wire.request(method, paramsOf(method, taskId), { headers });
				expect(answer.error?.code, `${method} ${JSON.stringify(headers)}`).toBe(-32020);
				expect(answer.status).toBe(400);
			}
	});
});
