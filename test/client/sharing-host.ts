/**
 * A host that shares its journal with others: `sharing-host.ts URL JOURNAL NAME hold|answer`. Starts the tool `ask` where
 * the journal has no task, and comes back to its task otherwise; prints what happens.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { fileJournal } from '../../src/client/journal/file-journal.ts';
import { TaskClient } from '../../src/client/task-client.ts';

const [url = '', path = '', name = '', how] = process.argv.slice(2);
const journal = fileJournal(path);
let saidSo = false;
const claim = journal.claim.bind(journal);
journal.claim = async (...args) => {
	const holder = await claim(...args);
	if (holder !== args[2].owner && !saidSo) console.log('claimed by another');
	saidSo ||= holder !== args[2].owner;
	return holder;
};
const client = new Client(
	{ name, version: '1' },
	{ versionNegotiation: { mode: { pin: '2026-07-28' } }, capabilities: { elicitation: { form: {} } } },
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const tasks = new TaskClient(client, {
	...{ journal, server: 'shared', listen: false },
	onInput: async () => {
		console.log('asked');
		if (how === 'hold') await new Promise(() => {});
		return { action: 'accept', content: { who: name } };
	},
});
const [resumed] = await tasks.resumeAll();
const execution = resumed ?? (await tasks.startTool({ name: 'ask', arguments: {} }));
const outcome = await execution.deliverOnce();
if (outcome) console.log(`delivered ${outcome.kind}`);
process.exit(0);
