/** `node examples/pipeline/main.ts --db FILE [--stdio | --port N]` */
import { parseArgs } from 'node:util';
import { createTaskServer, listen, serveTasksOverStdio } from 'holdfast/server';
import { sqlite } from 'holdfast/sqlite';
import { pino } from 'pino';
import { rootsFrom } from './checkout.ts';
import { pipelineServer } from './server.ts';

const { values } = parseArgs({
	options: { db: { type: 'string' }, stdio: { type: 'boolean' }, port: { type: 'string', default: '3000' } },
});
if (values.db === undefined) {
	console.error('Usage: node examples/pipeline/main.ts --db FILE [--stdio | --port N]');
	process.exit(2);
}
const tasks = createTaskServer({
	backend: sqlite(values.db),
	server: pipelineServer({
		logsFolder: `${values.db}.logs`,
		roots: rootsFrom(process.env['PIPELINE_ROOTS']),
	}),
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
	console.log(`Pipelines at ${listening.url}`);
}

function closeOnSignal(serving: { close(): Promise<void> }): void {
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => void serving.close());
}
