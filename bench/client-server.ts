/** A server whose tasks never end, in a process of its own. Forked by client-many.ts. */
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { memory } from '../src/backend/memory/index.ts';
import { createTaskServer, listen } from '../src/server/index.ts';
import { LIMITS, LOG } from './fixture.ts';

const DAY_MS = 86_400_000;
/** The longest interval that a tool gives by default. */
const pollIntervalMs = Number(process.argv[2]);

const server = createTaskServer({
	...{ backend: memory(), limits: LIMITS, log: LOG },
	server: (tasks) => {
		const mcp = new McpServer({ name: 'bench', version: '1.0.0' });
		const bounds = { minPollIntervalMs: pollIntervalMs, maxPollIntervalMs: pollIntervalMs };
		const work = tasks.handler({ syncWindowMs: 0, parkAfterMs: 0, ...bounds }, async (_args, task) => {
			await task.sleep('work', DAY_MS);
			return { content: [] };
		});
		mcp.registerTool('work', { inputSchema: z.looseObject({}) }, work);
		return mcp;
	},
});
const { url } = await listen(server, { port: 0 });
process.send?.(url);
process.on('disconnect', () => process.exit());
