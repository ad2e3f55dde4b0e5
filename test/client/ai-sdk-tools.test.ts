/** The adapter for the AI SDK, run by the SDK itself with its own scripted model. */
import { generateText, isStepCount, jsonSchema, type ModelMessage, streamText, type ToolSet } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { describe, expect, it } from 'vitest';
import { AgentTools, type AgentToolsOptions } from '../../src/client/agent-tools.ts';
import { aiSdkEndMessage, aiSdkTools } from '../../src/client/ai-sdk-tools.ts';
import { BackgroundTasks } from '../../src/client/background-tasks.ts';
import { EndInbox } from '../../src/client/end-inbox.ts';
import { done, FakeServer, task } from './fake-server.ts';

type Turn = Awaited<ReturnType<MockLanguageModelV4['doGenerate']>>;
type Content = Turn['content'][number];

const USAGE = {
	inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
	outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that says these things, one a turn. */
function scripted(...turns: readonly (string | { readonly tool: string; readonly input: string })[]) {
	const content = turns.map(
		(turn, index): Content =>
			typeof turn === 'string'
				? { type: 'text', text: turn }
				: { type: 'tool-call', toolCallId: `call_${index}`, toolName: turn.tool, input: turn.input },
	);
	return new MockLanguageModelV4({
		doGenerate: content.map((part) => ({
			content: [part],
			finishReason: { unified: part.type === 'text' ? 'stop' : 'tool-calls', raw: undefined },
			usage: USAGE,
			warnings: [],
		})),
	});
}

/** What the model was given as answers of tools, over all turns. */
function outputsOf(model: MockLanguageModelV4): unknown[] {
	const prompt = model.doGenerateCalls.at(-1)?.prompt ?? [];
	return prompt.flatMap((message) =>
		message.role === 'tool'
			? message.content.flatMap((part) => (part.type === 'tool-result' ? [part.output] : []))
			: [],
	);
}

/** The tools of a fake that builds, with or without a manager. */
async function agent(options: Partial<AgentToolsOptions> & { readonly withBackground?: boolean } = {}) {
	const { withBackground = false, ...rest } = options;
	const fake = new FakeServer();
	fake.tools = [
		{
			name: 'build',
			description: 'Builds',
			inputSchema: {
				type: 'object',
				properties: { flags: { type: 'object' } },
				additionalProperties: true,
			},
		},
	];
	fake.call = () => ({ resultType: 'task', ...task() });
	fake.get = () => task();
	const inbox = new EndInbox();
	const background = new BackgroundTasks({ onEnd: inbox.onEnd, clock: fake.clock });
	const client = await fake.taskClient();
	const agentTools = await AgentTools.list({
		clients: [client],
		...(withBackground && { background }),
		...rest,
	});
	// Of the SDK's own type, so that a shape that the SDK does not take fails to compile.
	const tools: ToolSet = aiSdkTools(agentTools, jsonSchema);
	return { fake, client, inbox, agentTools, tools };
}

const BUILD = { tool: 'build', input: '{"target":"app"}' };

describe('the tools for the AI SDK', () => {
	it('wait as long as a task takes: one turn for the call, one for the result', async () => {
		const { fake, tools } = await agent();
		const model = scripted(BUILD, 'It is built.');
		fake.get = (n) => (n < 100 ? task() : done('built 7 files'));
		const generating = generateText({ model, tools, prompt: 'Build it', stopWhen: isStepCount(5) });
		await fake.clock.advance(2_400_000);
		expect((await generating).text).toBe('It is built.');
		expect(outputsOf(model)).toEqual([{ type: 'text', value: 'built 7 files' }]);
		expect(model.doGenerateCalls).toHaveLength(2);
		expect(fake.of('tasks/get').length).toBeGreaterThanOrEqual(100);
	});

	it('bring the schema of the server to the model as it is', async () => {
		const { fake, tools } = await agent();
		const model = scripted('No need.');
		await generateText({ model, tools, prompt: 'Build it' });
		expect(model.doGenerateCalls[0]?.tools).toMatchObject([
			{ type: 'function', name: 'build', description: 'Builds', inputSchema: fake.tools[0]?.['inputSchema'] },
		]);
	});

	it('work in a stream too', async () => {
		const { fake, tools } = await agent();
		fake.call = () => ({ resultType: 'complete', content: [{ type: 'text', text: 'built' }] });
		const finish = { type: 'finish', usage: USAGE } as const;
		const model = new MockLanguageModelV4({
			doStream: [
				{
					stream: simulateReadableStream({
						chunks: [
							{ type: 'tool-call', toolCallId: 'c1', toolName: 'build', input: '{}' },
							{ ...finish, finishReason: { unified: 'tool-calls', raw: undefined } },
						],
					}),
				},
				{
					stream: simulateReadableStream({
						chunks: [
							{ type: 'text-start', id: 't' },
							{ type: 'text-delta', id: 't', delta: 'Done.' },
							{ type: 'text-end', id: 't' },
							{ ...finish, finishReason: { unified: 'stop', raw: undefined } },
						],
					}),
				},
			],
		});
		const streamed = streamText({ model, tools, prompt: 'Build it', stopWhen: isStepCount(5) });
		expect(await streamed.text).toBe('Done.');
		expect(fake.of('tools/call')).toHaveLength(1);
	});

	it('turn a long call into a handle, and its end into a message of the next generation', async () => {
		const { fake, inbox, agentTools, tools } = await agent({ withBackground: true });
		expect(Object.keys(tools)).toEqual(['build', 'await_task', 'cancel_task']);
		const model = scripted(BUILD, 'It is under way.', 'It is built.');
		const messages: ModelMessage[] = [{ role: 'user', content: 'Build it' }];
		const generating = generateText({ model, tools, messages, stopWhen: isStepCount(5) });
		await fake.clock.advance(1_100);
		const first = await generating;
		expect(first.text).toBe('It is under way.');
		expect(outputsOf(model)).toMatchObject([
			{ type: 'text', value: expect.stringMatching(/goes on in the background as task_/) as string },
		]);
		fake.get = () => done('built 7 files');
		await fake.clock.advance(5_000);
		const ends = inbox.take().map((end) => aiSdkEndMessage(agentTools, end));
		messages.push(...first.responseMessages, ...ends);
		expect((await generateText({ model, tools, messages })).text).toBe('It is built.');
		expect(model.doGenerateCalls).toHaveLength(3);
		expect(model.doGenerateCalls[2]?.prompt.at(-1)).toMatchObject({
			role: 'user',
			content: [
				{ type: 'text', text: expect.stringContaining('not from the user') as string },
				{ type: 'text', text: expect.stringContaining('has ended.') as string },
				{ type: 'text', text: 'built 7 files' },
			],
		});
	});

	it('give images as files and errors as errors', async () => {
		const { fake, tools } = await agent();
		const content = [
			{ type: 'text', text: 'A chart' },
			{ type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
		];
		fake.call = () => ({ resultType: 'complete', content });
		const shown = scripted(BUILD, 'Seen.');
		await generateText({ model: shown, tools, prompt: 'Build it', stopWhen: isStepCount(5) });
		expect(outputsOf(shown)).toMatchObject([
			{
				type: 'content',
				value: [
					{ type: 'text', text: 'A chart' },
					{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGVsbG8=' } },
				],
			},
		]);
		fake.call = () => ({
			resultType: 'complete',
			content: [{ type: 'text', text: 'No such target' }],
			isError: true,
		});
		const failed = scripted({ tool: 'build', input: '{"target":"x"}' }, 'Oh.');
		// A conversation of its own, in which the ids of calls begin anew.
		const other = aiSdkTools(await AgentTools.list({ clients: [await fake.taskClient()] }), jsonSchema);
		await generateText({ model: failed, tools: other, prompt: 'Build it', stopWhen: isStepCount(5) });
		expect(outputsOf(failed)).toEqual([{ type: 'error-text', value: 'No such target' }]);
	});

	it('leave unknown tools and arguments that are not JSON to the SDK, and nothing is called', async () => {
		const { fake, tools } = await agent();
		const model = scripted(
			{ tool: 'bild', input: '{}' },
			{ tool: 'build', input: '{"target"' },
			'I give up.',
		);
		const { text } = await generateText({ model, tools, prompt: 'Build it', stopWhen: isStepCount(5) });
		expect(text).toBe('I give up.');
		expect(outputsOf(model)).toMatchObject([
			{ type: 'error-text', value: expect.stringContaining('bild') as string },
			{ type: 'error-text', value: expect.stringContaining('JSON') as string },
		]);
		expect(fake.of('tools/call')).toEqual([]);
	});

	it('end or leave the task at the abort signal, by policy', async () => {
		for (const onAbort of ['cancel', 'detach'] as const) {
			const { fake, client, tools } = await agent({ onAbort });
			const stop = new AbortController();
			const model = scripted(BUILD, 'Never said.');
			const generating = generateText({
				...{ model, tools, prompt: 'Build it', stopWhen: isStepCount(5), abortSignal: stop.signal },
			});
			generating.catch(() => {});
			await fake.clock.advance(10_000);
			stop.abort();
			await fake.clock.advance(1_000);
			await expect(generating).rejects.toMatchObject({ name: 'AbortError' });
			expect(fake.of('tasks/cancel')).toHaveLength(onAbort === 'cancel' ? 1 : 0);
			// What is left can be resumed.
			if (onAbort === 'detach') expect(await client.openTasks()).toHaveLength(1);
		}
	});
});
