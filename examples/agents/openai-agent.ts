/**
 * An agent around chat completions: `openai-agent.ts <mcp url> <model url> <folder> <task>`. Its conversation and its
 * journal lie in the folder. Killed at any point and started again, it goes on where it was.
 */
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { AgentTools, BackgroundTasks, EndInbox, fileJournal, OpenAiTools, TaskClient } from 'holdfast/client';
import OpenAI from 'openai';
import { Conversation } from './conversation.ts';

const [mcpUrl = '', modelUrl = '', folder = '', task = ''] = process.argv.slice(2);

const client = new Client(
	{ name: 'openai-agent', version: '1.0.0' },
	{ versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
);
// Questions go to the person at the host, not to the model; this person always agrees.
client.setRequestHandler('elicitation/create', ({ params }) => {
	console.log(`asked: ${params.message}`);
	return { action: 'accept', content: {} };
});
await client.connect(new StreamableHTTPClientTransport(new URL(mcpUrl)));

const tasks = new TaskClient(client, { journal: fileJournal(join(folder, 'journal.db')) });
const inbox = new EndInbox();
const background = new BackgroundTasks({ onEnd: inbox.onEnd, inlineWindowMs: 200 });
const agentTools = await AgentTools.list({ clients: [tasks], background, conversation: folder });
const tools = new OpenAiTools(agentTools);
const model = new OpenAI({ baseURL: modelUrl, apiKey: 'none', maxRetries: 0 });

const conversation = new Conversation(join(folder, 'conversation.json'));
if (conversation.messages.length === 0) conversation.add([{ role: 'user', content: task }]);
for (const handle of await background.resumeAll(tasks, { unacknowledged: true }))
	console.log(`resumed: ${handle}`);

for (;;) {
	// Also those of an earlier process, which died before it had the answers.
	for (const call of conversation.unanswered) conversation.add([await tools.run(call)]);
	const modelIsDone = conversation.messages.at(-1)?.role === 'assistant';
	if (modelIsDone && background.open.length === 0 && inbox.size === 0) break;
	if (modelIsDone) console.log(`waiting: ${background.open.map(({ handle }) => handle).join(', ')}`);
	const ends = modelIsDone ? await inbox.next() : inbox.take();
	conversation.addNew(ends.map((end) => tools.endMessage(end)));
	inbox.acknowledge();
	const completion = await model.chat.completions.create({
		...{ model: 'scripted', messages: [...conversation.messages], tools: tools.tools },
	});
	conversation.add(completion.choices.map(({ message }) => message));
}

await background.close('detach');
tasks.close();
await client.close();
