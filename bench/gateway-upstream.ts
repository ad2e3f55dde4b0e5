/** The server behind every gateway of the comparison: one tool on the official SDK, over stdio. */
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(() => {
	const server = new McpServer({ name: 'behind', version: '1' });
	server.registerTool('echo', { inputSchema: z.object({ words: z.string() }) }, ({ words }) => ({
		content: [{ type: 'text', text: words }],
	}));
	return server;
});
