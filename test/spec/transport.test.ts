/** Headers, methods and errors. */
import { afterEach, describe, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.ts';
import { withStore } from '../support/engine-rig.ts';
import { type Fixture, overHttp, overStdio, ROUTES, throughSdk } from '../support/fixture-server.ts';
import { begin, call, getTask, inStatus, paramsFor, TASK_METHODS } from '../support/steps.ts';
import { ASKABLE, META, TASKS, type WireAnswer, WireRefusal } from '../support/wire.ts';
import { newBackend } from '../support/backends.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

const SECRET = '/var/lib/holdfast/tasks.db';
const INTERNAL = { code: -32603, message: 'Internal error' };

describe.each([
	['HTTP', overHttp],
	['the SDK alone', throughSdk],
])('headers through %s', (_name, open) => {
	test.each(TASK_METHODS)(
		'T60: %s is refused where a header and the body differ, and does nothing',
		async (method) => {
			fixture = await open();
			const { wire, backend } = fixture;
			const taskId = await begin(wire, 'asking', { keys: ['a'] });
			const other = await begin(wire, 'asking', { keys: ['a'] });
			for (const id of [taskId, other]) await inStatus(wire, id, 'input_required');
			const before = [await backend.store.load(taskId), await backend.store.load(other)];
			const params = { taskId, inputResponses: { a: { action: 'accept' } } };
			const wrongMethod = method === 'tasks/get' ? 'tasks/cancel' : 'tasks/get';
			for (const headers of [
				{ 'mcp-name': other },
				{ 'mcp-name': taskId.toUpperCase() },
				{ 'mcp-name': `${taskId}, ${taskId}` },
				{ 'mcp-name': undefined },
				{ 'mcp-method': wrongMethod },
				{ 'mcp-method': method.toUpperCase() },
				{ 'mcp-method': undefined },
				{ 'mcp-method': wrongMethod, 'mcp-name': other },
			]) {
				const answer = await wire.request(method, params, { headers });
				expect(answer, JSON.stringify(headers)).toMatchObject({ status: 400, error: { code: -32020 } });
			}
			expect([await backend.store.load(taskId), await backend.store.load(other)]).toEqual(before);
		},
	);

	test.each(TASK_METHODS)('T60: %s takes headers that are right', async (method) => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		const answer = await wire.request(method, paramsFor(method, taskId));
		expect(answer).toMatchObject({ status: 200, result: { resultType: 'complete' } });
	});

	test('T60: the header of another request does not make a call a task method', async () => {
		fixture = await open();
		const headers = { 'mcp-method': 'tasks/get', 'mcp-name': 'structured' };
		const answer = await call(fixture.wire, 'structured', {}, { headers });
		expect(answer).toMatchObject({ status: 400, error: { code: -32020 } });
	});
});

describe.each(ROUTES)('errors through %s', (_name, open) => {
	test.each([
		['no extensions', {}],
		['another extension', { extensions: { 'example.com/other': {} } }],
		['the capability of the earlier version', { tasks: { list: {}, cancel: {} } }],
	])('T61: a client that declares %s is refused, and nothing happens', async (_case, declared) => {
		fixture = await open();
		const { wire, control } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		for (const method of TASK_METHODS) {
			const answer = await wire.request(method, paramsFor(method, taskId), {
				meta: { [META.capabilities]: { ...ASKABLE, ...declared } },
			});
			expect(answer.error, method).toMatchObject({
				code: -32021,
				data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
			});
		}
		expect((await getTask(wire, taskId))['status']).toBe('working');
		control.open('a');
		await inStatus(wire, taskId, 'completed');
	});

	test.each(['tasks/result', 'tasks/list'])(
		'T62: %s is unknown, also for a task that exists',
		async (method) => {
			fixture = await open();
			const { wire } = fixture;
			const taskId = await begin(wire, 'slow', { gate: 'a' });
			const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
			for (const options of [
				{},
				{ declare: false },
				{ meta: { [META.capabilities]: { tasks, extensions: { [TASKS]: {} } } } },
			])
				for (const params of [{}, { taskId }])
					expect((await wire.request(method, params, options)).error?.code).toBe(-32601);
		},
	);

	test('T63: a store that cannot be read is told of to nobody outside', async () => {
		let failing = false;
		const backend = withStore(newBackend(), (store) => ({
			get: (taskId) => (failing ? Promise.reject(new Error(`EIO: read ${SECRET}`)) : store.get(taskId)),
		}));
		fixture = await open({ backend });
		const { wire } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		failing = true;
		for (const method of TASK_METHODS) {
			const answer = await wire.request(method, paramsFor(method, taskId));
			expect(answer.error, method).toEqual(INTERNAL);
			expect(JSON.stringify(answer)).not.toContain(SECRET);
		}
		failing = false;
		expect((await getTask(wire, taskId))['status']).toBe('working');
	});

	// answering; over HTTP the adapter for Node then answers for it, without the id of the request.
	const answers = open === overStdio ? test : test;

	answers('T63: a store that cannot be read refuses a subscription without a word about itself', async () => {
		let failing = false;
		const backend = withStore(newBackend(), (store) => ({
			get: (taskId) => (failing ? Promise.reject(new Error(`EIO: read ${SECRET}`)) : store.get(taskId)),
		}));
		fixture = await open({ backend });
		const { wire } = fixture;
		const taskId = await begin(wire, 'slow', { gate: 'a' });
		failing = true;
		const refused = await wire.listen([taskId], { id: 'my-listen' }).catch((error: unknown) => error);
		failing = false;
		expect(refused).toBeInstanceOf(WireRefusal);
		expect((refused as WireRefusal).answer).toMatchObject({ id: 'my-listen', error: INTERNAL });
		expect(JSON.stringify((refused as WireRefusal).answer)).not.toContain(SECRET);
	});

	describe.each([true, false])('T63: a store that cannot be written to, declared: %s', (declare) => {
		const refusing = async (trouble: Error): Promise<WireAnswer> => {
			const backend = withStore(newBackend(), () => ({ create: () => Promise.reject(trouble) }));
			fixture = await open({ backend });
			// Asks, so that the call has to be stored also where it is held.
			return call(fixture.wire, 'asking', { keys: ['a'] }, { declare });
		};

		test('T63: is told of to nobody outside', async () => {
			const answer = await refusing(new HoldfastError('STORE_UNUSABLE', `${SECRET} cannot be used: ENOSPC`));
			expect(answer.error).toEqual(INTERNAL);
			expect(JSON.stringify(answer)).not.toContain(SECRET);
		});

		test('T63: nor is an error that the store was not to throw', async () => {
			const answer = await refusing(new Error(`ENOSPC: write ${SECRET}`));
			expect(answer.error).toEqual(INTERNAL);
			expect(JSON.stringify(answer)).not.toContain(SECRET);
		});
	});
});
