/** The server under test. `node test/conformance/server.ts [PORT]`; prints its URL once it listens. */
import { createTaskServer, listen } from '../../src/server/index.ts';
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

const listening = await listen(server, {
	port: Number(process.argv[2] ?? process.env['PORT'] ?? 0),
	bus: fixtureHost.bus,
});
console.log(listening.url);

for (const signal of ['SIGINT', 'SIGTERM'] as const)
	process.once(signal, () => void listening.close(0).then(closeBackends));
