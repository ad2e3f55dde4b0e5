/** What servers of 2025-11-25 do that no official one does, and when the client asks for what. */
import { Client } from '@modelcontextprotocol/client';
import { afterEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../src/testing/index.ts';
import { LATER, type LegacyScript, legacyTask, playLegacy, words } from './legacy-script.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

const play = async (...given: Parameters<typeof playLegacy>) => {
	const played = await playLegacy(...given);
	ends.push(played.close);
	return played;
};

const ENDED = { result: legacyTask({ status: 'completed' }) };
const DONE: LegacyScript['on'] = {
	'tasks/get': () => ENDED,
	'tasks/result': () => ({ result: words('done') }),
};

/** A question of the task, as a request of the server. */
function question(id: string) {
	const related = { 'io.modelcontextprotocol/related-task': { taskId: 't1' } };
	const requestedSchema = { type: 'object', properties: {} };
	return { id, method: 'elicitation/create', params: { message: 'Sure?', requestedSchema, _meta: related } };
}

/** A host whose handler thinks until it is told. */
function thinking() {
	const asked: string[] = [];
	const think = Promise.withResolvers<void>();
	const client = new Client({ name: 'host', version: '1' }, { capabilities: { elicitation: { form: {} } } });
	client.setRequestHandler('elicitation/create', async ({ params }) => {
		asked.push(params.message);
		await think.promise;
		return { action: 'accept', content: {} };
	});
	return { client, asked, think };
}

describe('a task of 2025-11-25', () => {
	it('is asked for by its own interval, and for its result once it has ended (L02)', async () => {
		const clock = new FakeClock();
		const times: number[] = [];
		const startMs = clock.nowMs();
		const { tasks, of } = await play(
			{
				on: {
					...DONE,
					'tasks/get': () => {
						times.push(clock.nowMs() - startMs);
						return times.length < 4 ? { result: legacyTask({ pollInterval: 3_000 }) } : ENDED;
					},
				},
			},
			{ clock },
		);
		const call = tasks.callTool({ name: 'work' });
		await expect.poll(() => tasks.watching).toBe(1);
		for (let step = 0; step < 100; step++) await clock.advance(100);
		expect((await call).content).toEqual(words('done')['content']);
		expect(times.map((ms) => Math.round(ms / 100) * 100)).toEqual([200, 3_200, 6_200, 9_200]);
		expect(of('tasks/result')).toHaveLength(1);
	});

	it('whose status is pushed is asked for at once when it has ended (L02)', async () => {
		let ended = false;
		const played = await play({
			on: {
				...DONE,
				'tasks/get': () => (ended ? ENDED : { result: legacyTask({ pollInterval: 3_600_000 }) }),
			},
		});
		const execution = await played.tasks.startTool({ name: 'work' });
		await expect.poll(() => played.of('tasks/get').length).toBe(1);
		const news = legacyTask({ statusMessage: 'Half', lastUpdatedAt: '2025-11-25T00:00:01.000Z' });
		played.send({ method: 'notifications/tasks/status', params: news });
		await expect.poll(() => execution.state?.statusMessage).toBe('Half');
		expect(played.of('tasks/get')).toHaveLength(1);
		ended = true;
		played.send({ method: 'notifications/tasks/status', params: legacyTask({ status: 'completed' }) });
		expect((await execution.result()).content).toEqual(words('done')['content']);
		expect(played.of('tasks/get')).toHaveLength(2);
	});

	it('tells its progress under the token of the call after the call was answered (L02)', async () => {
		const played = await play({ on: { ...DONE, 'tasks/get': () => ({ result: legacyTask() }) } });
		const heard: unknown[] = [];
		const problems: unknown[] = [];
		played.client.onerror = (error) => problems.push(error);
		const execution = await played.tasks.startTool(
			{ name: 'work' },
			{ onprogress: (progress) => heard.push(progress) },
		);
		const progressToken = played.of('tools/call')[0]?.id;
		played.send({ method: 'notifications/progress', params: { progressToken, progress: 1, message: 'a' } });
		await expect.poll(() => heard).toEqual([{ progress: 1, message: 'a' }]);
		expect(problems).toEqual([]);
		execution.detach();
	});

	it.each([
		{ code: -32602, message: 'Failed to retrieve task: Task not found' },
		{ code: -32603, message: 'Task t1 not found' },
	])('that the server does not know ($code) is lost, which is said once it is sure', async (error) => {
		const clock = new FakeClock();
		const { tasks, of } = await play({ on: { 'tasks/get': () => ({ error }) } }, { clock });
		const lost = expect(tasks.callTool({ name: 'work' })).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
		await expect.poll(() => tasks.watching).toBe(1);
		for (let step = 0; step < 20; step++) await clock.advance(100);
		await lost;
		expect(of('tasks/get')).toHaveLength(2);
	});

	it('that failed throws the error of the call itself', async () => {
		const { tasks } = await play({
			on: {
				'tasks/get': () => ({ result: legacyTask({ status: 'failed', statusMessage: 'Disk full' }) }),
				'tasks/result': () => ({ error: { code: -32050, message: 'No space', data: { left: 0 } } }),
			},
		});
		await expect(tasks.callTool({ name: 'work' })).rejects.toMatchObject({
			code: -32050,
			message: 'No space (Disk full)',
			data: { left: 0 },
		});
	});

	it('that leaves out what the drafts before did not have is read all the same', async () => {
		const { taskId, status, createdAt } = legacyTask();
		const { tasks } = await play({
			on: { ...DONE, 'tools/call': () => ({ result: { task: { taskId, status, createdAt } } }) },
		});
		expect((await tasks.callTool({ name: 'work' })).content).toEqual(words('done')['content']);
	});

	it('that is not one is said to be invalid, with what is wrong', async () => {
		const { tasks } = await play({
			on: { 'tools/call': () => ({ result: { task: legacyTask({ status: 'submitted' }) } }) },
		});
		await expect(tasks.callTool({ name: 'work' })).rejects.toMatchObject({
			code: 'INVALID_RESPONSE',
			message: expect.stringContaining('"submitted"'),
		});
	});
});

describe('a question of a task of 2025-11-25', () => {
	it('that the server asks again while it is open is put to the host once, and each request answered (L04)', async () => {
		const { client, asked, think } = thinking();
		const asking = { result: legacyTask({ status: 'input_required' }) };
		let ended = false;
		const played = await play(
			{ on: { 'tasks/get': () => (ended ? ENDED : asking), 'tasks/result': () => LATER } },
			{},
			client,
		);
		const call = played.tasks.callTool({ name: 'work' });
		await expect.poll(() => played.of('tasks/result').length).toBe(1);
		played.send(question('q1'));
		await expect.poll(() => asked).toEqual(['Sure?']);
		// The connection broke for the server, which takes its request back and asks anew.
		played.send(question('q2'));
		played.send({ method: 'notifications/cancelled', params: { requestId: 'q1' } });
		think.resolve();
		await expect.poll(() => played.answers.size).toBe(2);
		expect(played.answers.get('q1')?.['result']).toEqual({ action: 'accept', content: {} });
		expect(played.answers.get('q2')?.['result']).toEqual({ action: 'accept', content: {} });
		expect(asked).toEqual(['Sure?']);
		// Once it is answered, the same words are a new question.
		played.send(question('q3'));
		await expect.poll(() => played.answers.size).toBe(3);
		expect(asked).toEqual(['Sure?', 'Sure?']);
		ended = true;
		const result = played.of('tasks/result')[0]?.id;
		played.send({ id: result, result: words('done') });
		expect((await call).content).toEqual(words('done')['content']);
		// What tasks/result said was the outcome: it is not asked for a second time.
		expect(played.of('tasks/result')).toHaveLength(1);
	});

	it('whose request broke is waited for on another one (L04)', async () => {
		const asking = { result: legacyTask({ status: 'input_required', pollInterval: 10 }) };
		let tries = 0;
		let ended = false;
		const problems: unknown[] = [];
		const { tasks } = await play(
			{
				on: {
					'tasks/get': () => (ended ? ENDED : asking),
					'tasks/result': () => {
						tries += 1;
						if (tries < 3) return { error: { code: -32000, message: 'Gone away' } };
						ended = true;
						return { result: words('done') };
					},
				},
			},
			{ onProblem: (error) => problems.push(error) },
		);
		expect((await tasks.callTool({ name: 'work' })).content).toEqual(words('done')['content']);
		expect(tries).toBe(3);
		expect(problems).toHaveLength(2);
	});

	it('has no request of its own where the host has told the task to end', async () => {
		const asking = { result: legacyTask({ status: 'input_required' }) };
		let cancelled = false;
		const played = await play({
			on: {
				'tasks/get': () => (cancelled ? { result: legacyTask({ status: 'cancelled' }) } : asking),
				'tasks/cancel': () => {
					cancelled = true;
					return { result: legacyTask({ status: 'cancelled' }) };
				},
				'tasks/result': () => LATER,
			},
		});
		const execution = await played.tasks.startTool({ name: 'work' });
		await execution.cancel();
		await expect(execution.result()).rejects.toMatchObject({ code: 'TASK_CANCELLED' });
		expect(played.of('tasks/result')).toHaveLength(0);
	});
});

describe('a call to a server of 2025-11-25', () => {
	it('is not made when its tools cannot be listed, because it is unknown how', async () => {
		const { tasks, of } = await play({
			on: { 'tools/list': () => ({ error: { code: -32603, message: 'No list today' } }) },
		});
		await expect(tasks.callTool({ name: 'work' })).rejects.toThrow('No list today');
		expect(of('tools/call')).toHaveLength(0);
	});

	it('takes a result at once from a server that makes no task of it', async () => {
		const { tasks } = await play({ on: { 'tools/call': () => ({ result: words('at once') }) } });
		const execution = await tasks.startTool({ name: 'work' });
		expect(execution.reference).toBeNull();
		expect((await execution.result()).content).toEqual(words('at once')['content']);
	});
});
