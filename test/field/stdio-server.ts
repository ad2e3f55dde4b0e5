/** A task server on this process's stdin and stdout: `node stdio-server.ts DB-FILE`. */
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { createTaskServer, serveTasksOverStdio } from '../../src/server/index.ts';

const server = createTaskServer({
	backend: sqlite(process.argv[2] ?? ''),
	server: (tasks) => {
		const mcp = new McpServer({ name: 'stdio', version: '1' });
		mcp.registerTool(
			'ask',
			{ inputSchema: z.looseObject({}) },
			tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
				const requestedSchema = { type: 'object', properties: {} };
				await task.requireInput('go', { mode: 'form', message: 'Go?', requestedSchema });
				return { content: [{ type: 'text', text: 'gone' }] };
			}),
		);
		return mcp;
	},
});

const serving = serveTasksOverStdio(server);
await serving.closed;
await server.stop(0);
