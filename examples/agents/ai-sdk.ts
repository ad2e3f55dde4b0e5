/**
 * `node examples/agents/ai-sdk.ts`: an agent with the AI SDK builds a release twice, first waiting for it and then
 * in the background. Checks itself; the exit code says whether all was right.
 */
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { generateText, isStepCount, jsonSchema, type ModelMessage } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import {
	AgentTools,
	aiSdkEndMessage,
	aiSdkTools,
	BackgroundTasks,
	EndInbox,
	TaskClient,
} from 'holdfast/client';
import { memory } from 'holdfast/memory';
import { createTaskServer, listen } from 'holdfast/server';
import { releaseServer } from './release-server.ts';
import type { Reply } from './scripted-model.ts';

const builds: string[] = [];
const serving = await listen(createTaskServer({ backend: memory(), server: releaseServer(builds) }), {
	port: 0,
});
const requests: string[] = [];
const client = new Client(
	{ name: 'ai-sdk-agent', version: '1.0.0' },
	{ versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
);
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
await client.connect(
	new StreamableHTTPClientTransport(new URL(serving.url), {
		fetch: (url, init) => {
			requests.push(new Headers(init?.headers).get('mcp-method') ?? '');
			return fetch(url, init);
		},
	}),
);
const tasks = new TaskClient(client);

try {
	await waiting();
	await inTheBackground();
	console.log('ok');
} finally {
	tasks.close();
	await client.close();
	await serving.close();
}

/** The call takes as long as it takes: the model has one turn for it and one for its result. */
async function waiting(): Promise<void> {
	const agentTools = await AgentTools.list({ clients: [tasks] });
	const model = scripted([{ tool: 'release_build', arguments: { version: '1.0.0' } }, 'It is out.']);
	const { text, steps } = await generateText({
		...{ model, tools: aiSdkTools(agentTools, jsonSchema), prompt: 'Release 1.0.0' },
		stopWhen: isStepCount(10),
	});
	assert.equal(text, 'It is out.');
	const [result] = steps[0]?.toolResults ?? [];
	assert.deepEqual(result?.output, {
		parts: [{ type: 'text', text: '1.0.0 has 7 MB and was published' }],
		isError: false,
	});
	assert.equal(model.doGenerateCalls.length, 2);
	assert.deepEqual(builds, ['1.0.0']);
	const about = requests.filter((method) => /^(tasks|subscriptions)\//.test(method));
	assert(about.includes('tasks/update'), 'The question was answered');
	console.log(
		`Waiting: ${model.doGenerateCalls.length} model turns, ${about.length} requests about the task.`,
	);
}

/** The model gets a handle at once and goes on; the end comes as a message. */
async function inTheBackground(): Promise<void> {
	const inbox = new EndInbox();
	const background = new BackgroundTasks({ onEnd: inbox.onEnd, inlineWindowMs: 200 });
	const agentTools = await AgentTools.list({ clients: [tasks], background });
	const tools = aiSdkTools(agentTools, jsonSchema);
	const model = scripted([
		{ tool: 'release_build', arguments: { version: '1.1.0' } },
		{ tool: 'list_changes', arguments: { version: '1.1.0' } },
		'I will tell you.',
		'It is out.',
	]);
	const messages: ModelMessage[] = [{ role: 'user', content: 'Release 1.1.0' }];
	for (;;) {
		const { responseMessages } = await generateText({ model, tools, messages, stopWhen: isStepCount(10) });
		messages.push(...responseMessages);
		if (background.open.length === 0 && inbox.size === 0) break;
		messages.push(...(await inbox.next()).map((end) => aiSdkEndMessage(agentTools, end)));
		inbox.acknowledge();
	}
	assert.match(JSON.stringify(messages[2]), /goes on in the background as task_/);
	assert.match(JSON.stringify(messages.at(-2)), /1\.1\.0 has 7 MB and was published/);
	assert.match(JSON.stringify(messages.at(-1)), /It is out\./);
	assert.equal(model.doGenerateCalls.length, 4);
	assert.deepEqual(builds, ['1.0.0', '1.1.0']);
	await background.close();
	console.log(`In the background: ${model.doGenerateCalls.length} model turns, one of them other work.`);
}

/** The SDK's own scripted model. */
function scripted(script: readonly Reply[]): MockLanguageModelV4 {
	return new MockLanguageModelV4({
		doGenerate: script.map((reply, turn) => ({
			content: [
				typeof reply === 'string'
					? { type: 'text', text: reply }
					: {
							...{ type: 'tool-call', toolCallId: `call_${turn}`, toolName: reply.tool },
							input: JSON.stringify(reply.arguments),
						},
			],
			finishReason: { unified: typeof reply === 'string' ? 'stop' : 'tool-calls', raw: undefined },
			usage: {
				inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
				outputTokens: { total: 0, text: 0, reasoning: 0 },
			},
			warnings: [],
		})),
	});
}
