/** The task tools that the `tasks-*` scenarios call. */
import { inputRequired, type McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { TaskFailure } from '../../src/errors.ts';
import type { FormQuestion, Tasks } from '../../src/server/index.ts';
import { textResult } from './everything.ts';

const CONFIRM: FormQuestion['requestedSchema'] = {
	type: 'object',
	properties: { confirm: { type: 'boolean', title: 'Confirm' } },
};
const NAME: FormQuestion['requestedSchema'] = {
	type: 'object',
	properties: { name: { type: 'string', title: 'Name' } },
};

export function registerTaskTools(server: McpServer, tasks: Tasks): void {
	server.registerTool(
		'greet',
		{ description: 'Greets at once', inputSchema: z.object({ name: z.string() }) },
		({ name }) => textResult(`Hello, ${name}!`),
	);
	server.registerTool(
		'slow_compute',
		{
			description: 'Computes for some seconds',
			inputSchema: z.object({ seconds: z.number(), label: z.string().optional() }),
		},
		tasks.handler({ syncWindowMs: 0 }, async ({ seconds, label }, task) => {
			await task.sleep('compute', seconds * 1000);
			return textResult(`Computed ${label ?? 'it'} in ${seconds} s`);
		}),
	);
	server.registerTool(
		'failing_job',
		{ description: 'Reports a tool error after a second', inputSchema: z.object({}) },
		tasks.handler({ support: 'required', syncWindowMs: 0 }, async (_args, task) => {
			await task.sleep('work', 1000);
			throw new Error('The job failed');
		}),
	);
	server.registerTool(
		'protocol_error_job',
		{ description: 'Ends with a JSON-RPC error', inputSchema: z.object({}) },
		tasks.handler({ syncWindowMs: 0 }, () => {
			throw new TaskFailure(-32603, 'The job broke the protocol');
		}),
	);
	server.registerTool(
		'confirm_delete',
		{ description: 'Asks before it deletes', inputSchema: z.object({ filename: z.string() }) },
		tasks.handler({}, async ({ filename }, task) => {
			const message = `Delete ${filename}?`;
			const answer = await task.requireInput('confirm', { mode: 'form', message, requestedSchema: CONFIRM });
			return textResult(answer.content?.['confirm'] === true ? `Deleted ${filename}` : `Kept ${filename}`);
		}),
	);
	server.registerTool(
		'multi_input',
		{ description: 'Asks two things at once', inputSchema: z.object({}) },
		tasks.handler({}, async (_args, task) => {
			const answers = await Promise.all([
				task.requireInput('name', { mode: 'form', message: 'Your name?', requestedSchema: NAME }),
				task.requireInput('confirm', { mode: 'form', message: 'Go on?', requestedSchema: CONFIRM }),
			]);
			return textResult(JSON.stringify(answers));
		}),
	);
	server.registerTool(
		'test_tool_with_task',
		{ description: 'Asks for a name, then becomes a task', inputSchema: z.object({}) },
		tasks.handler(
			{
				syncWindowMs: 0,
				prepare: (_args, ctx) => {
					const answer = z
						.object({ user_name: z.object({ content: z.object({ name: z.string() }) }) })
						.safeParse(ctx.mcpReq.inputResponses);
					if (answer.success) return answer.data.user_name.content.name;
					const ask = inputRequired.elicit({
						mode: 'form',
						message: 'Your name?',
						requestedSchema: z.object({ name: z.string() }),
					});
					return inputRequired({ inputRequests: { user_name: ask } });
				},
			},
			(_args, task) => textResult(`Hello, ${JSON.stringify(task.prepared)}!`),
		),
	);
}
