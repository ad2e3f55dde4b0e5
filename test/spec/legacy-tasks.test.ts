import { afterEach, describe, expect, test } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { SUBJECT_TOKENS } from '../field/auth.ts';
import { type Fixture, overHttp, overStdio } from '../support/fixture-server.ts';
import {
	type Answer,
	field,
	HttpSession,
	type LegacyOptions,
	type LegacyWire,
	StdioConnection,
} from '../support/legacy-wire.ts';
import { eventually } from '../support/wire.ts';

const FULL = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const RELATED = 'io.modelcontextprotocol/related-task';
const UNKNOWN = 'a'.repeat(40);

let fixture: Fixture;
afterEach(() => fixture.close());

/** Opens a fixture and a client of an earlier version on it. */
type Open = (options?: LegacyOptions) => Promise<LegacyWire>;

const overSession: Open = async (options) => {
	const backend = memory();
	fixture = await overHttp({ backend });
	return HttpSession.open(urlOf(fixture), options);
};

const overPipe: Open = async (options) => {
	const opened = await overStdio();
	fixture = opened;
	return StdioConnection.open(opened.pair, options);
};

function urlOf(opened: Fixture): string {
	if (opened.url === undefined) throw new Error('the fixture has no address');
	return opened.url;
}

function taskOf(result: JsonObject): JsonObject {
	return result['task'] as JsonObject;
}

for (const [route, open] of [
	['HTTP', overSession],
	['stdio', overPipe],
] as const)
	describe(`the Tasks of 2025-11-25 over ${route}`, () => {
		test('L01: are advertised in full form, and each task tool says how it supports them', async () => {
			const wire = await open();
			expect(field(wire.received[0], 'result', 'capabilities', 'tasks')).toEqual(FULL);
			const tools = (await wire.request('tools/list')).result['tools'] as JsonObject[];
			const support = new Map(tools.map((tool) => [tool['name'], field(tool, 'execution', 'taskSupport')]));
			expect(support.get('slow')).toBe('optional');
			expect(support.get('required')).toBe('required');
			expect(support.get('forbidden')).toBe('forbidden');
			expect(support.get('plain')).toBeUndefined();
		});

		test('L01: are not there on 2025-06-18, where the parameter counts for nothing', async () => {
			const wire = await open({ version: '2025-06-18' });
			expect(field(wire.received[0], 'result', 'protocolVersion')).toBe('2025-06-18');
			expect(field(wire.received[0], 'result', 'capabilities')).not.toHaveProperty('tasks');
			const tools = (await wire.request('tools/list')).result['tools'] as JsonObject[];
			expect(tools.filter((tool) => 'execution' in tool)).toEqual([]);
			const { result } = await wire.call('quick', {}, { task: {} });
			expect(result).toMatchObject({ content: [{ text: 'quick' }] });
			for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/list'])
				expect((await wire.request(method, { taskId: UNKNOWN })).error?.code, method).toBe(-32601);
		});

		test('L01: a tool that must be a task is refused without one, and the other way round', async () => {
			const wire = await open();
			expect((await wire.call('required')).error?.code).toBe(-32601);
			expect((await wire.call('forbidden', {}, { task: {} })).error?.code).toBe(-32601);
			expect((await wire.call('plain', {}, { task: {} })).error?.code).toBe(-32601);
			expect((await wire.call('nowhere', {}, { task: {} })).error?.code).toBe(-32602);
			expect((await wire.call('plain')).result).toMatchObject({ content: [{ text: 'plain' }] });
			expect(await wire.start('required')).toMatchObject({ status: 'working' });
		});

		test('L02: the parameter opts in, and the answer nests the task', async () => {
			const wire = await open();
			const { result } = await wire.call('slow', { gate: 'a' }, { task: { ttl: 60_000 } });
			expect(Object.keys(result)).toEqual(['task']);
			expect(taskOf(result)).toEqual({
				taskId: expect.stringMatching(/^[0-9a-f]{40}$/) as string,
				status: 'working',
				statusMessage: expect.any(String) as string,
				createdAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
				lastUpdatedAt: expect.any(String) as string,
				ttl: expect.any(Number) as number,
				pollInterval: expect.any(Number) as number,
			});
			const task = await wire.get(taskOf(result)['taskId'] as string);
			expect(task).toMatchObject({ status: 'working', taskId: taskOf(result)['taskId'] });
			expect(task).not.toHaveProperty('_meta');
			fixture.control.open('a');
		});

		test('L02: without the parameter the same tool answers in the call', async () => {
			const wire = await open();
			const call = wire.call('slow', { gate: 'a' });
			fixture.control.open('a', 'in the call');
			const { result } = await call;
			expect(result).toEqual({ content: [{ type: 'text', text: 'in the call' }] });
		});

		test('L02: tasks/result blocks until the end, and answers what the call would have', async () => {
			const wire = await open();
			const { taskId } = await wire.start('slow', { gate: 'a' });
			const pending = wire.request('tasks/result', { taskId });
			expect(await wire.get(taskId)).toMatchObject({ status: 'working' });
			fixture.control.open('a', 'at last');
			expect((await pending).result).toEqual({
				content: [{ type: 'text', text: 'at last' }],
				_meta: { [RELATED]: { taskId } },
			});
			const again = await wire.request('tasks/result', { taskId });
			expect(again.result).toEqual((await pending).result);
			expect(await wire.get(taskId)).toMatchObject({ status: 'completed' });
		});

		test('L02: the result of a structured tool keeps its shape and its own _meta', async () => {
			const wire = await open();
			const { taskId } = await wire.start('structured');
			expect((await wire.request('tasks/result', { taskId })).result).toEqual({
				content: [{ type: 'text', text: '42' }],
				structuredContent: { answer: 42 },
				_meta: { 'example.com/own': true, [RELATED]: { taskId } },
			});
		});

		test('L02: a tool error is a failed task whose result says what went wrong', async () => {
			const wire = await open();
			const { taskId } = await wire.start('throwing');
			const { result } = await wire.request('tasks/result', { taskId });
			expect(result).toMatchObject({ isError: true, content: [{ text: 'no such branch' }] });
			expect(await wire.get(taskId)).toMatchObject({ status: 'failed' });
			const listed = (await wire.request('tasks/list')).result['tasks'] as JsonObject[];
			expect(listed).toMatchObject([{ taskId, status: 'failed' }]);
		});

		test('L02: a JSON-RPC error of the call is the error of tasks/result', async () => {
			const wire = await open();
			const { taskId } = await wire.start('failing');
			const { error } = await wire.request('tasks/result', { taskId });
			expect(error).toEqual({ code: -32099, message: 'quota used up', data: { left: 0 } });
			expect(await wire.get(taskId)).toMatchObject({ status: 'failed', statusMessage: 'quota used up' });
		});

		test('L02: tasks/result carries the questions of the task, each once, and takes the answers', async () => {
			const wire = await open();
			const { taskId } = await wire.start('asking', { keys: ['red', 'blue'] });
			const { result } = await wire.request('tasks/result', { taskId });
			expect(wire.asked).toHaveLength(2);
			for (const asked of wire.asked) {
				expect(asked['method']).toBe('elicitation/create');
				expect(field(asked, 'params', '_meta', RELATED)).toEqual({ taskId });
				expect(field(asked, 'params', 'mode')).toBe('form');
			}
			expect(wire.notes('notifications/cancelled')).toEqual([]);
			expect(JSON.parse(field(result, 'content', '0', 'text') as string)).toEqual([
				{ action: 'accept', content: { said: 'red?' } },
				{ action: 'accept', content: { said: 'blue?' } },
			]);
		});

		test('L02: sampling and roots are asked for in the same way', async () => {
			const answer: Answer = ({ method }) =>
				method === 'roots/list'
					? { result: { roots: [{ uri: 'file:///home' }] } }
					: { result: { role: 'assistant', model: 'm', content: { type: 'text', text: 'a poem' } } };
			const wire = await open({ answer });
			const { taskId } = await wire.start('drawing_on_the_client');
			const { result } = await wire.request('tasks/result', { taskId });
			expect(wire.asked.map(({ method }) => method)).toEqual(['sampling/createMessage', 'roots/list']);
			expect(JSON.parse(field(result, 'content', '0', 'text') as string)).toMatchObject([
				{ content: { text: 'a poem' } },
				{ roots: [{ uri: 'file:///home' }] },
			]);
		});

		test('L03: a client that only polls sees input_required, and gets its question with tasks/result', async () => {
			const wire = await open();
			const { taskId } = await wire.start('asking', { keys: ['red'] });
			await eventually(async () =>
				expect(await wire.get(taskId)).toMatchObject({ status: 'input_required' }),
			);
			for (let poll = 0; poll < 5; poll++) await wire.get(taskId);
			expect(wire.asked).toEqual([]);
			const { result } = await wire.request('tasks/result', { taskId });
			expect(wire.asked).toHaveLength(1);
			expect(field(result, 'content', '0', 'text')).toContain('red?');
		});

		test('L03: a tasks/result that was cancelled unanswered leaves the question to the next one', async () => {
			let isAway = true;
			const wire = await open({ answer: (request) => (isAway ? undefined : { result: accepted(request) }) });
			const { taskId } = await wire.start('asking', { keys: ['red'] });
			void wire.request('tasks/result', { taskId }, 'given-up');
			await wire.until((message) => message['method'] === 'elicitation/create');
			await wire.notify('notifications/cancelled', { requestId: 'given-up' });
			await wire.until(({ method }) => method === 'notifications/cancelled');
			expect(await wire.get(taskId)).toMatchObject({ status: 'input_required' });
			isAway = false;
			const { result } = await wire.request('tasks/result', { taskId });
			expect(field(result, 'content', '0', 'text')).toContain('accept');
		});

		test('L02: tasks/cancel answers with the task once it is cancelled, and refuses one that has ended', async () => {
			const wire = await open();
			const { taskId } = await wire.start('polite', { gate: 'a' });
			const cancelled = await wire.request('tasks/cancel', { taskId });
			expect(cancelled.result).toMatchObject({ taskId, status: 'cancelled' });
			expect((await wire.request('tasks/cancel', { taskId })).error).toMatchObject({
				code: -32602,
				message: 'The task cannot be cancelled: it is already cancelled',
			});
			const { result } = await wire.request('tasks/result', { taskId });
			expect(result).toMatchObject({ isError: true });
		});

		test('L02: cancelling the call that created a task does not cancel the task', async () => {
			const wire = await open();
			const params = { name: 'slow', arguments: { gate: 'a' }, task: {} };
			const { result } = await wire.request('tools/call', params, 'created');
			await wire.notify('notifications/cancelled', { requestId: 'created' });
			const taskId = taskOf(result)['taskId'] as string;
			expect(await wire.get(taskId)).toMatchObject({ status: 'working' });
			fixture.control.open('a', 'went on');
			const ended = await wire.request('tasks/result', { taskId });
			expect(ended.result).toMatchObject({ content: [{ text: 'went on' }] });
		});

		test('L02: an unknown task is -32602 for each method, and so is a cursor that no page gave', async () => {
			const wire = await open();
			for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
				expect((await wire.request(method, { taskId: UNKNOWN })).error, method).toEqual({
					code: -32602,
					message: 'Task not found',
				});
				expect((await wire.request(method, {})).error?.code, method).toBe(-32602);
			}
			for (const cursor of ['', 'x', '17', 7])
				expect((await wire.request('tasks/list', { cursor })).error?.code).toBe(-32602);
		});

		test('L02: tasks/list gives the tasks in pages, newest first', async () => {
			const wire = await open();
			const started: string[] = [];
			for (let index = 0; index < 120; index++) started.push((await wire.start('structured')).taskId);
			const first = (await wire.request('tasks/list')).result;
			expect(first['tasks']).toHaveLength(100);
			const second = (await wire.request('tasks/list', { cursor: first['nextCursor'] ?? '' })).result;
			expect(second).not.toHaveProperty('nextCursor');
			const listed = [...(first['tasks'] as JsonObject[]), ...(second['tasks'] as JsonObject[])];
			expect(listed.map(({ taskId }) => taskId)).toEqual(started.reverse());
		});

		test('L02: the client is told of status and progress, the latter with the token of its call', async () => {
			const wire = await open();
			if (wire instanceof HttpSession) await wire.listen();
			const { taskId } = await wire.start('noisy', { gate: 'a' }, { _meta: { progressToken: 0 } });
			const progress = await wire.until(({ method }) => method === 'notifications/progress');
			expect(progress['params']).toMatchObject({
				progressToken: 0,
				progress: 1,
				total: 4,
				message: 'one of four',
				_meta: { [RELATED]: { taskId } },
			});
			fixture.control.open('a');
			const told = await wire.until(({ method }) => method === 'notifications/tasks/status');
			expect(told['params']).toMatchObject({ taskId, status: 'completed' });
			expect(told['params']).not.toHaveProperty('_meta');
		});
	});

function accepted(request: JsonObject): JsonObject {
	return { action: 'accept', content: { said: field(request, 'params', 'message') as string } };
}

describe('one task, two generations', () => {
	test('L02: a task of 2025-11-25 is read, answered and cancelled by a client of 2026-07-28', async () => {
		fixture = await overHttp();
		const legacy = await HttpSession.open(urlOf(fixture));
		const { taskId } = await legacy.start('asking', { keys: ['red'] });
		await eventually(async () =>
			expect((await fixture.wire.request('tasks/get', { taskId })).result).toMatchObject({
				status: 'input_required',
				inputRequests: { red: { method: 'elicitation/create' } },
			}),
		);
		const inputResponses = { red: { action: 'accept', content: { answer: 'from 2026' } } };
		await fixture.wire.request('tasks/update', { taskId, inputResponses });
		const { result } = await legacy.request('tasks/result', { taskId });
		expect(field(result, 'content', '0', 'text')).toContain('from 2026');
		expect(legacy.asked).toEqual([]);
		const second = await legacy.start('polite', { gate: 'a' });
		await fixture.wire.request('tasks/cancel', { taskId: second.taskId });
		await eventually(async () =>
			expect(await legacy.get(second.taskId)).toMatchObject({ status: 'cancelled' }),
		);
	});

	test('L02: a task of 2026-07-28 is read, answered and finished by a client of 2025-11-25', async () => {
		fixture = await overHttp();
		const created = await fixture.wire.request('tools/call', {
			name: 'asking',
			arguments: { keys: ['red'] },
		});
		const taskId = created.result?.['taskId'] as string;
		const legacy = await HttpSession.open(urlOf(fixture));
		const { result } = await legacy.request('tasks/result', { taskId });
		expect(field(result, 'content', '0', 'text')).toContain('red?');
		const read = await fixture.wire.request('tasks/get', { taskId });
		expect(read.result).toMatchObject({ status: 'completed', result: { content: result['content'] } });
		const working = await fixture.wire.request('tools/call', { name: 'polite', arguments: { gate: 'a' } });
		const second = working.result?.['taskId'] as string;
		const cancelled = await legacy.request('tasks/cancel', { taskId: second });
		expect(cancelled.result).toMatchObject({ status: 'cancelled' });
	});

	test('L02: tasks/list and every other method know only the tasks of the principal', async () => {
		fixture = await overHttp({ listen: { auth: SUBJECT_TOKENS } });
		const ada = await HttpSession.open(urlOf(fixture), { token: 'ada' });
		const { taskId } = await ada.start('slow', { gate: 'a' });
		const again = await HttpSession.open(urlOf(fixture), { token: 'ada' });
		expect((await again.request('tasks/list')).result).toMatchObject({ tasks: [{ taskId }] });
		const bob = await HttpSession.open(urlOf(fixture), { token: 'bob' });
		expect((await bob.request('tasks/list')).result).toEqual({ tasks: [] });
		for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
			expect((await bob.request(method, { taskId })).error, method).toEqual(
				(await bob.request(method, { taskId: UNKNOWN })).error,
			);
		fixture.control.open('a');
	});

	test('L02: without authentication a session lists what it created or named, and nothing of others', async () => {
		fixture = await overHttp();
		const one = await HttpSession.open(urlOf(fixture));
		const { taskId } = await one.start('slow', { gate: 'a' });
		const other = await HttpSession.open(urlOf(fixture));
		expect((await other.request('tasks/list')).result).toEqual({ tasks: [] });
		await other.get(taskId);
		expect((await other.request('tasks/list')).result).toMatchObject({ tasks: [{ taskId }] });
		fixture.control.open('a');
	});

	test('L02: a client that declares no input is declined honestly, and one that comes later is asked', async () => {
		fixture = await overHttp();
		const mute = await HttpSession.open(urlOf(fixture), { capabilities: {} });
		const { taskId } = await mute.start('asking', { keys: ['red'] });
		const { result } = await mute.request('tasks/result', { taskId });
		expect(result).toMatchObject({ isError: true });
		expect(field(result, 'content', '0', 'text')).toContain('cannot be asked');
		const able = await HttpSession.open(urlOf(fixture));
		const second = await able.start('asking', { keys: ['red'] });
		// Who cannot be asked only waits, and takes nobody's place.
		const answered = able.request('tasks/result', { taskId: second.taskId });
		const waits = mute.request('tasks/result', { taskId: second.taskId });
		await answered;
		expect(field((await waits).result, 'content', '0', 'text')).toContain('red?');
		expect(mute.asked).toEqual([]);
	});

	test('L03: a tasks/result whose stream was cut leaves its question to the next one', async () => {
		fixture = await overHttp();
		let isAway = true;
		const wire = await HttpSession.open(urlOf(fixture), {
			answer: (request) => (isAway ? undefined : { result: accepted(request) }),
		});
		const { taskId } = await wire.start('asking', { keys: ['red'] });
		const stream = await wire.open({ jsonrpc: '2.0', id: 'cut', method: 'tasks/result', params: { taskId } });
		await wire.until(({ method }) => method === 'elicitation/create');
		stream.cut();
		await stream.ended;
		isAway = false;
		const { result } = await wire.request('tasks/result', { taskId });
		expect(wire.asked).toHaveLength(2);
		expect(field(result, 'content', '0', 'text')).toContain('accept');
	});

	test('L03: of several that wait the last one is asked, and when it goes away the one before', async () => {
		fixture = await overHttp();
		const first = await HttpSession.open(urlOf(fixture), { answer: () => undefined });
		const last = await HttpSession.open(urlOf(fixture), { answer: () => undefined });
		const { taskId } = await first.start('asking', { keys: ['red'] });
		const waits = first.request('tasks/result', { taskId });
		await first.until(({ method }) => method === 'elicitation/create');
		last.request('tasks/result', { taskId }, 'leaves').catch(() => {});
		await last.until(({ method }) => method === 'elicitation/create');
		const takenBack = await first.until(({ method }) => method === 'notifications/cancelled');
		expect(field(takenBack, 'params', 'requestId')).toBe(first.asked[0]?.['id']);
		await last.delete();
		await eventually(() => expect(first.asked).toHaveLength(2));
		const id = first.asked[1]?.['id'] ?? 0;
		await first.write({ jsonrpc: '2.0', id, result: { action: 'accept', content: { said: 'after all' } } });
		expect(field((await waits).result, 'content', '0', 'text')).toContain('after all');
	});

	test('L02: a request without a session that names its version gets a task too', async () => {
		fixture = await overHttp();
		const post = async (method: string, params: JsonObject): Promise<JsonObject> => {
			const response = await fetch(urlOf(fixture), {
				method: 'POST',
				headers: {
					'content-type': 'application/json',
					accept: 'application/json, text/event-stream',
					'mcp-protocol-version': '2025-11-25',
				},
				body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
			});
			const data = /^data: ?(.+)$/m.exec(await response.text())?.[1] ?? '{}';
			return field(JSON.parse(data), 'result') as JsonObject;
		};
		const created = await post('tools/call', { name: 'structured', arguments: {}, task: {} });
		const taskId = field(created, 'task', 'taskId') as string;
		expect(await post('tasks/result', { taskId })).toMatchObject({ structuredContent: { answer: 42 } });
		expect(await post('tasks/get', { taskId })).toMatchObject({ taskId, status: 'completed' });
	});
});
