/**
 * The server under test. `node test/conformance/server.ts [PORT]` prints its URL once it listens; with `--stdio` it
 * serves its parent.
 */
import { createTaskServer, listen, serveTasksOverStdio } from '../../src/server/index.ts';
import { buildServer, fixtureHost } from './everything.ts';
import { registerTaskTools } from './task-tools.ts';
import { closeBackends, newBackend } from '../support/backends.ts';

const server = createTaskServer({
	backend: newBackend(),
	server: (tasks) => {
		const fixture = buildServer();
		registerTaskTools(fixture, tasks);
		return fixture;
	},
});

if (process.argv[2] === '--stdio') {
	await serveTasksOverStdio(server).closed;
	await closeBackends();
} else {
	const listening = await listen(server, {
		port: Number(process.argv[2] ?? process.env['PORT'] ?? 0),
		bus: fixtureHost.bus,
	});
	console.log(listening.url);
	for (const signal of ['SIGINT', 'SIGTERM'] as const)
		process.once(signal, () => void listening.close(0).then(closeBackends));
}
