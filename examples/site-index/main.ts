/** `node examples/site-index/main.ts --db FILE [--stdio | --port N] [--allow-private]` */
import { parseArgs } from 'node:util';
import { createTaskServer, listen, serveTasksOverStdio } from 'holdfast/server';
import { sqlite } from 'holdfast/sqlite';
import { pino } from 'pino';
import { siteIndexServer } from './server.ts';

const { values } = parseArgs({
	options: {
		db: { type: 'string' },
		stdio: { type: 'boolean' },
		port: { type: 'string', default: '3000' },
		'allow-private': { type: 'boolean', default: false },
	},
});
if (values.db === undefined) {
	console.error('Usage: node examples/site-index/main.ts --db FILE [--stdio | --port N] [--allow-private]');
	process.exit(2);
}
const tasks = createTaskServer({
	backend: sqlite(values.db),
	...siteIndexServer({ file: `${values.db}.sites`, allowPrivate: values['allow-private'] }),
	// On stderr: with --stdio, stdout belongs to the protocol.
	log: pino(pino.destination(2)),
});
if (values.stdio) {
	const serving = serveTasksOverStdio(tasks);
	closeOnSignal(serving);
	await serving.closed;
	await serving.close();
} else {
	const listening = await listen(tasks, { port: Number(values.port) });
	closeOnSignal(listening);
	console.log(`Site index at ${listening.url}`);
}

function closeOnSignal(serving: { close(): Promise<void> }): void {
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => void serving.close());
}
