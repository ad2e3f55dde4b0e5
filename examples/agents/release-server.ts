/** The server that the agents talk to: one slow tool that asks a question, and one quick tool. */
import { McpServer } from '@modelcontextprotocol/server';
import type { TaskServerFactory } from 'holdfast/server';
import * as z from 'zod';

/** How long building takes, in milliseconds; real ones take 40 minutes, and cost an agent no more turns. */
const BUILD_MS = 2_000;
const PARTS = 20;

/** Makes the servers of one process. `builds` gets the version of every build that ran. */
export function releaseServer(builds: string[]): TaskServerFactory {
	return (tasks) => {
		const server = new McpServer({ name: 'releases', version: '1.0.0' });
		server.registerTool(
			'release.build',
			{
				description: 'Builds a release and publishes it if somebody agrees. Takes long.',
				inputSchema: z.object({ version: z.string() }),
			},
			tasks.handler({ syncWindowMs: 0 }, async ({ version }, task) => {
				const size = await task.step('build', async () => {
					for (let part = 1; part <= PARTS; part++) {
						await new Promise((resolve) => setTimeout(resolve, BUILD_MS / PARTS));
						task.progress({ progress: part, total: PARTS, message: `Built part ${part} of ${PARTS}` });
					}
					builds.push(version);
					return 7;
				});
				const answer = await task.requireInput('publish', {
					mode: 'form',
					message: `Publish ${version}?`,
					requestedSchema: { type: 'object', properties: {} },
				});
				const said = answer.action === 'accept' ? 'published' : 'kept back';
				return { content: [{ type: 'text', text: `${version} has ${size} MB and was ${said}` }] };
			}),
		);
		server.registerTool(
			'list_changes',
			{ description: 'Lists what changed in a version', inputSchema: z.object({ version: z.string() }) },
			({ version }) => ({ content: [{ type: 'text', text: `${version}: faster, smaller` }] }),
		);
		return server;
	};
}
