/** Runs the stages of a pipeline as one durable task. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { isHoldfastError, type TaskContext } from 'holdfast/server';
import * as z from 'zod';
import { type Stage, stageSchema } from './pipeline-file.ts';
import { StageLog } from './stage-log.ts';
import { endSurvivors, runStage, stageReport, type StageReport } from './stage-run.ts';

/** What one call is going to do, decided before its task exists and the same after every restart. */
export const planSchema = z.object({ checkout: z.string(), stages: z.array(stageSchema) });

export type Plan = z.infer<typeof planSchema>;

/** The structured content of the tool's result. */
export const pipelineResult = z.object({
	status: z.enum(['passed', 'failed', 'not_approved']),
	stages: z.array(stageReport),
});

const TAIL_BYTES = 16_384;
const TAIL_LINES = 60;

/** How long what a dead server left running has to end by itself, beyond the stage's own grace. */
const SURVIVOR_GRACE_MS = 2_000;

const APPROVAL = {
	type: 'object',
	properties: { approve: { type: 'boolean', title: 'Go ahead' } },
	required: ['approve'],
} as const;

/**
 * Runs a plan. Each finished stage is a step of the task: after a crash it is not run again. The stage in the
 * middle is, from its start, once nothing of its first run is left.
 */
export async function runPipeline(
	plan: Plan,
	task: TaskContext,
	logsFolder: string,
): Promise<CallToolResult> {
	const folder = join(logsFolder, task.taskId);
	mkdirSync(folder, { recursive: true, mode: 0o700 });
	const groupFile = join(folder, 'running.json');
	const graceMs = Math.max(...plan.stages.map((stage) => stage.killGraceMs)) + SURVIVOR_GRACE_MS;
	await endSurvivors(groupFile, graceMs);

	const total = plan.stages.length;
	const reports: StageReport[] = [];
	for (const [index, stage] of plan.stages.entries()) {
		const label = `Stage ${index + 1} of ${total}: ${stage.name}`;
		const refusal = await refusalOf(stage, task);
		if (refusal !== undefined) {
			const rest = notRun(plan.stages.slice(index), 'not_approved');
			return answer('not_approved', [...reports, ...rest], `Stopped before ${label}. ${refusal}`);
		}
		const report = await task.step(`stage ${stage.name}`, () => {
			task.progress({ progress: index, total, message: label });
			return runStage(stage, {
				cwd: plan.checkout,
				logFile: join(folder, `${String(index + 1).padStart(2, '0')}-${stage.name}.log`),
				groupFile,
				signal: task.signal,
				onLine: (line) => task.progress({ progress: index, total, message: `${label} — ${line}` }),
			});
		});
		reports.push(report);
		if (report.outcome !== 'passed') {
			const all = [...reports, ...notRun(plan.stages.slice(index + 1), 'not_run')];
			return answer('failed', all, failureText(label, stage, report));
		}
	}
	const lines = reports.map(({ name, durationMs }) => `- ${name}: ${seconds(durationMs)}`);
	return answer(
		'passed',
		reports,
		[total === 1 ? 'The stage passed.' : `All ${total} stages passed.`, ...lines].join('\n'),
	);
}

/** Why a stage may not start; undefined when it may. */
async function refusalOf(stage: Stage, task: TaskContext): Promise<string | undefined> {
	if (stage.approval === null) return undefined;
	try {
		const { action, content } = await task.requireInput(`approve ${stage.name}`, {
			mode: 'form',
			message: stage.approval,
			requestedSchema: APPROVAL,
		});
		if (action === 'accept' && content?.['approve'] === true) return undefined;
		return `"${stage.approval}" was ${action === 'cancel' ? 'closed without an answer' : 'answered with no'}.`;
	} catch (error) {
		// The stages before it have run; their reports are worth more than a bare error.
		if (isHoldfastError(error, 'INPUT_UNAVAILABLE'))
			return `"${stage.approval}" could not be asked. ${error.message}`;
		throw error;
	}
}

function notRun(stages: readonly Stage[], first: 'not_approved' | 'not_run'): StageReport[] {
	return stages.map(({ name }, index) => ({
		name,
		outcome: index === 0 ? first : 'not_run',
		exitCode: null,
		signal: null,
		durationMs: 0,
		logFile: null,
		outputBytes: 0,
	}));
}

function answer(
	status: z.infer<typeof pipelineResult>['status'],
	stages: StageReport[],
	text: string,
): CallToolResult {
	return {
		content: [{ type: 'text', text }],
		structuredContent: { status, stages },
		// A no is an answer, not an error: a model that is told of an error tries again.
		...(status === 'failed' && { isError: true }),
	};
}

function failureText(label: string, stage: Stage, report: StageReport): string {
	const { outcome, exitCode, signal, durationMs, logFile, outputBytes } = report;
	const ended = exitCode === null ? `it was ended by ${signal ?? 'its system'}` : `exit code ${exitCode}`;
	const why = outcome === 'timed_out' ? `it took longer than its timeoutMs of ${stage.timeoutMs}` : ended;
	const head = `${label} failed after ${seconds(durationMs)}: ${why}.`;
	if (logFile === null || outputBytes === 0) return `${head}\nIt wrote nothing.`;
	const { text, isCut } = new StageLog(logFile).tail(TAIL_BYTES, TAIL_LINES);
	const notice = isCut
		? `It wrote ${outputBytes} bytes, of which this is only the end; all of it is in ${logFile}:`
		: `All that it wrote, also in ${logFile}:`;
	return `${head}\n${notice}\n\n${text}`;
}

function seconds(durationMs: number): string {
	return `${(durationMs / 1_000).toFixed(1)} s`;
}
