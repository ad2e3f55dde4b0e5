/**
 * A host that is killed: `crash-host.ts <url> <folder> <tasks>`. It comes back to every task of its journal, starts
 * those that it has not started, and writes down what happens, one line each: `starting`, `handle`, `started`, `asked`,
 * `answered`, `result`.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Execution } from '../../src/client/execution.ts';
import { fileJournal } from '../../src/client/journal/file-journal.ts';
import { TaskClient } from '../../src/client/task-client.ts';

const [url = '', folder = '', count = '0'] = process.argv.slice(2);
const logFile = join(folder, 'log');
const known = existsSync(logFile) ? readFileSync(logFile, 'utf8').split('\n') : [];
const log = (line: string): void => appendFileSync(logFile, `${line}\n`);

const client = new Client(
	{ name: 'crash-host', version: '1' },
	{ versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: {} } },
);
client.setRequestHandler('elicitation/create', async ({ params }) => {
	log(`asked ${Date.now()} ${params.message}`);
	await new Promise((resolve) => setTimeout(resolve, 30));
	log(`answered ${params.message}`);
	return { action: 'accept', content: { ok: true } };
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const tasks = new TaskClient(client, { journal: fileJournal(join(folder, 'journal.db')) });

/** The application takes the result and says so, in one step of its own; only then is it acknowledged. */
async function take(execution: Execution): Promise<void> {
	const result = await execution.result();
	const [content] = result.content;
	const line = `result ${content?.type === 'text' ? content.text : ''}`;
	// A result that was taken just before the crash is read a second time, and recognised.
	if (!known.includes(line)) log(line);
	await execution.acknowledge();
}

const open = await tasks.openTasks();
const running = await Promise.all(open.map(({ reference }) => tasks.resume(reference)));
const work = running.map(take);
for (let index = 0; index < Number(count); index++) {
	if (known.includes(`started ${index}`)) continue;
	log(`starting ${index}`);
	const execution = await tasks.startTool({ name: 'work', arguments: { index } });
	log(`handle ${index} ${execution.state?.taskId}`);
	log(`started ${index}`);
	work.push(take(execution));
}
await Promise.all(work);
log('finished');
process.exit(0);
