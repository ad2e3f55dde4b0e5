import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { memoryJournal } from '../../src/client/journal/memory-journal.ts';
import { TaskClient } from '../../src/client/task-client.ts';
import { DROP, done, FakeServer, form, Refusal, task } from './fake-server.ts';
import { connectInMemory, text } from './server.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

const ELICITATION = { capabilities: { elicitation: { form: {}, url: {} } } };

/** A fake whose task asks these questions until each is answered. */
function asking(questions: Record<string, unknown>): { fake: FakeServer; answers: Record<string, unknown> } {
	const fake = new FakeServer();
	const answers: Record<string, unknown> = {};
	fake.get = () => {
		const left = Object.entries(questions).filter(([key]) => !(key in answers));
		return left.length > 0
			? task({ status: 'input_required', inputRequests: Object.fromEntries(left) })
			: done('answered');
	};
	fake.update = (params) => {
		Object.assign(answers, params['inputResponses']);
		return {};
	};
	return { fake, answers };
}

describe('a question of a task', () => {
	it('goes to the handler that the host registered on the SDK client, once, and its answer to the server (T34, C4)', async () => {
		const { fake, answers } = asking({ ask: form('Delete it?') });
		const tasks = await fake.taskClient({}, ELICITATION);
		const handler = vi.fn(async () => ({ action: 'accept' as const, content: { ok: true } }));
		tasks.client.setRequestHandler('elicitation/create', handler);
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(5_000);
		expect(await result).toMatchObject({ content: [{ text: 'answered' }] });
		expect(handler).toHaveBeenCalledTimes(1);
		expect(handler.mock.calls[0]).toMatchObject([
			{ method: 'elicitation/create', params: { message: 'Delete it?', mode: 'form' } },
			{ mcpReq: { id: 'ask' } },
		]);
		expect(answers).toEqual({ ask: { action: 'accept', content: { ok: true } } });
		expect(fake.of('tasks/update')).toHaveLength(1);
		expect(fake.violations).toEqual([]);
	});

	it('is shown once however often polls repeat it, and polls are few while a person thinks (T34)', async () => {
		const { fake } = asking({ ask: form() });
		const tasks = await fake.taskClient({}, ELICITATION);
		const answer = Promise.withResolvers<{ action: 'accept'; content: { ok: boolean } }>();
		const handler = vi.fn(() => answer.promise);
		tasks.client.setRequestHandler('elicitation/create', handler);
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(600_000);
		expect(handler).toHaveBeenCalledTimes(1);
		expect(fake.of('tasks/get').length).toBeLessThanOrEqual(61);
		answer.resolve({ action: 'accept', content: { ok: true } });
		await fake.clock.advance(1_000);
		expect(await result).toMatchObject({ content: [{ text: 'answered' }] });
	});

	it('is answered without waiting for others that are still open (T30)', async () => {
		const { fake, answers } = asking({ quick: form('quick'), slow: form('slow') });
		const tasks = await fake.taskClient({}, ELICITATION);
		const slow = Promise.withResolvers<void>();
		tasks.client.setRequestHandler('elicitation/create', async ({ params }) => {
			if (params.message === 'slow') await slow.promise;
			return { action: 'accept', content: { ok: true } };
		});
		const result = tasks.callTool({ name: 'both' });
		await fake.clock.advance(30_000);
		expect(Object.keys(answers)).toEqual(['quick']);
		slow.resolve();
		await fake.clock.advance(1_000);
		await result;
		expect(
			fake.of('tasks/update').map(({ params }) => Object.keys(params['inputResponses'] as object)),
		).toEqual([['quick'], ['slow']]);
	});

	it('is withdrawn from the host when it is open no more: its signal fires', async () => {
		const { fake, answers } = asking({ ask: form() });
		const tasks = await fake.taskClient({}, ELICITATION);
		let signal: AbortSignal | undefined;
		tasks.client.setRequestHandler('elicitation/create', (_request, ctx) => {
			signal = ctx.mcpReq.signal;
			return new Promise(() => {});
		});
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(1_000);
		expect(signal?.aborted).toBe(false);
		answers['ask'] = 'answered by another client';
		await fake.clock.advance(15_000);
		expect(signal?.aborted).toBe(true);
		expect(await result).toMatchObject({ content: [{ text: 'answered' }] });
		expect(fake.of('tasks/update')).toHaveLength(0);
	});

	it('is withdrawn when the task is cancelled while the form is open', async () => {
		const { fake } = asking({ ask: form() });
		const tasks = await fake.taskClient({}, ELICITATION);
		let signal: AbortSignal | undefined;
		tasks.client.setRequestHandler('elicitation/create', (_request, ctx) => {
			signal = ctx.mcpReq.signal;
			return new Promise(() => {});
		});
		const execution = await tasks.startTool({ name: 'delete' });
		await fake.clock.advance(1_000);
		await execution.cancel();
		expect(signal?.aborted).toBe(true);
		execution.detach();
	});

	it('has the defaults of its form filled in where the person left them alone', async () => {
		const { fake, answers } = asking({
			ask: form('How?', { name: { type: 'string', default: 'x' }, n: { type: 'integer', default: 3 } }),
		});
		const tasks = await fake.taskClient({}, ELICITATION);
		tasks.client.setRequestHandler('elicitation/create', async () => ({
			action: 'accept',
			content: { n: 5 },
		}));
		const result = tasks.callTool({ name: 'form' });
		await fake.clock.advance(5_000);
		await result;
		expect(answers).toEqual({ ask: { action: 'accept', content: { name: 'x', n: 5 } } });
	});

	it('may be a URL, a sampling or the roots', async () => {
		const { fake, answers } = asking({
			url: {
				method: 'elicitation/create',
				params: { mode: 'url', message: 'Sign in', url: 'https://x.test/' },
			},
			roots: { method: 'roots/list' },
			sample: {
				method: 'sampling/createMessage',
				params: { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 5 },
			},
		});
		const capabilities = { elicitation: { url: {} }, roots: {}, sampling: {} };
		const tasks = await fake.taskClient({}, { capabilities });
		tasks.client.setRequestHandler('elicitation/create', async () => ({ action: 'accept' }));
		tasks.client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///a' }] }));
		tasks.client.setRequestHandler('sampling/createMessage', async () => ({
			model: 'm',
			role: 'assistant',
			content: { type: 'text', text: 'hello' },
		}));
		const result = tasks.callTool({ name: 'all' });
		await fake.clock.advance(5_000);
		await result;
		expect(answers).toMatchObject({
			url: { action: 'accept' },
			roots: { roots: [{ uri: 'file:///a' }] },
			sample: { model: 'm', content: { text: 'hello' } },
		});
		expect(fake.violations).toEqual([]);
	});

	it('is declined honestly by a host without a handler, or without the mode', async () => {
		const { fake, answers } = asking({ ask: form(), roots: { method: 'roots/list' } });
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(5_000);
		await result;
		expect(answers).toEqual({ ask: { action: 'decline' }, roots: { roots: [] } });

		const other = asking({
			ask: {
				method: 'elicitation/create',
				params: { mode: 'url', message: 'Sign in', url: 'https://x.test/' },
			},
		});
		const formOnly = await other.fake.taskClient({}, { capabilities: { elicitation: { form: {} } } });
		formOnly.client.setRequestHandler('elicitation/create', async () => ({ action: 'accept' }));
		const second = formOnly.callTool({ name: 'url' });
		await other.fake.clock.advance(5_000);
		await second;
		expect(other.answers).toEqual({ ask: { action: 'decline' } });
	});

	it('that nobody could ever answer ends the call and cancels the task, instead of hanging', async () => {
		const { fake } = asking({
			sample: {
				method: 'sampling/createMessage',
				params: { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 5 },
			},
		});
		const tasks = await fake.taskClient();
		const result = tasks.callTool({ name: 'sample' }).catch((error: unknown) => error);
		await fake.clock.advance(5_000);
		expect(await result).toMatchObject({ code: 'INPUT_UNAVAILABLE' });
		expect(fake.of('tasks/cancel')).toHaveLength(1);
	});

	it('is answered with cancel when its handler throws', async () => {
		const { fake, answers } = asking({ ask: form() });
		const problems: unknown[] = [];
		const tasks = await fake.taskClient({ onProblem: (error) => problems.push(error) }, ELICITATION);
		tasks.client.setRequestHandler('elicitation/create', async () => {
			throw new Error('The window broke');
		});
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(5_000);
		await result;
		expect(answers).toEqual({ ask: { action: 'cancel' } });
		expect(problems).toMatchObject([{ message: 'The window broke' }]);
	});

	it('stays open while the host connects anew, and its answer still counts (T34)', async () => {
		const { fake, answers } = asking({ ask: form() });
		const tasks = await fake.taskClient({}, ELICITATION);
		const answer = Promise.withResolvers<{ action: 'accept'; content: { ok: boolean } }>();
		const handler = vi.fn(() => answer.promise);
		tasks.client.setRequestHandler('elicitation/create', handler);
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(1_000);
		await tasks.client.close();
		await fake.clock.advance(30_000);
		await fake.reconnect(tasks.client);
		answer.resolve({ action: 'accept', content: { ok: true } });
		await fake.clock.advance(30_000);
		expect(await result).toMatchObject({ content: [{ text: 'answered' }] });
		expect(handler).toHaveBeenCalledTimes(1);
		expect(answers).toEqual({ ask: { action: 'accept', content: { ok: true } } });
		expect(fake.violations).toEqual([]);
	});

	it('is asked again when it was answered without a connection, which the SDK drops, and never cancelled', async () => {
		const { fake, answers } = asking({ ask: form() });
		const tasks = await fake.taskClient({}, ELICITATION);
		const first = Promise.withResolvers<void>();
		const handler = vi.fn(async () => {
			if (handler.mock.calls.length === 1) await first.promise;
			return { action: 'accept' as const, content: { ok: true } };
		});
		tasks.client.setRequestHandler('elicitation/create', handler);
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(1_000);
		await tasks.client.close();
		first.resolve();
		await fake.clock.advance(30_000);
		await fake.reconnect(tasks.client);
		await fake.clock.advance(30_000);
		await result;
		expect(handler).toHaveBeenCalledTimes(2);
		expect(answers).toEqual({ ask: { action: 'accept', content: { ok: true } } });
	});

	it('goes to onInput where the host gives one', async () => {
		const { fake, answers } = asking({ ask: form('Sure?') });
		const tasks = await fake.taskClient({
			onInput: async (request, { key, tool }) => ({
				action: 'accept',
				content: { said: `${key} ${tool} ${JSON.stringify(request.params?.['message'])}` },
			}),
		});
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(5_000);
		await result;
		expect(answers).toEqual({ ask: { action: 'accept', content: { said: 'ask delete "Sure?"' } } });
	});

	it('ends with a clear error when the server does not take the answer', async () => {
		const { fake } = asking({ ask: form() });
		fake.update = () => new Refusal(-32602, 'content.ok must be a boolean');
		const tasks = await fake.taskClient({ onInput: async () => ({ action: 'accept', content: { ok: 1 } }) });
		const result = tasks.callTool({ name: 'delete' }).catch((error: unknown) => error);
		await fake.clock.advance(20_000);
		expect(await result).toMatchObject({ code: 'INVALID_RESPONSE', message: expect.stringContaining('ask') });
	});
});

describe('an answer', () => {
	it('is sent again after an outage, and the question is not asked again (T34, T71)', async () => {
		const { fake, answers } = asking({ ask: form() });
		const take = fake.update;
		let failures = 3;
		fake.update = (params) => (failures-- > 0 ? DROP : take(params));
		const onInput = vi.fn(async () => ({ action: 'accept', content: { ok: true } }));
		const tasks = await fake.taskClient({ onInput });
		const result = tasks.callTool({ name: 'delete' });
		await fake.clock.advance(60_000);
		await result;
		expect(onInput).toHaveBeenCalledTimes(1);
		expect(answers).toHaveProperty('ask');
	});

	it('that was kept before a crash is sent by the next process, without asking (T34, C7)', async () => {
		const { fake, answers } = asking({ ask: form() });
		const journal = memoryJournal();
		const take = fake.update;
		fake.update = () => DROP;
		const asked = vi.fn(async () => ({ action: 'accept', content: { ok: true } }));
		const before = await fake.taskClient({ journal, onInput: asked });
		const { reference } = await before.startTool({ name: 'delete' });
		await fake.clock.advance(2_000);
		before.close();
		fake.update = take;

		const after = await fake.taskClient({ journal, onInput: asked });
		const [execution] = await after.resumeAll();
		expect(execution?.reference).toBe(reference);
		await fake.clock.advance(5_000);
		expect(await execution?.result()).toMatchObject({ content: [{ text: 'answered' }] });
		expect(asked).toHaveBeenCalledTimes(1);
		expect(answers).toEqual({ ask: { action: 'accept', content: { ok: true } } });
	});

	it('is not asked for again by the next process once the server has it, whatever a late replica says (T34)', async () => {
		const fake = new FakeServer();
		fake.get = () => task({ status: 'input_required', inputRequests: { ask: form() } });
		const journal = memoryJournal();
		const asked = vi.fn(async () => ({ action: 'accept' }));
		const before = await fake.taskClient({ journal, onInput: asked });
		await before.startTool({ name: 'delete' });
		await fake.clock.advance(5_000);
		before.close();
		const after = await fake.taskClient({ journal, onInput: asked });
		await after.resumeAll();
		await fake.clock.advance(60_000);
		expect(asked).toHaveBeenCalledTimes(1);
		expect(fake.of('tasks/update')).toHaveLength(1);
		after.close();
	});

	it('cannot be confused by keys that JavaScript gives a meaning (T31)', async () => {
		const { fake, answers } = asking(
			JSON.parse('{"__proto__": 1, "constructor": 1}') as Record<string, unknown>,
		);
		const questions = JSON.parse(
			`{"__proto__": ${JSON.stringify(form())}, "constructor": ${JSON.stringify(form())}}`,
		) as object;
		let got: string[] = [];
		fake.get = () =>
			got.length < 2 ? task({ status: 'input_required', inputRequests: questions }) : done('answered');
		fake.update = ({ inputResponses }) => {
			got = [...new Set([...got, ...Object.keys(inputResponses as object)])];
			return {};
		};
		const tasks = await fake.taskClient({ onInput: async () => ({ action: 'accept' }) });
		const result = tasks.callTool({ name: 'odd' });
		await fake.clock.advance(10_000);
		await result;
		expect(got.sort()).toEqual(['__proto__', 'constructor']);
		expect(answers).toEqual({});
	});
});

describe('against a holdfast server in memory', () => {
	it('two questions of one task are answered, one late, and the result arrives', async () => {
		const { client, requests, serving } = await connectInMemory(
			(mcp, tasks) =>
				mcp.registerTool(
					'ask',
					{ inputSchema: z.object({}) },
					tasks.handler({ syncWindowMs: 0 }, async (_args, context) => {
						const requestedSchema = { type: 'object', properties: { v: { type: 'string' } } };
						const answers = await Promise.all(
							['one', 'two'].map((key) =>
								context.requireInput(key, { mode: 'form', message: key, requestedSchema }),
							),
						);
						return text(JSON.stringify(answers.map(({ content }) => content?.['v'])));
					}),
				),
			ELICITATION,
		);
		ends.push(() => serving.close(0));
		client.setRequestHandler('elicitation/create', async ({ params }) => {
			if (params.message === 'two') await new Promise((resolve) => setTimeout(resolve, 500));
			return { action: 'accept', content: { v: params.message.toUpperCase() } };
		});
		const tasks = new TaskClient(client);
		ends.push(() => tasks.close());
		expect(await tasks.callTool({ name: 'ask', arguments: {} })).toMatchObject({
			content: [{ text: '["ONE","TWO"]' }],
		});
		expect(requests.counts['tasks/update']).toBe(2);
	});
});
