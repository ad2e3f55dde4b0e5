/** An MCP server that runs pipelines. Also for `holdfast serve examples/pipeline/server.ts`. */
import { McpServer } from '@modelcontextprotocol/server';
import type { TaskServerFactory } from 'holdfast/server';
import * as z from 'zod';
import { findCheckout, findFile, rootsFrom } from './checkout.ts';
import { chooseStages, readPipeline } from './pipeline-file.ts';
import { type Plan, pipelineResult, planSchema, runPipeline } from './pipeline-run.ts';

/** Options of {@link pipelineServer}. */
export interface PipelineOptions {
	/** Folder for one folder of logs per task. */
	readonly logsFolder: string;
	/** Folders at or below which pipelines may run. */
	readonly roots: readonly string[];
}

const where = {
	checkout: z.string().min(1).describe('Folder of the checkout on the server'),
	file: z.string().min(1).default('pipeline.yaml').describe('Pipeline file, relative to the checkout'),
};

/** Longer than the longest `killGraceMs` of a stage, so that a cancel waits for the last process to end. */
const CANCEL_GRACE_MS = 90_000;

/** Makes the servers of one process. */
export function pipelineServer({ logsFolder, roots }: PipelineOptions): TaskServerFactory {
	const read = (checkout: string, file: string): Plan => {
		const folder = findCheckout(checkout, roots);
		return { checkout: folder, stages: [...readPipeline(findFile(file, folder), file)] };
	};
	return (tasks) => {
		const server = new McpServer({ name: 'pipeline', version: '1.0.0' });
		server.registerTool(
			'run_pipeline',
			{
				title: 'Run a pipeline',
				description:
					'Runs the stages of a pipeline file in a checkout, one after the other, and stops at the first that ' +
					'fails. A stage may need the approval of a person. Use list_stages to see what would run.',
				inputSchema: z.object({
					...where,
					stages: z.array(z.string()).min(1).optional().describe('Run only these, in the order of the file'),
				}),
				outputSchema: pipelineResult,
				annotations: { destructiveHint: true, openWorldHint: true },
			},
			tasks.handler(
				{
					// Every run is a task before its first process starts, so that no run is ever unknown.
					syncWindowMs: 0,
					// The plan stands in the task, so a run can always go on. The stage in the middle runs again.
					onCrash: 'resume',
					cancelGraceMs: CANCEL_GRACE_MS,
					prepare: ({ checkout, file, stages }) => {
						const plan = read(checkout, file);
						return { ...plan, stages: [...chooseStages(plan.stages, stages)] };
					},
				},
				(_args, task) => runPipeline(planSchema.parse(task.prepared), task, logsFolder),
			),
		);
		server.registerTool(
			'list_stages',
			{
				title: 'List the stages of a pipeline',
				description:
					'Reads a pipeline file without running anything. Names what is wrong with it by line and key.',
				inputSchema: z.object(where),
				outputSchema: z.object({
					stages: z.array(
						z.object({
							name: z.string(),
							run: z.string(),
							timeoutMs: z.number(),
							approval: z.string().nullable(),
						}),
					),
				}),
				annotations: { readOnlyHint: true },
			},
			({ checkout, file }) => {
				const { stages: all } = read(checkout, file);
				const stages = all.map(({ name, run, timeoutMs, approval }) => ({ name, run, timeoutMs, approval }));
				const text = stages.map(({ name, run }) => `${name}: ${run.trim()}`).join('\n');
				return { content: [{ type: 'text', text }], structuredContent: { stages } };
			},
		);
		return server;
	};
}

/** The server as the environment configures it: PIPELINE_ROOTS and PIPELINE_LOGS. */
export const server: TaskServerFactory = pipelineServer({
	logsFolder: process.env['PIPELINE_LOGS'] ?? 'pipeline-logs',
	roots: rootsFrom(process.env['PIPELINE_ROOTS']),
});
