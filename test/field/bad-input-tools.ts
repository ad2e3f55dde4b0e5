import { z } from 'zod';
import { type RigOptions, text } from './harness.ts';

/** The tools that bad input is sent to; `onEntry` is called by each handler that should not have been entered. */
export function badInputTools(onEntry: () => void): RigOptions['tools'] {
	return (server, tasks) => {
		const inputSchema = z.strictObject({ text: z.string(), times: z.number().int().optional() });
		server.registerTool(
			'echo',
			{ inputSchema },
			tasks.handler({ syncWindowMs: 0 }, ({ text: said }) => {
				onEntry();
				return text(said);
			}),
		);
		server.registerTool(
			'loose',
			{ inputSchema: z.looseObject({}) },
			tasks.handler({ syncWindowMs: 0 }, () => {
				onEntry();
				return text('loose');
			}),
		);
		server.registerTool(
			'ask',
			{ inputSchema: z.object({}) },
			tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
				await task.requireInput('go', { mode: 'form', message: 'Go?', requestedSchema: { type: 'object' } });
				return text('gone');
			}),
		);
	};
}
