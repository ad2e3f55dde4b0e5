/**
 * One process of a fleet: `node fleet-process.ts ROLE STORE-JSON EFFECTS-FILE`. A request server prints its URL, a
 * worker prints `working`.
 */
import { McpServer } from '@modelcontextprotocol/server';
import { createTaskServer, listen } from '../../src/server/index.ts';
import { backendAt, type StoreAddress } from './stores.ts';
import { registerTools } from './tools.ts';

const [role = '', store = '', effectsFile = ''] = process.argv.slice(2);

const server = createTaskServer({
	backend: backendAt(JSON.parse(store) as StoreAddress),
	concurrency: role === 'requests' ? 0 : 16,
	server: (tasks) => {
		const mcp = new McpServer({ name: 'fleet', version: '1' });
		registerTools(mcp, tasks, effectsFile);
		return mcp;
	},
	log: {
		info: () => {},
		warn: (facts, message) => process.stderr.write(`warn: ${message} ${JSON.stringify(facts)}\n`),
		error: (facts, message) => process.stderr.write(`error: ${message} ${JSON.stringify(facts)}\n`),
	},
});

if (role === 'requests') {
	const { url } = await listen(server, { port: 0, maxListenStreams: 10_000 });
	process.stdout.write(`${url}\n`);
} else {
	await server.start();
	process.stdout.write('working\n');
	// Nothing of holdfast keeps a process alive that has nothing to do.
	setInterval(() => {}, 60_000);
}
