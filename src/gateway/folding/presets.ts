import * as z from 'zod';
import { type FoldMapping, type FoldMappingInput, foldMappingSchema } from './fold-mapping.ts';

/** A family of a public server that is known. */
export interface FoldPreset {
	/** Whose family it is. */
	readonly server: string;
	/** What one must know about it. */
	readonly note: string;
	/** One mapping for each tool that starts work. */
	readonly mappings: readonly FoldMapping[];
}

const SECOND_MS = 1_000;

function preset(server: string, note: string, ...mappings: readonly FoldMappingInput[]): FoldPreset {
	return { server, note, mappings: mappings.map((mapping) => foldMappingSchema.parse(mapping)) };
}

/** Families by name. Poll floors are what the authors of the servers ask for, where they do. */
export const FOLD_PRESETS = {
	'firecrawl-agent': preset('firecrawl/firecrawl-mcp-server', 'JSON in a text', {
		start: { tool: 'firecrawl_agent' },
		ids: { id: 'id' },
		check: { tool: 'firecrawl_agent_status', arguments: { id: '{id}' }, readOnly: true },
		pollMs: 15 * SECOND_MS,
	}),
	'firecrawl-crawl': preset(
		'firecrawl/firecrawl-mcp-server',
		'newer versions wait for the end themselves: their answer is then the result',
		{
			start: { tool: 'firecrawl_crawl' },
			ids: { id: ['id', { text: String.raw`\b[Ii][Dd]:?\s+([0-9a-f]{8}-[0-9a-f-]{27})\b` }] },
			check: { tool: 'firecrawl_check_crawl_status', arguments: { id: '{id}' }, readOnly: true },
			progress: { done: 'completed', total: 'total' },
			pollMs: 2 * SECOND_MS,
		},
	),
	'exa-agent': preset('exa-labs/exa-mcp-server', 'one tool starts with query and checks with runId', {
		start: { tool: 'agent_run', when: { runId: null }, hide: ['runId'] },
		ids: { id: 'id' },
		check: { tool: 'agent_run', arguments: { runId: '{id}' }, readOnly: true },
		pollMs: 4 * SECOND_MS,
	}),
	'exa-deep-research': preset('exa-labs/exa-mcp-server', 'each check waits 5 s itself', {
		start: { tool: 'deep_researcher_start' },
		ids: { researchId: 'researchId' },
		check: { tool: 'deep_researcher_check', arguments: { researchId: '{researchId}' }, readOnly: true },
		result: { path: 'report' },
		pollMs: SECOND_MS,
		maxPollMs: 10 * SECOND_MS,
	}),
	'apify-actor': preset('apify/apify-mcp-server', 'the result is in a dataset, which a third tool reads', {
		start: { tool: 'call-actor', hide: ['waitSecs'], wait: { argument: 'waitSecs', unit: 's', waitMs: 0 } },
		ids: { runId: 'runId' },
		check: {
			tool: 'get-actor-run',
			arguments: { runId: '{runId}' },
			wait: { argument: 'waitSecs', unit: 's', waitMs: 45 * SECOND_MS },
			readOnly: true,
		},
		status: { words: { working: ['TIMING-OUT', 'ABORTING'], failed: ['SOFT_FAIL'] } },
		progress: { message: 'summary' },
		result: {
			tool: 'get-dataset-items',
			arguments: { datasetId: '{datasetId}' },
			ids: { datasetId: ['storages.dataset.id', 'defaultDatasetId'] },
		},
		cancel: { tool: 'abort-actor-run', arguments: { runId: '{runId}' } },
		// Runs of other calls are looked at with it too.
		hide: ['abort-actor-run'],
		pollMs: SECOND_MS,
	}),
	'hf-jobs': preset('huggingface/hf-mcp-server', 'one tool with operations; the result is the log', {
		start: { tool: 'hf_jobs', when: { operation: ['run', 'uv'] } },
		ids: {
			job_id: [
				'outcome.job.id',
				'job.id',
				{ text: String.raw`Job (?:started: |ID:\** )([0-9a-f]+)` },
				{ text: String.raw`\*\*Job ID:\*\* ([0-9a-f]+)` },
			],
		},
		check: {
			tool: 'hf_jobs',
			arguments: { operation: 'inspect', args: { job_id: '{job_id}' } },
			readOnly: true,
		},
		status: {
			// At `status` itself an inspection says that it went well, not the job.
			paths: [
				'outcome.inspections[0].job.status.stage',
				'inspections[0].job.status.stage',
				'status.stage',
				{ text: String.raw`\*\*Status:\*\* (\w+)` },
			],
			words: { failed: ['DELETED'] },
		},
		result: { tool: 'hf_jobs', arguments: { operation: 'logs', args: { job_id: '{job_id}' } } },
		failedResult: { tool: 'hf_jobs', arguments: { operation: 'logs', args: { job_id: '{job_id}' } } },
		cancel: { tool: 'hf_jobs', arguments: { operation: 'cancel', args: { job_id: '{job_id}' } } },
	}),
	'dbt-job': preset(
		'dbt-labs/dbt-mcp',
		'states are numbers; a run is not the job; errors come from a third tool',
		{
			start: { tool: 'trigger_job_run' },
			ids: { run_id: ['id', 'run_id'] },
			check: { tool: 'get_job_run_details', arguments: { run_id: '{run_id}' } },
			status: { words: { working: [1, 2, 3], completed: [10], failed: [20], cancelled: [30] } },
			progress: { message: 'status_humanized' },
			failedResult: { tool: 'get_job_run_error', arguments: { run_id: '{run_id}' } },
			cancel: { tool: 'cancel_job_run', arguments: { run_id: '{run_id}' } },
			// All of them are also for runs that somebody else started.
			hide: [],
			pollMs: 10 * SECOND_MS,
		},
	),
	'aws-logs-insights': preset(
		'awslabs/mcp (cloudwatch)',
		'the handle has one name going out, another coming in',
		{
			start: {
				tool: 'execute_log_insights_query',
				hide: ['max_timeout'],
				wait: { argument: 'max_timeout', unit: 's', waitMs: SECOND_MS },
			},
			ids: { queryId: 'queryId', region: { argument: 'region' }, profile: { argument: 'profile_name' } },
			check: {
				tool: 'get_logs_insight_query_results',
				arguments: { query_id: '{queryId}', region: '{region}', profile_name: '{profile}' },
				readOnly: true,
			},
			status: { words: { working: ['Polling Timeout'], failed: ['Timeout'] } },
			cancel: {
				tool: 'cancel_logs_insight_query',
				arguments: { query_id: '{queryId}', region: '{region}', profile_name: '{profile}' },
			},
			pollMs: 2 * SECOND_MS,
		},
	),
	'aws-security-scan': preset(
		'awslabs/mcp (security-agent)',
		'the check takes the latest scan unless it is told which; findings come from a third tool',
		...['start_security_scan', 'start_diff_scan'].map((tool) => ({
			start: { tool },
			ids: { scan_id: 'scan_id' },
			check: { tool: 'get_scan_status', arguments: { scan_id: '{scan_id}' }, readOnly: true },
			status: { words: { completed: ['PARTIALLY_COMPLETED'] } },
			result: { tool: 'get_scan_findings', arguments: { scan_id: '{scan_id}' } },
			cancel: { tool: 'stop_scan', arguments: { scan_id: '{scan_id}' } },
			pollMs: 15 * SECOND_MS,
		})),
	),
	'aws-cloud-control': preset(
		'awslabs/mcp (ccapi)',
		'three tools that change something; is_complete stays false for what was cancelled, so it is not looked at',
		...['create_resource', 'update_resource', 'delete_resource'].map((tool) => ({
			start: { tool },
			ids: { token: 'request_token', region: { argument: 'region' } },
			check: {
				tool: 'get_resource_request_status',
				arguments: { request_token: '{token}', region: '{region}' },
				readOnly: true,
			},
			progress: { message: 'status_message' },
		})),
	),
	'minimax-video': preset('MiniMax-AI/MiniMax-MCP', 'prose; the check that finds the end writes the file', {
		start: { tool: 'generate_video', arguments: { async_mode: true } },
		ids: { task_id: { text: String.raw`Task ID: ([\w-]+)` }, directory: { argument: 'output_directory' } },
		check: {
			tool: 'query_video_generation',
			arguments: { task_id: '{task_id}', output_directory: '{directory}' },
			readOnly: false,
		},
		// "Failed to query …" is about the query, and comes without isError.
		status: { paths: [{ text: String.raw`\b(Success|FAILED|processing)\b` }] },
		pollMs: 20 * SECOND_MS,
	}),
	'heygen-video': preset('heygen-com/heygen-mcp', 'may take hours; the result is a URL that expires', {
		start: { tool: 'generate_avatar_video' },
		ids: { video_id: 'video_id' },
		check: { tool: 'get_avatar_video_status', arguments: { video_id: '{video_id}' }, readOnly: true },
		pollMs: 10 * SECOND_MS,
	}),
	'replicate-prediction': preset('deepfates/mcp-replicate', 'prose', {
		start: { tool: 'create_prediction' },
		ids: { id: { text: String.raw`prediction (\w+)` } },
		check: { tool: 'get_prediction', arguments: { prediction_id: '{id}' }, readOnly: true },
		status: { paths: [{ text: String.raw`^Status: (\w+)` }] },
		cancel: { tool: 'cancel_prediction', arguments: { prediction_id: '{id}' } },
		pollMs: 2 * SECOND_MS,
	}),
	'buildkite-build': preset(
		'buildkite/buildkite-mcp-server',
		'a handle of three parts; each check waits 45 s itself; a blocked build waits for a person',
		{
			start: { tool: 'create_build' },
			ids: {
				org_slug: { argument: 'org_slug' },
				pipeline_slug: { argument: 'pipeline_slug' },
				build_number: { path: 'number', as: 'string' },
			},
			check: {
				tool: 'wait_for_build',
				arguments: {
					org_slug: '{org_slug}',
					pipeline_slug: '{pipeline_slug}',
					build_number: '{build_number}',
				},
				readOnly: true,
			},
			status: {
				paths: ['state'],
				words: { working: ['creating', 'failing'], failed: ['skipped', 'not_run'] },
			},
			// It is also for builds that somebody else started.
			hide: [],
			pollMs: 5 * SECOND_MS,
			maxPollMs: 15 * SECOND_MS,
		},
	),
} as const satisfies Readonly<Record<string, FoldPreset>>;

/** The name of a preset. */
export type FoldPresetName = keyof typeof FOLD_PRESETS;

const NAMES = Object.keys(FOLD_PRESETS) as [FoldPresetName, ...FoldPresetName[]];

/**
 * What a configuration says under `fold`: presets by name, and mappings; one, or a list of them.
 * The output is the mappings.
 */
export const foldSchema = z.preprocess(
	(value) => (value === undefined || Array.isArray(value) ? (value ?? []) : [value]),
	z.array(z.unknown()).transform((entries, context): readonly FoldMapping[] =>
		entries.flatMap((entry, index): readonly FoldMapping[] => {
			if (typeof entry === 'string') {
				const name = NAMES.find((known) => known === entry);
				if (name !== undefined) return FOLD_PRESETS[name].mappings;
				const message = `there is no preset "${entry}"; there are ${NAMES.join(', ')}`;
				context.addIssue({ code: 'custom', path: [index], message });
				return [];
			}
			const parsed = foldMappingSchema.safeParse(entry);
			if (parsed.success) return [parsed.data];
			for (const issue of parsed.error.issues)
				context.addIssue({ code: 'custom', path: [index, ...issue.path], message: issue.message });
			return [];
		}),
	),
);
