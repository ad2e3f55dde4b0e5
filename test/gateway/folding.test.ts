/** What a folded call does, whatever family it is of. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { memory } from '../../src/backend/memory/index.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { begin, call, getTask, inStatus } from '../support/steps.ts';
import { eventually, type Wire } from '../support/wire.ts';
import { REPORTS } from './folding-gateway.ts';
import { Lines, openGateway, type RigOptions, serveStandIn, type StandIn } from './folding-rig.ts';
import {
	jsonText,
	oneByOne,
	problem,
	type StandInTool,
	type StandInTools,
	structured,
	texts,
} from './folding-stand-in.ts';

const TEXT = { type: 'string' };
const JOB = { job: TEXT };

/** The family of reports: what each check answers, and what differs. */
function reports(check: StandInTool['call'], others: Partial<StandInTools> = {}): StandInTools {
	return {
		start_report: { properties: { topic: TEXT }, call: () => jsonText({ job: 'r-1', status: 'queued' }) },
		get_report: { properties: JOB, call: check },
		cancel_report: { properties: JOB, call: () => texts('stopping') },
		...(others as StandInTools),
	};
}

/** Every call becomes a task, however soon it ends. */
const AT_ONCE = { start_report: { syncWindowMs: 0 } };

/** A check of work that does not end. */
const running = () => jsonText({ status: 'running' });

interface Opened {
	readonly server: StandIn;
	readonly wire: Wire;
	readonly log: Lines;
}

async function open(tools: StandInTools, fold: unknown = REPORTS, options: RigOptions = {}): Promise<Opened> {
	const server = await serveStandIn(tools);
	const log = new Lines();
	return {
		server,
		log,
		wire: await openGateway(server.url, fold, { speed: 20, log, tools: AT_ONCE, ...options }),
	};
}

/** A tool result as a model reads it. */
interface Read {
	readonly content: readonly { readonly text: string }[];
	readonly isError?: boolean;
	readonly structuredContent?: JsonObject;
}

/** Calls a tool, waits if it becomes a task, and answers the result. */
async function resultOf(wire: Wire, tool: string, args: JsonObject = {}): Promise<Read> {
	const { result = {} } = await call(wire, tool, args);
	const { taskId } = result;
	const ended = typeof taskId === 'string' ? (await inStatus(wire, taskId, 'completed'))['result'] : result;
	return ended as unknown as Read;
}

describe('the end of folded work', () => {
	test('is the result that the mapping points at', async () => {
		const { wire } = await open(reports(() => structured({ status: 'Succeeded', text: { pages: 3 } })));
		const { content, structuredContent, isError } = await resultOf(wire, 'start_report');
		expect(content[0]?.text).toBe('{"pages":3}');
		expect(structuredContent).toEqual({ pages: 3 });
		expect(isError).toBeUndefined();
	});

	test('is a result with isError when the work failed, also where the check itself says isError', async () => {
		const said = { ...jsonText({ status: 'FAILED', reason: 'no such topic' }), isError: true };
		const { wire, server } = await open(reports(() => said));
		const { content, isError } = await resultOf(wire, 'start_report');
		expect(isError).toBe(true);
		expect(content[0]?.text).toContain('no such topic');
		expect(server.of('get_report')).toHaveLength(1);
	});

	test('is what another tool says about a failure', async () => {
		const tools = reports(() => jsonText({ status: 20 }), {
			get_error: { properties: JOB, call: ({ job }) => texts(`${JSON.stringify(job)}: out of memory`) },
		});
		const { wire } = await open(tools, {
			...REPORTS,
			status: { words: { failed: [20] } },
			failedResult: { tool: 'get_error', arguments: { job: '{job}' } },
		});
		expect(await resultOf(wire, 'start_report')).toMatchObject({
			content: [{ text: '"r-1": out of memory' }],
			isError: true,
		});
	});

	test('is an error that says so when somebody cancelled the work on the server', async () => {
		const { wire } = await open(reports(() => jsonText({ status: 'CANCELED' })));
		const { content, isError } = await resultOf(wire, 'start_report');
		expect(isError).toBe(true);
		expect(content[0]?.text).toBe('It was cancelled on the server (CANCELED).');
	});

	test('depends on the outcome where "completed" says only that it is over', async () => {
		const reply = oneByOne(
			{ status: 'in_progress', conclusion: null },
			{ status: 'completed', conclusion: 'failure' },
		);
		const { wire } = await open(
			reports(() => jsonText(reply())),
			{
				...REPORTS,
				status: { outcome: 'conclusion' },
			},
		);
		expect((await resultOf(wire, 'start_report')).isError).toBe(true);
	});

	test('may be a truth value', async () => {
		const reply = oneByOne({ is_complete: false }, { is_complete: true, text: 'all of it' });
		const { wire } = await open(
			reports(() => jsonText(reply())),
			{
				...REPORTS,
				status: { paths: 'is_complete', words: { working: [false], completed: [true] } },
			},
		);
		expect((await resultOf(wire, 'start_report')).content[0]?.text).toBe('all of it');
	});
});

describe('a start', () => {
	test('that fails is the result, and nothing is checked', async () => {
		const { wire, server } = await open(
			reports(() => texts(''), { start_report: { properties: {}, call: () => problem('quota used up') } }),
		);
		expect(await resultOf(wire, 'start_report')).toMatchObject({
			content: [{ text: 'quota used up' }],
			isError: true,
		});
		expect(server.of('get_report')).toEqual([]);
	});

	test('that answers without a handle is the result', async () => {
		const { wire, server } = await open(
			reports(() => texts(''), {
				start_report: { properties: {}, call: () => jsonText({ data: 'at once' }) },
			}),
		);
		expect((await resultOf(wire, 'start_report')).content[0]?.text).toContain('at once');
		expect(server.of('get_report')).toEqual([]);
	});

	test('that waited for the end is checked at once', async () => {
		const start = { properties: {}, call: () => jsonText({ job: 'r-1', status: 'done' }) };
		const { wire } = await open(
			reports(() => jsonText({ status: 'done', text: 'ready' }), { start_report: start }),
			{ ...REPORTS, pollMs: 3_600_000, maxPollMs: 3_600_000 },
			{ speed: 1 },
		);
		expect((await resultOf(wire, 'start_report')).content[0]?.text).toBe('ready');
	});

	test('of a tool with other uses is told by its arguments; other calls pass', async () => {
		const tools: StandInTools = {
			jobs: {
				properties: { operation: TEXT, id: TEXT },
				call: ({ operation }) =>
					operation === 'ps'
						? texts('no jobs')
						: jsonText({ id: 'j-1', status: operation === 'run' ? 'running' : 'done' }),
			},
		};
		const { wire, server } = await open(tools, {
			start: { tool: 'jobs', when: { operation: ['run', 'uv'] } },
			ids: { id: 'id' },
			check: { tool: 'jobs', arguments: { operation: 'inspect', id: '{id}' }, readOnly: true },
			pollMs: 1_000,
		});
		expect((await resultOf(wire, 'jobs', { operation: 'ps' })).content[0]?.text).toBe('no jobs');
		expect((await resultOf(wire, 'jobs', { operation: 'run' })).content[0]?.text).toContain('done');
		expect(server.of('jobs').map(({ operation }) => operation)).toEqual(['ps', 'run', 'inspect']);
	});

	test('is given constant arguments and a wait in its own unit, within its bounds', async () => {
		const { wire, server } = await open(
			reports(() => jsonText({ status: 'done', text: 'x' }), {
				start_report: {
					properties: {
						topic: TEXT,
						background: { type: 'boolean' },
						wait_s: { type: 'number', maximum: 20 },
					},
					call: () => jsonText({ job: 'r-1' }),
				},
			}),
			{
				...REPORTS,
				start: {
					tool: 'start_report',
					arguments: { background: true },
					hide: ['wait_s'],
					wait: { argument: 'wait_s', unit: 's', waitMs: 45_000 },
				},
			},
		);
		await resultOf(wire, 'start_report', { topic: 'bees' });
		expect(server.of('start_report')).toEqual([{ topic: 'bees', background: true, wait_s: 20 }]);
	});
});

describe('while folded work goes on', () => {
	test('progress, percentage and what the server waits for are said', async () => {
		const reply = oneByOne(
			{ status: 'running', done: 2, of: 8, note: 'reading' },
			{ status: 'blocked', done: 4, of: 8, note: 'approve it in the browser' },
		);
		const { wire } = await open(
			reports(() => jsonText(reply())),
			{
				...REPORTS,
				progress: { done: 'done', total: 'of', message: 'note' },
			},
			{ speed: 2 },
		);
		const taskId = await begin(wire, 'start_report');
		await eventually(async () =>
			expect((await getTask(wire, taskId))['statusMessage']).toMatch(/^reading \(25%/),
		);
		await eventually(async () => {
			const { status, statusMessage } = await getTask(wire, taskId);
			expect(status).toBe('working');
			expect(statusMessage).toMatch(/^Needs something on the server: approve it in the browser \(50%/);
		});
	});

	test('a word that nobody knows is no end, is logged once, and the deadline holds', async () => {
		const { wire, log, server } = await open(
			reports(() => jsonText({ status: 'Pondering' })),
			{ ...REPORTS, deadlineMs: 20_000 },
		);
		const taskId = await begin(wire, 'start_report');
		const task = await inStatus(wire, taskId, 'failed');
		expect(task['error']).toMatchObject({ message: expect.stringContaining('it has not ended within 20 s') });
		expect(server.of('get_report').length).toBeGreaterThan(3);
		expect(log.lines.filter((line) => line.includes('Pondering'))).toHaveLength(1);
	});

	test('an outage is waited out', async () => {
		const reply = oneByOne('running', 'done');
		const { wire, server, log } = await open(reports(() => jsonText({ status: reply(), text: 'after all' })));
		const taskId = await begin(wire, 'start_report');
		await eventually(() => expect(server.of('get_report')).toHaveLength(1));
		server.cut(true);
		await eventually(() => expect(log.lines.join('\n')).toContain('a check failed; it is tried again'));
		expect((await getTask(wire, taskId))['status']).toBe('working');
		server.cut(false);
		const { result } = await inStatus(wire, taskId, 'completed');
		expect(result).toMatchObject({ content: [{ text: 'after all' }] });
		expect(server.of('start_report')).toHaveLength(1);
	});

	test('what is not known at first is waited for', async () => {
		const reply = oneByOne(
			problem('job not found'),
			problem('job not found'),
			jsonText({ status: 'done', text: 'here' }),
		);
		const { wire } = await open(reports(reply));
		expect((await resultOf(wire, 'start_report')).content[0]?.text).toBe('here');
	});

	test('what is not known any more has an outcome that is unknown', async () => {
		const reply = oneByOne(jsonText({ status: 'running' }), jsonText({ status: 'unknown' }));
		const { wire } = await open(reports(reply));
		const taskId = await begin(wire, 'start_report');
		const { error } = await inStatus(wire, taskId, 'failed');
		expect(error).toMatchObject({
			code: -32603,
			message: expect.stringMatching(
				/outcome of start_report .* is unknown: the server does not know it any more/,
			),
		});
	});

	test('a check that says nothing five times over has an outcome that is unknown', async () => {
		const { wire, server } = await open(reports(() => texts('hello')));
		const taskId = await begin(wire, 'start_report');
		const { error } = await inStatus(wire, taskId, 'failed');
		expect(error).toMatchObject({ message: expect.stringContaining('the check answers "hello"') });
		expect(server.of('get_report')).toHaveLength(5);
	});

	test('the journal does not grow with the checks', async () => {
		const backend = memory();
		const { wire, server } = await open(reports(running), REPORTS, { backend: () => backend });
		const taskId = await begin(wire, 'start_report');
		await eventually(() => expect(server.of('get_report').length).toBeGreaterThan(8));
		const details = await backend.store.load(taskId);
		expect(details?.steps.map(({ name }) => name)).toEqual(['send', 'started']);
	});
});

describe('tasks/cancel of a folded call', () => {
	test('reaches the server once, and the task is cancelled when the work has stopped', async () => {
		let isStopped = false;
		const { wire, server } = await open(
			reports(() => jsonText({ status: isStopped ? 'cancelled' : 'running' }), {
				cancel_report: {
					properties: JOB,
					call: () => {
						isStopped = true;
						return texts('stopping');
					},
				},
			}),
		);
		const taskId = await begin(wire, 'start_report');
		for (let time = 0; time < 2; time++) await wire.request('tasks/cancel', { taskId });
		await inStatus(wire, taskId, 'cancelled');
		expect(server.of('cancel_report')).toEqual([{ job: 'r-1' }]);
		expect(server.calls.at(-1)?.tool).toBe('get_report');
	});

	test('that comes too late gives the result', async () => {
		let isStopped = false;
		const { wire } = await open(
			reports(() => jsonText({ status: isStopped ? 'done' : 'running', text: 'finished' }), {
				cancel_report: {
					properties: JOB,
					call: () => {
						isStopped = true;
						return problem('it has ended');
					},
				},
			}),
		);
		const taskId = await begin(wire, 'start_report');
		await wire.request('tasks/cancel', { taskId });
		const { result } = await inStatus(wire, taskId, 'completed');
		expect(result).toMatchObject({ content: [{ text: 'finished' }] });
	});

	test('while the start is on its way waits for the handle, and cancels that', async () => {
		const started = Promise.withResolvers<void>();
		const { wire, server } = await open(
			reports(() => jsonText({ status: server.of('cancel_report').length > 0 ? 'aborted' : 'running' }), {
				start_report: { properties: {}, call: () => started.promise.then(() => jsonText({ job: 'r-1' })) },
			}),
		);
		const taskId = await begin(wire, 'start_report');
		await wire.request('tasks/cancel', { taskId });
		started.resolve();
		await inStatus(wire, taskId, 'cancelled');
		expect(server.of('cancel_report')).toEqual([{ job: 'r-1' }]);
	});
});

describe('what hosts see of a family', () => {
	const listed = async (wire: Wire, declare = true): Promise<readonly JsonObject[]> =>
		(await wire.request('tools/list', {}, { declare })).result?.['tools'] as readonly JsonObject[];

	test('is one tool, without what only the family needs', async () => {
		const { wire } = await open(
			reports(running, {
				start_report: {
					properties: { topic: TEXT, wait: { type: 'boolean' } },
					required: ['topic', 'wait'],
					outputSchema: { type: 'object', properties: { job: TEXT } },
					description: 'Starts a report.',
					call: () => texts(''),
				},
			}),
			{ ...REPORTS, name: 'report', start: { tool: 'start_report', arguments: { wait: false } } },
		);
		const tools = await listed(wire);
		expect(tools.map(({ name }) => name)).toEqual(['report']);
		expect(tools[0]?.['inputSchema']).toEqual({
			type: 'object',
			properties: { topic: TEXT },
			required: ['topic'],
		});
		expect(tools[0]?.['description']).toBe(
			'Starts a report.\n\nThe call returns the result itself, however long it takes: do not check on it with another tool.',
		);
		expect(tools[0]).not.toHaveProperty('outputSchema');
	});

	test('is all of it without tasks, unless the mapping hides it from everyone', async () => {
		const some = await open(reports(running));
		expect((await listed(some.wire, false)).map(({ name }) => name)).toEqual(
			expect.arrayContaining(['start_report', 'get_report', 'cancel_report']),
		);
		const none = await open(reports(running), { ...REPORTS, hideFrom: 'everyone' });
		const names = (await listed(none.wire, false)).map(({ name }) => name);
		expect(names).toContain('start_report');
		expect(names).not.toContain('get_report');
	});

	test('is as it was when the mapping does not fit the server, and the log says why', async () => {
		const { start_report, cancel_report } = reports(() => texts(''));
		const { wire, log } = await open({ start_report, cancel_report } as StandInTools);
		expect((await listed(wire)).map(({ name }) => name)).toEqual(['start_report', 'cancel_report']);
		expect((await resultOf(wire, 'start_report')).content[0]?.text).toContain('r-1');
		expect(log.lines.join('\n')).toContain('there is no tool \\"get_report\\"');
	});
});

test('a host without tasks is held until the result is there', async () => {
	const reply = oneByOne('running', 'done');
	const { wire } = await open(reports(() => jsonText({ status: reply(), text: 'held' })));
	const { result } = await call(wire, 'start_report', {}, { declare: false });
	expect(result).toMatchObject({ content: [{ text: 'held' }] });
});

test('a family of a server on stdio is folded as well', async () => {
	const target = {
		kind: 'command' as const,
		command: process.execPath,
		args: [join(import.meta.dirname, 'folding-stand-in-process.ts')],
		env: { ...process.env } as Record<string, string>,
	};
	const wire = await openGateway('', REPORTS, { target, speed: 20 });
	expect((await resultOf(wire, 'start_report')).content[0]?.text).toBe('the report');
});
