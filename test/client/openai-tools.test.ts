/** The adapter for chat completions, held against the types of the package `openai`. */
import type {
	ChatCompletionMessageFunctionToolCall,
	ChatCompletionMessageParam,
	ChatCompletionMessageToolCall,
	ChatCompletionTool,
} from 'openai/resources/chat/completions';
import { describe, expect, it } from 'vitest';
import { AgentTools, type AgentToolsOptions } from '../../src/client/agent-tools.ts';
import { BackgroundTasks } from '../../src/client/background-tasks.ts';
import { EndInbox } from '../../src/client/end-inbox.ts';
import { memoryJournal } from '../../src/client/journal/memory-journal.ts';
import { OpenAiTools } from '../../src/client/openai-tools.ts';
import type { TaskClient } from '../../src/client/task-client.ts';
import { DROP, done, FakeServer, form, Refusal, SILENCE, task } from './fake-server.ts';

const BUILD = {
	name: 'build.all',
	description: 'Builds everything',
	inputSchema: { type: 'object', properties: { target: { type: 'string' } }, required: ['target'] },
};

/** A fake whose tasks are named after what is built, and the tools of a loop. */
async function loop(options: Partial<AgentToolsOptions> & { readonly fake?: FakeServer } = {}) {
	const fake = options.fake ?? new FakeServer();
	fake.tools = [BUILD, { name: 'noargs', inputSchema: { type: 'object' } }];
	fake.call = ({ arguments: given }) => ({ resultType: 'task', ...task({ taskId: targetOf(given) }) });
	fake.get = (_n, taskId) => task({ taskId, statusMessage: 'Compiling' });
	const inbox = new EndInbox();
	const background = new BackgroundTasks({ onEnd: inbox.onEnd, clock: fake.clock });
	const clients = options.clients ?? [await fake.taskClient()];
	const agentTools = await AgentTools.list({ clients, background, ...options });
	const openai = new OpenAiTools(agentTools);
	/** Runs a call while the time goes on. */
	const run = async (toolCall: ChatCompletionMessageToolCall, ms = 1_100): Promise<string> => {
		const running = openai.run(toolCall);
		await fake.clock.advance(ms);
		const message = await running;
		expect(message).toMatchObject({ role: 'tool', tool_call_id: toolCall.id });
		return message.content;
	};
	return { fake, inbox, background, agentTools, openai, run };
}

function targetOf(given: unknown): string {
	return String(Reflect.get(Object(given), 'target'));
}

let lastId = 0;

function call(name: string, given: unknown, id = `call_${++lastId}`): ChatCompletionMessageFunctionToolCall {
	const json = typeof given === 'string' ? given : JSON.stringify(given);
	return { id, type: 'function', function: { name, arguments: json } };
}

function handleIn(text: string): string {
	return /task_[0-9a-f]{12}/.exec(text)?.[0] ?? '';
}

describe('the tools of a loop around chat completions', () => {
	it('are function tools with the schemas of the server and legal names, and two for handles', async () => {
		const { openai } = await loop();
		const tools: ChatCompletionTool[] = openai.tools;
		expect(tools.slice(0, 2)).toEqual([
			{
				type: 'function',
				function: { name: 'build_all', description: 'Builds everything', parameters: BUILD.inputSchema },
			},
			{
				type: 'function',
				function: { name: 'noargs', description: 'noargs', parameters: { type: 'object', properties: {} } },
			},
		]);
		expect(openai.tools.map((tool) => tool.function.name).slice(2)).toEqual(['await_task', 'cancel_task']);
	});

	it('turn a long call into a handle, and its end into one message', async () => {
		const { fake, inbox, background, openai, run } = await loop();
		const said = await run(call('build_all', { target: 'app' }));
		expect(said).toMatch(/goes on in the background as task_[0-9a-f]{12}/);
		expect(fake.of('tools/call')[0]?.params).toMatchObject({
			name: 'build.all',
			arguments: { target: 'app' },
		});
		fake.get = (_n, taskId) => done('built 7 files', { taskId });
		await fake.clock.advance(2_400_000);
		const [end] = await inbox.next();
		if (!end) throw new Error('No end');
		const message: ChatCompletionMessageParam = openai.endMessage(end);
		expect(message.role).toBe('user');
		expect(message.content).toMatch(/^\[This is about a tool call of yours, and not from the user\]\n/);
		expect(message.content).toContain(handleIn(said));
		expect(message.content).toMatch(/has ended\.\nbuilt 7 files$/);
		expect(inbox.take()).toEqual([]);
		expect(background.open).toEqual([]);
	});

	it('answer a fast call with its result', async () => {
		const { fake, run } = await loop();
		fake.call = () => ({ resultType: 'complete', content: [{ type: 'text', text: 'at once' }] });
		expect(await run(call('noargs', ''), 0)).toBe('at once');
		fake.call = () => ({
			resultType: 'complete',
			content: [{ type: 'text', text: 'No such target' }],
			isError: true,
		});
		expect(await run(call('build_all', { target: 'x' }), 0)).toBe('Error: No such target');
	});

	it('tell a model what it did wrong, without a call to the server', async () => {
		const { fake, run } = await loop();
		expect(await run(call('bild', {}))).toBe(
			'Error: There is no tool "bild". There are: build_all, noargs, await_task, cancel_task.',
		);
		expect(await run(call('build_all', '{"target": "app"'))).toMatch(
			/^Error: The arguments of the tool "build_all" are not JSON \(.+\); give one JSON object\.$/,
		);
		expect(await run(call('build_all', ['app']))).toMatch(/must be one JSON object/);
		expect(await run({ id: 'c', type: 'custom', custom: { name: 'x', input: '' } })).toMatch(
			/type "custom" is none of a function/,
		);
		expect(await run(call('await_task', { handle: 'task_unknown' }))).toBe(
			'Error: There is no background call "task_unknown". None is open.',
		);
		expect(await run(call('cancel_task', {}))).toMatch(/needs the argument "handle"/);
		expect(await run(call('await_task', { handle: 'task_x', maxWaitMs: 'long' }))).toMatch(
			/maxWaitMs must be/,
		);
		expect(fake.of('tools/call')).toEqual([]);
	});

	it('give the answer of a call again where it is repeated', async () => {
		const { fake, run } = await loop();
		const first = call('build_all', { target: 'app' });
		const [said, again] = await Promise.all([run(first), run(structuredClone(first))]);
		expect(again).toBe(said);
		expect(await run(first)).toBe(said);
		expect(fake.of('tools/call')).toHaveLength(1);
		// Other arguments are another call, whatever the provider calls it.
		await run(call('build_all', { target: 'docs' }, first.id));
		await run(call('build_all', { target: 'docs' }, ''));
		await run(call('build_all', { target: 'docs' }, ''));
		expect(fake.of('tools/call')).toHaveLength(4);
	});

	it('wait for a call on demand, and tell its result once', async () => {
		const { fake, inbox, run } = await loop();
		const handle = handleIn(await run(call('build_all', { target: 'app' })));
		expect(await run(call('await_task', { handle, maxWaitMs: 5_000 }), 5_000)).toMatch(
			/is still working: Compiling/,
		);
		fake.get = (_n, taskId) => done('built', { taskId });
		expect(await run(call('await_task', { handle }), 10_000)).toMatch(/has ended\.\nbuilt$/);
		expect(inbox.take()).toEqual([]);
		expect(await run(call('await_task', { handle }))).toMatch(/has ended\.\nbuilt$/);
		expect(await run(call('cancel_task', { handle }))).toMatch(/has ended already/);
	});

	it('say that a call waits for an answer, which the model cannot give', async () => {
		const fake = new FakeServer();
		const clients = [await fake.taskClient({ onInput: () => new Promise(() => {}) })];
		const { run } = await loop({ fake, clients });
		fake.get = (_n, taskId) =>
			task({ taskId, status: 'input_required', inputRequests: { ok: form('Publish?') } });
		const handle = handleIn(await run(call('build_all', { target: 'app' })));
		expect(await run(call('await_task', { handle, maxWaitMs: 5_000 }), 5_000)).toMatch(
			/is waiting for an answer to a question, which the host is asked/,
		);
	});

	it('cancel a call on demand, also where the server is silent about it', async () => {
		const { fake, inbox, run } = await loop();
		const handle = handleIn(await run(call('build_all', { target: 'app' })));
		fake.cancel = () => {
			fake.get = (_n, taskId) => task({ taskId, status: 'cancelled' });
			return {};
		};
		expect(await run(call('cancel_task', { handle }), 5_000)).toMatch(/was cancelled/);
		expect(inbox.take()).toEqual([]);

		fake.get = (_n, taskId) => task({ taskId });
		const stuck = handleIn(await run(call('build_all', { target: 'docs' })));
		fake.cancel = () => DROP;
		fake.get = () => DROP;
		expect(await run(call('cancel_task', { handle: stuck }), 5_000)).toMatch(/is being cancelled/);
	});

	it('have honest words for what failed, was lost or was refused', async () => {
		const { fake, inbox, openai, run } = await loop();
		for (const target of ['failed', 'lost']) await run(call('build_all', { target }));
		fake.get = (_n, taskId) =>
			taskId === 'lost'
				? new Refusal(-32602)
				: task({ taskId, status: 'failed', error: { code: -32000, message: 'disk full' } });
		await fake.clock.advance(10_000);
		const told = inbox.take().map((end) => openai.endMessage(end).content);
		expect(told).toEqual([
			expect.stringMatching(/failed: .*disk full/),
			expect.stringMatching(/was lost; its outcome is unknown, so check before calling it again/),
		]);
		fake.call = () => new Refusal(-32602, 'target must be a string');
		expect(await run(call('build_all', { target: 1 }))).toMatch(
			/^Error: .*failed: .*target must be a string/,
		);
		fake.call = () => DROP;
		expect(await run(call('build_all', { target: 'x' }))).toMatch(
			/^Error: .*was lost: .*so check before calling it again/,
		);
	});

	it('show images in the message of an end, and name them where they cannot be shown', async () => {
		const { fake, inbox, openai, agentTools, run } = await loop();
		const content = [
			{ type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
			{ type: 'image', data: 'aGVsbG8=', mimeType: 'image/tiff' },
		];
		await run(call('build_all', { target: 'app' }));
		fake.get = (_n, taskId) => task({ taskId, status: 'completed', result: { content } });
		await fake.clock.advance(5_000);
		const [end] = inbox.take();
		if (!end) throw new Error('No end');
		const message: ChatCompletionMessageParam = openai.endMessage(end);
		expect(message.content).toMatchObject([
			{ type: 'text' },
			{ type: 'text', text: expect.stringContaining('has ended') as string },
			{ type: 'image_url', image_url: { url: 'data:image/png;base64,aGVsbG8=' } },
			{ type: 'text', text: '[A file of type image/tiff, 5 bytes, which cannot be shown here]' },
		]);
		const blind = new OpenAiTools(agentTools, { images: false });
		expect(blind.endMessage(end).content).toContain('[A file of type image/png, 5 bytes');
		fake.call = () => ({ resultType: 'complete', content });
		expect(await run(call('noargs', {}))).toContain('[A file of type image/png, 5 bytes');
	});

	it('cut what is too long', async () => {
		const { fake, run } = await loop({ maxTextLength: 10 });
		fake.call = () => ({ resultType: 'complete', content: [{ type: 'text', text: '😀'.repeat(2_000_000) }] });
		expect(await run(call('noargs', {}))).toBe(
			`${'😀'.repeat(5)}\n[Cut: the text has 4000000 characters, and these are the first 10]`,
		);
	});

	it('stop the task of an aborted call, or leave it, by policy', async () => {
		for (const onAbort of ['cancel', 'detach'] as const) {
			const { fake, background, openai, run } = await loop({ onAbort });
			const stop = new AbortController();
			const aborted = call('build_all', { target: 'app' });
			const running = openai.run(aborted, { signal: stop.signal });
			running.catch(() => {});
			await fake.clock.advance(500);
			stop.abort(new Error('Interrupted'));
			await fake.clock.advance(1_000);
			await expect(running).rejects.toThrow('Interrupted');
			expect(fake.of('tasks/cancel')).toHaveLength(onAbort === 'cancel' ? 1 : 0);
			expect(background.open).toHaveLength(onAbort === 'cancel' ? 1 : 0);
			// What was aborted has no answer, so it may be called again.
			expect(await run(aborted)).toMatch(/goes on in the background/);
			expect(fake.of('tools/call')).toHaveLength(2);
		}
	});

	it('keep a call that was taken to the background, whatever its signal does later', async () => {
		const { fake, inbox, openai } = await loop();
		let answer: (value: unknown) => void = () => {};
		fake.call = () => new Promise((resolve) => (answer = resolve));
		const stop = new AbortController();
		const running = openai.run(call('noargs', {}), { signal: stop.signal });
		await fake.clock.advance(1_100);
		expect((await running).content).toMatch(/goes on in the background/);
		stop.abort();
		answer({ resultType: 'complete', content: [{ type: 'text', text: 'at last' }] });
		await fake.clock.advance(0);
		expect(inbox.take()).toMatchObject([{ status: 'completed' }]);
	});

	it('give the waiting up at a signal, and then tell the end by an event', async () => {
		const { fake, inbox, openai, run } = await loop();
		const handle = handleIn(await run(call('build_all', { target: 'app' })));
		const stop = new AbortController();
		const waiting = openai.run(call('await_task', { handle }), { signal: stop.signal });
		waiting.catch(() => {});
		await fake.clock.advance(5_000);
		stop.abort(new Error('Interrupted'));
		await expect(waiting).rejects.toThrow('Interrupted');
		fake.get = (_n, taskId) => done('built', { taskId });
		await fake.clock.advance(5_000);
		expect(inbox.take()).toMatchObject([{ handle, awaited: false }]);
	});

	it('refuse further calls of a closed manager aloud, for the host', async () => {
		const { background, openai } = await loop();
		await background.close();
		await expect(openai.run(call('noargs', {}))).rejects.toMatchObject({ code: 'CLOSED' });
	});

	it('say that the limit of open calls is reached', async () => {
		const fake = new FakeServer();
		const background = new BackgroundTasks({ onEnd: () => {}, clock: fake.clock, maxOpen: 1 });
		const { run } = await loop({ fake, background });
		await run(call('build_all', { target: 'app' }));
		expect(await run(call('build_all', { target: 'docs' }))).toMatch(
			/^Error: The tool "build_all" was not called: 1 calls are open/,
		);
	});

	it('wait as long as it takes where there is no manager, and have no tools for handles', async () => {
		const fake = new FakeServer();
		fake.tools = [BUILD];
		fake.call = () => ({ resultType: 'task', ...task() });
		fake.get = (n) => (n < 20 ? task() : done('built'));
		const agentTools = await AgentTools.list({ clients: [await fake.taskClient()] });
		const openai = new OpenAiTools(agentTools);
		expect(openai.tools).toHaveLength(1);
		const running = openai.run(call('build_all', { target: 'app' }));
		await fake.clock.advance(2_400_000);
		expect((await running).content).toBe('built');
		fake.call = () => SILENCE;
		const stop = new AbortController();
		const silent = openai.run(call('build_all', { target: 'docs' }), { signal: stop.signal });
		silent.catch(() => {});
		await fake.clock.advance(1_000);
		stop.abort(new Error('Interrupted'));
		await expect(silent).rejects.toThrow('Interrupted');
	});
});

describe('a loop after a crash', () => {
	it('joins the task of a call whose answer was not saved, where it names its conversation', async () => {
		const fake = new FakeServer();
		const journal = memoryJournal();
		const toolCall = call('build_all', { target: 'app' });
		const connect = async (): Promise<TaskClient> => fake.taskClient({ journal });
		const before = await connect();
		const first = await loop({ fake, clients: [before], conversation: 'c1' });
		const said = await first.run(toolCall);
		before.close();

		const client = await connect();
		const second = await loop({ fake, clients: [client], conversation: 'c1' });
		expect(await second.background.resumeAll(client)).toEqual([handleIn(said)]);
		expect(await second.run(toolCall)).toBe(said);
		const [one, two] = fake.of('tools/call').map(({ params }) => Object(params['_meta']));
		expect(one['holdfast/idempotencyKey']).toMatch(/^[0-9a-f]{64}$/);
		expect(two['holdfast/idempotencyKey']).toBe(one['holdfast/idempotencyKey']);
		expect(second.background.open).toHaveLength(1);
		fake.get = (_n, taskId) => done('built', { taskId });
		await fake.clock.advance(5_000);
		expect(second.inbox.take()).toHaveLength(1);
	});

	it('is told again of an end that it had not acknowledged, and not of one that it had', async () => {
		const fake = new FakeServer();
		const journal = memoryJournal();
		const before = await fake.taskClient({ journal });
		const first = await loop({ fake, clients: [before] });
		const handles = [];
		for (const target of ['a', 'b']) handles.push(handleIn(await first.run(call('build_all', { target }))));
		fake.get = (_n, taskId) => (taskId === 'a' ? done('a', { taskId }) : task({ taskId }));
		await fake.clock.advance(5_000);
		expect(first.inbox.take()).toHaveLength(1);
		first.inbox.acknowledge();
		fake.get = (_n, taskId) => done('b', { taskId });
		await fake.clock.advance(5_000);
		expect(first.inbox.take()).toHaveLength(1);
		before.close();

		const client = await fake.taskClient({ journal });
		const second = await loop({ fake, clients: [client] });
		expect(await second.background.resumeAll(client)).toEqual([]);
		expect(await second.background.resumeAll(client, { unacknowledged: true })).toEqual([handles[1]]);
		await fake.clock.advance(0);
		expect(second.inbox.take()).toMatchObject([{ handle: handles[1], status: 'completed' }]);
		expect(await second.background.resumeAll(client, { unacknowledged: true })).toEqual([]);
		second.inbox.acknowledge();
		await fake.clock.advance(0);
		expect(await client.openTasks()).toEqual([]);
	});
});

describe('tools of several servers', () => {
	it('go to the server that has them', async () => {
		const [git, web] = [new FakeServer(), new FakeServer()];
		const clients = [await git.taskClient({ server: 'git' }), await web.taskClient({ server: 'web' })];
		for (const fake of [git, web]) {
			fake.tools = [{ name: 'search', inputSchema: { type: 'object' } }];
			fake.call = () => ({ resultType: 'complete', content: [] });
		}
		const openai = new OpenAiTools(await AgentTools.list({ clients }));
		expect(openai.tools.map((tool) => tool.function.name)).toEqual(['git_search', 'web_search']);
		await openai.run(call('web_search', {}));
		expect(git.of('tools/call')).toEqual([]);
		expect(web.of('tools/call')).toMatchObject([{ params: { name: 'search' } }]);
	});

	it('need servers that can be told apart, and limits that make sense', async () => {
		const fake = new FakeServer();
		const client = await fake.taskClient();
		await expect(AgentTools.list({ clients: [client, client] })).rejects.toMatchObject({
			code: 'INVALID_OPTION',
		});
		for (const limit of [{ maxTextLength: 0 }, { maxAwaitMs: 1.5 }])
			await expect(AgentTools.list({ clients: [client], ...limit })).rejects.toMatchObject({
				code: 'INVALID_OPTION',
			});
	});

	it('are listed anew on demand', async () => {
		const { fake, agentTools, run } = await loop();
		fake.tools = [{ name: 'fresh', inputSchema: { type: 'object' } }];
		fake.call = () => ({ resultType: 'complete', content: [{ type: 'text', text: 'new' }] });
		await agentTools.refresh();
		expect(agentTools.tools.map(({ name }) => name)).toEqual(['fresh', 'await_task', 'cancel_task']);
		expect(await run(call('fresh', {}))).toBe('new');
	});
});
