/** Stand-ins for the families that have a preset, with what is odd about each. */
import type { FoldPresetName } from '../../src/gateway/folding/presets.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { jsonText, oneByOne, problem, type StandInTools, structured, texts } from './folding-stand-in.ts';

/** One family, the call that a host makes, and what it is to end with. */
export interface Family {
	readonly tools: StandInTools;
	readonly call: readonly [tool: string, args: JsonObject];
	/** What the text of the result has in it. */
	readonly result: RegExp;
	/** How often each tool is called at most, and exactly for those that start or write. */
	readonly exactly: Readonly<Record<string, number>>;
	/** The arguments of the first check. */
	readonly checkedWith: readonly [tool: string, args: JsonObject];
	/** Tools that a host with Tasks does not see. */
	readonly hidden: readonly string[];
	/** Tools that it still sees beside the folded one. */
	readonly visible: readonly string[];
}

const TEXT = { type: 'string' };
const READ_ONLY = { readOnlyHint: true };
const UUID = '6f1c2b7e-0f3f-4a57-9d7d-3b1f5f8a0c11';

/** Answers only for its own handle, so that no other value gets through. */
function only(name: string, wanted: JsonObject[string], answer: () => ReturnType<typeof texts>) {
	return (args: JsonObject) =>
		args[name] === wanted ? answer() : problem(`${name} ${JSON.stringify(args[name])} not found`);
}

function firecrawl(
	start: string,
	check: string,
	replies: readonly [JsonObject, ...JsonObject[]],
): StandInTools {
	const reply = oneByOne(...replies);
	return {
		[start]: { properties: { prompt: TEXT, url: TEXT }, call: () => jsonText({ success: true, id: UUID }) },
		[check]: { properties: { id: TEXT }, required: ['id'], call: only('id', UUID, () => jsonText(reply())) },
	};
}

function exaAgent(): StandInTools {
	const reply = oneByOne<JsonObject>(
		{ success: true, id: 'run_7', status: 'running', outputReady: false },
		{ success: true, id: 'run_7', status: 'completed', outputReady: true, output: 'forty-two' },
	);
	return {
		agent_run: {
			properties: { query: TEXT, runId: TEXT, effort: TEXT },
			call: (args) => {
				if (Object.keys(args).length !== 1 && args['runId'] !== undefined)
					return problem('A runId resume call accepts only runId');
				if (args['runId'] !== undefined) return only('runId', 'run_7', () => jsonText(reply()))(args);
				const message = 'Call agent_run again with runId=run_7; do not create a replacement run';
				return jsonText({ success: true, id: 'run_7', status: 'running', outputReady: false, message });
			},
		},
	};
}

function apify(): StandInTools {
	const status = oneByOne('READY', 'RUNNING', 'SUCCEEDED');
	const waitSecs = { type: 'integer', minimum: 0, maximum: 45 };
	const run = (word: string): JsonObject => ({
		runId: 'run-1',
		actorId: 'actor-1',
		status: word,
		storages: { dataset: { id: 'dataset-xyz' } },
		summary: `Run is ${word}`,
		nextStep: 'call get-dataset-items',
	});
	const isWaitRight = (args: JsonObject): boolean =>
		Number(args['waitSecs']) >= 0 && Number(args['waitSecs']) <= 45;
	return {
		'call-actor': {
			properties: { actor: TEXT, input: { type: 'object' }, waitSecs },
			required: ['actor'],
			call: (args) => (args['waitSecs'] === 0 ? structured(run('READY')) : problem('this would block')),
		},
		'get-actor-run': {
			properties: { runId: TEXT, waitSecs },
			annotations: READ_ONLY,
			call: (args) =>
				isWaitRight(args)
					? only('runId', 'run-1', () => structured(run(status())))(args)
					: problem('waitSecs'),
		},
		'get-dataset-items': {
			properties: { datasetId: TEXT, limit: { type: 'number' } },
			annotations: READ_ONLY,
			call: only('datasetId', 'dataset-xyz', () => jsonText([{ url: 'https://example.com' }])),
		},
		'abort-actor-run': { properties: { runId: TEXT }, call: () => texts('aborted') },
	};
}

function hfJobs(): StandInTools {
	const stage = oneByOne('RUNNING', 'RUNNING', 'COMPLETED');
	const id = '68cd5eb0aa01';
	return {
		hf_jobs: {
			properties: { operation: TEXT, args: { type: 'object' } },
			call: ({ operation, args }) => {
				const jobId = (args as JsonObject | undefined)?.['job_id'];
				if (operation === 'run')
					return texts(`Job started: ${id}\n\nLog collection stopped after 10s. Job may still be running.`);
				if (operation === 'ps') return texts('no jobs');
				if (jobId !== id) return problem(`job ${JSON.stringify(jobId)} not found`);
				// The inspection itself went well at once, whatever the job does.
				const job = { id, status: { stage: operation === 'inspect' ? stage() : '' } };
				const inspections = [{ job_id: id, status: 'success', job }];
				if (operation === 'inspect')
					return structured({ status: 'success', outcome: { kind: 'inspections', inspections } });
				return operation === 'logs'
					? texts('**Logs**\nepoch 3: loss 0.1')
					: problem(`operation ${JSON.stringify(operation)}`);
			},
		},
	};
}

function dbt(): StandInTools {
	const status = oneByOne(1, 3, 10);
	return {
		trigger_job_run: {
			properties: { job_id: { type: 'integer' }, cause: TEXT },
			call: ({ job_id }) => jsonText({ id: 70403110257, job_id: job_id ?? null, status: 1 }),
		},
		get_job_run_details: {
			properties: { run_id: { type: 'integer' } },
			annotations: READ_ONLY,
			call: only('run_id', 70403110257, () =>
				jsonText({ id: 70403110257, status: status(), run_steps: ['dbt build'] }),
			),
		},
		get_job_run_error: {
			properties: { run_id: { type: 'integer' } },
			call: () => jsonText({ failed_steps: [] }),
		},
		cancel_job_run: { properties: { run_id: { type: 'integer' } }, call: () => jsonText({ status: 30 }) },
	};
}

function logsInsights(): StandInTools {
	const status = oneByOne('Scheduled', 'Running', 'Complete');
	const results = [{ '@message': 'hello' }];
	return {
		execute_log_insights_query: {
			properties: { query_string: TEXT, max_timeout: { type: 'integer' }, region: TEXT },
			// Not a status of the query: it goes on.
			call: () => structured({ queryId: 'q-1', status: 'Polling Timeout', message: 'not yet' }),
		},
		get_logs_insight_query_results: {
			properties: { query_id: TEXT, region: TEXT },
			required: ['query_id'],
			call: only('query_id', 'q-1', () => structured({ queryId: 'q-1', status: status(), results })),
		},
		cancel_logs_insight_query: {
			properties: { query_id: TEXT, region: TEXT },
			call: () => structured({ success: true }),
		},
	};
}

function securityScan(): StandInTools {
	const status = oneByOne('IN_PROGRESS', 'COMPLETED');
	const properties = { scan_id: TEXT };
	return {
		start_security_scan: {
			properties: { path: TEXT, title: TEXT },
			call: () => jsonText({ scan_id: 'scan-2', code_review_id: 'cr', job_id: 'j', status: 'STARTED' }),
		},
		start_diff_scan: { properties: { path: TEXT }, call: () => problem('not this one') },
		get_scan_status: {
			properties,
			// Without an id it is the latest, which may be somebody else's.
			call: ({ scan_id }) =>
				scan_id === undefined
					? jsonText({ scan_id: 'scan-9', status: 'COMPLETED' })
					: only('scan_id', 'scan-2', () => jsonText({ scan_id, status: status() }))({ scan_id }),
		},
		get_scan_findings: { properties, call: only('scan_id', 'scan-2', () => jsonText({ total_findings: 3 })) },
		stop_scan: { properties, call: () => jsonText({ status: 'STOPPED' }) },
	};
}

function cloudControl(): StandInTools {
	const status = oneByOne('PENDING', 'IN_PROGRESS', 'SUCCESS');
	const change = { properties: { resource_type: TEXT, region: TEXT }, call: () => problem('not this one') };
	return {
		create_resource: {
			...change,
			call: () => jsonText({ status: 'PENDING', is_complete: false, request_token: 'tok-1' }),
		},
		update_resource: change,
		delete_resource: change,
		get_resource_request_status: {
			properties: { request_token: TEXT, region: TEXT },
			call: (args) =>
				args['region'] === 'eu-west-1'
					? only('request_token', 'tok-1', () => {
							const word = status();
							return jsonText({ status: word, is_complete: word === 'SUCCESS', identifier: 'my-bucket' });
						})(args)
					: problem('the token is not of this region: not found'),
		},
	};
}

function minimax(): StandInTools {
	const id = '106916112212032';
	const answer = oneByOne(
		`Video generation task is still processing: Task ID: ${id}`,
		'Failed to query video generation status: HTTP 502',
		'Success. Video saved as: /tmp/video.mp4',
		'Success. Video saved as: /tmp/video-2.mp4',
	);
	return {
		generate_video: {
			properties: { prompt: TEXT, async_mode: { type: 'boolean' }, output_directory: TEXT },
			call: ({ async_mode }) =>
				async_mode === true
					? texts(
							`Success. Video generation task submitted: Task ID: ${id}. Please use query_video_generation.`,
						)
					: problem('this would block for ten minutes'),
		},
		query_video_generation: {
			properties: { task_id: TEXT, output_directory: TEXT },
			call: only('task_id', id, () => texts(answer())),
		},
	};
}

function heygen(): StandInTools {
	const status = oneByOne('waiting', 'pending', 'processing', 'completed');
	return {
		generate_avatar_video: {
			properties: { avatar_id: TEXT, input_text: TEXT, voice_id: TEXT },
			call: () => structured({ error: null, video_id: 'v1', task_id: null, video_url: null, status: null }),
		},
		get_avatar_video_status: {
			properties: { video_id: TEXT },
			call: only('video_id', 'v1', () =>
				structured({ status: status(), video_url: 'https://h.example/v1.mp4?expires=1' }),
			),
		},
	};
}

function replicate(): StandInTools {
	const status = oneByOne('starting', 'processing', 'succeeded');
	const properties = { prediction_id: TEXT };
	return {
		create_prediction: {
			properties: { version: TEXT, input: { type: 'object' } },
			call: () => texts('Created prediction gm3qorzdhgbfurvjtvhg6dckhu'),
		},
		get_prediction: {
			properties,
			call: only('prediction_id', 'gm3qorzdhgbfurvjtvhg6dckhu', () =>
				texts(
					'Prediction gm3qorzdhgbfurvjtvhg6dckhu:',
					`Status: ${status()}\nModel version: abc`,
					'\nInput:\n{\n  "prompt": "Status: failed"\n}',
					'\nOutput:\n["https://r.example/out.png"]',
				),
			),
		},
		cancel_prediction: { properties, call: () => texts('cancelled') },
	};
}

function buildkite(): StandInTools {
	const reply = oneByOne<JsonObject>(
		{ finished: false, state: 'running', number: 42, waited_seconds: 45 },
		{ finished: true, state: 'blocked', number: 42, waited_seconds: 3 },
		{
			finished: true,
			state: 'passed',
			number: 42,
			waited_seconds: 9,
			build: { web_url: 'https://b.example/42' },
		},
	);
	const slugs = { org_slug: TEXT, pipeline_slug: TEXT };
	return {
		create_build: {
			properties: { ...slugs, commit: TEXT, branch: TEXT, message: TEXT },
			call: () => jsonText({ id: UUID, number: 42, state: 'creating' }),
		},
		wait_for_build: {
			properties: { ...slugs, build_number: TEXT },
			required: ['org_slug', 'pipeline_slug', 'build_number'],
			annotations: READ_ONLY,
			call: only('build_number', '42', () => jsonText(reply())),
		},
	};
}

/** The families by the name of their preset. */
export const FAMILIES: Readonly<Record<FoldPresetName, () => Family>> = {
	'firecrawl-agent': () => ({
		tools: firecrawl('firecrawl_agent', 'firecrawl_agent_status', [
			{ success: true, status: 'processing' },
			{ success: true, status: 'completed', data: { gene: 'BUB1B' } },
		]),
		call: ['firecrawl_agent', { prompt: 'which gene?' }],
		result: /BUB1B/,
		exactly: { firecrawl_agent: 1 },
		checkedWith: ['firecrawl_agent_status', { id: UUID }],
		hidden: ['firecrawl_agent_status'],
		visible: [],
	}),
	'firecrawl-crawl': () => ({
		tools: firecrawl('firecrawl_crawl', 'firecrawl_check_crawl_status', [
			{ status: 'scraping', completed: 1, total: 4, data: [{ markdown: 'partial' }] },
			{ status: 'completed', completed: 4, total: 4, data: [{ markdown: 'whole' }] },
		]),
		call: ['firecrawl_crawl', { url: 'https://example.com' }],
		result: /whole/,
		exactly: { firecrawl_crawl: 1 },
		checkedWith: ['firecrawl_check_crawl_status', { id: UUID }],
		hidden: ['firecrawl_check_crawl_status'],
		visible: [],
	}),
	'exa-agent': () => ({
		tools: exaAgent(),
		call: ['agent_run', { query: 'what is it?' }],
		result: /forty-two/,
		exactly: {},
		checkedWith: ['agent_run', { query: 'what is it?' }],
		hidden: [],
		visible: [],
	}),
	'exa-deep-research': () => {
		const status = oneByOne('pending', 'running', 'completed');
		return {
			tools: {
				deep_researcher_start: {
					properties: { instructions: TEXT },
					call: () =>
						jsonText({ success: true, researchId: 'r1', message: 'IMMEDIATELY use deep_researcher_check' }),
				},
				deep_researcher_check: {
					properties: { researchId: TEXT },
					call: only('researchId', 'r1', () =>
						jsonText({ success: true, status: status(), report: '# Report' }),
					),
				},
			},
			call: ['deep_researcher_start', { instructions: 'all of it' }],
			result: /^# Report$/,
			exactly: { deep_researcher_start: 1 },
			checkedWith: ['deep_researcher_check', { researchId: 'r1' }],
			hidden: ['deep_researcher_check'],
			visible: [],
		};
	},
	'apify-actor': () => ({
		tools: apify(),
		call: ['call-actor', { actor: 'apify/rag-web-browser', input: {} }],
		result: /example\.com/,
		exactly: { 'call-actor': 1, 'get-dataset-items': 1, 'abort-actor-run': 0 },
		checkedWith: ['get-actor-run', { runId: 'run-1', waitSecs: 45 }],
		hidden: ['abort-actor-run'],
		visible: ['get-actor-run', 'get-dataset-items'],
	}),
	'hf-jobs': () => ({
		tools: hfJobs(),
		call: ['hf_jobs', { operation: 'run', args: { image: 'python' } }],
		result: /loss 0\.1/,
		exactly: {},
		checkedWith: ['hf_jobs', { operation: 'run', args: { image: 'python' } }],
		hidden: [],
		visible: [],
	}),
	'dbt-job': () => ({
		tools: dbt(),
		call: ['trigger_job_run', { job_id: 7, cause: 'test' }],
		result: /dbt build/,
		exactly: { trigger_job_run: 1, cancel_job_run: 0, get_job_run_error: 0 },
		checkedWith: ['get_job_run_details', { run_id: 70403110257 }],
		hidden: [],
		visible: ['get_job_run_details', 'get_job_run_error', 'cancel_job_run'],
	}),
	'aws-logs-insights': () => ({
		tools: logsInsights(),
		call: ['execute_log_insights_query', { query_string: 'fields @message', region: 'eu-west-1' }],
		result: /hello/,
		exactly: { execute_log_insights_query: 1, cancel_logs_insight_query: 0 },
		checkedWith: ['get_logs_insight_query_results', { query_id: 'q-1', region: 'eu-west-1' }],
		hidden: ['get_logs_insight_query_results', 'cancel_logs_insight_query'],
		visible: [],
	}),
	'aws-security-scan': () => ({
		tools: securityScan(),
		call: ['start_security_scan', { path: '.' }],
		result: /total_findings/,
		exactly: { start_security_scan: 1, get_scan_findings: 1, stop_scan: 0 },
		checkedWith: ['get_scan_status', { scan_id: 'scan-2' }],
		hidden: ['get_scan_status', 'stop_scan'],
		visible: ['start_diff_scan', 'get_scan_findings'],
	}),
	'aws-cloud-control': () => ({
		tools: cloudControl(),
		call: ['create_resource', { resource_type: 'AWS::S3::Bucket', region: 'eu-west-1' }],
		result: /my-bucket/,
		exactly: { create_resource: 1, update_resource: 0, delete_resource: 0 },
		checkedWith: ['get_resource_request_status', { request_token: 'tok-1', region: 'eu-west-1' }],
		hidden: ['get_resource_request_status'],
		visible: ['update_resource', 'delete_resource'],
	}),
	'minimax-video': () => ({
		tools: minimax(),
		call: ['generate_video', { prompt: 'a cat', output_directory: '/tmp' }],
		result: /saved as: \/tmp\/video\.mp4/,
		exactly: { generate_video: 1, query_video_generation: 3 },
		checkedWith: ['query_video_generation', { task_id: '106916112212032', output_directory: '/tmp' }],
		hidden: ['query_video_generation'],
		visible: [],
	}),
	'heygen-video': () => ({
		tools: heygen(),
		call: ['generate_avatar_video', { avatar_id: 'a', input_text: 'hi', voice_id: 'v' }],
		result: /v1\.mp4/,
		exactly: { generate_avatar_video: 1 },
		checkedWith: ['get_avatar_video_status', { video_id: 'v1' }],
		hidden: ['get_avatar_video_status'],
		visible: [],
	}),
	'replicate-prediction': () => ({
		tools: replicate(),
		call: ['create_prediction', { version: 'abc', input: {} }],
		result: /out\.png/,
		exactly: { create_prediction: 1, cancel_prediction: 0 },
		checkedWith: ['get_prediction', { prediction_id: 'gm3qorzdhgbfurvjtvhg6dckhu' }],
		hidden: ['get_prediction', 'cancel_prediction'],
		visible: [],
	}),
	'buildkite-build': () => ({
		tools: buildkite(),
		call: [
			'create_build',
			{ org_slug: 'acme', pipeline_slug: 'web', commit: 'HEAD', branch: 'main', message: 'm' },
		],
		result: /b\.example/,
		exactly: { create_build: 1 },
		checkedWith: ['wait_for_build', { org_slug: 'acme', pipeline_slug: 'web', build_number: '42' }],
		hidden: [],
		visible: ['wait_for_build'],
	}),
};
