/**
 * The process that is killed: a task server over HTTP on SQLite. `node victim.ts DB-FILE EFFECTS-FILE [TIMING-JSON]`.
 * Loads, then waits for a line on stdin before it touches the database, and prints its URL when it listens. See
 * tools.ts for what it leaves in the effects file.
 */
import { once } from 'node:events';
import { McpServer } from '@modelcontextprotocol/server';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { createTaskServer, type EngineTiming, listen } from '../../src/server/index.ts';
import { registerTools } from './tools.ts';

const [dbFile = '', effectsFile = '', timing = '{}'] = process.argv.slice(2);

const server = createTaskServer({
	backend: sqlite({ file: dbFile }),
	server: (tasks) => {
		const mcp = new McpServer({ name: 'victim', version: '1' });
		registerTools(mcp, tasks, effectsFile);
		return mcp;
	},
	timing: JSON.parse(timing) as Partial<EngineTiming>,
	log: {
		info: () => {},
		warn: (facts, message) => process.stderr.write(`warn: ${message} ${JSON.stringify(facts)}\n`),
		error: (facts, message) => process.stderr.write(`error: ${message} ${JSON.stringify(facts)}\n`),
	},
});

// An orderly exit is only for filling the compile cache.
process.once('SIGTERM', () => process.exit(0));
process.stdout.write('loaded\n');
await once(process.stdin, 'data');
const { url } = await listen(server, { port: 0 });
process.stdout.write(`${url}\n`);
