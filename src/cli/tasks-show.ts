import type { TaskDetails, TaskRecord } from '../backend/record.ts';
import { isTerminal } from '../protocol/status.ts';
import type { JsonValue } from '../protocol/json.ts';
import type { StoreOptions } from './arguments.ts';
import { EXIT_CODES, Failure } from './failure.ts';
import { withOpenStore } from './open-store.ts';
import { isoTime, isoTimeOrNull, span, standOf, STATUS_COLOURS, summaryOf, workerName } from './task-view.ts';
import { clip, type Paint, paintFor, plain, safeJson } from './terminal.ts';

/** Options of `holdfast tasks show`. */
export interface ShowOptions extends StoreOptions {
	readonly json?: boolean;
}

/** Longest value that is shown in full without `--json`. */
const MAX_VALUE_LENGTH = 2_000;

/** Shows everything that is stored for one task. */
export function showTask(taskId: string, options: ShowOptions): Promise<number> {
	return withOpenStore(options, async (store) => {
		const { taskId: found } = await store.find(taskId);
		const details = await store.backend.store.load(found);
		if (!details) throw new Failure(`The task ${taskId} was removed this moment.`);
		const { stdout } = process;
		stdout.write(
			options.json === true
				? `${safeJson(asJson(details))}\n`
				: asText(details, store.nowMs(), paintFor(stdout)),
		);
		return EXIT_CODES.ok;
	});
}

function asJson(details: TaskDetails): unknown {
	const { record } = details;
	const { lease, policy, trace, inputResponses, result, error, journalled, retries, crashes } = record;
	return {
		...summaryOf(record),
		arguments: details.arguments,
		prepared: details.prepared,
		steps: details.steps,
		openInputs: Object.entries(record.openInputs).map(([key, open]) => ({
			...{ key, request: open.request },
			...{ askedAt: isoTime(open.askedAtMs), deadlineAt: isoTime(open.deadlineAtMs) },
		})),
		inputResponses,
		lease: lease && { owner: lease.owner, expiresAt: isoTime(lease.expiresAtMs) },
		...{ journalled, retries, crashes, revision: record.revision, idempotencyKey: record.idempotencyKey },
		...{ runAt: isoTimeOrNull(record.runAtMs), cancelRequestedAt: isoTimeOrNull(record.cancelRequestedAtMs) },
		...{ keptUntil: isoTime(record.createdAtMs + record.ttlMs), policy, trace, result, error },
	};
}

function asText(details: TaskDetails, nowMs: number, paint: Paint): string {
	const { record } = details;
	const sections = [
		facts(record, nowMs, paint),
		section(paint, 'Arguments', [value(details.arguments)]),
		...(details.prepared === null ? [] : [section(paint, 'Prepared', [value(details.prepared)])]),
		section(
			paint,
			'Finished steps',
			details.steps.map(
				(step, index) => `${index + 1}. ${plain(step.name)}: ${clip(JSON.stringify(step.value), 200)}`,
			),
		),
		...questions(record, nowMs, paint),
		section(
			paint,
			'Answers',
			Object.entries(record.inputResponses).map(
				([key, answer]) => `${plain(key)}: ${clip(JSON.stringify(answer), 200)}`,
			),
		),
		...(record.result ? [section(paint, 'Result', [value(record.result)])] : []),
		...(record.error ? [section(paint, 'Error', [value({ ...record.error })])] : []),
	];
	return sections.filter((text) => text !== '').join('\n');
}

function facts(record: TaskRecord, nowMs: number, paint: Paint): string {
	const ago = (atMs: number): string => `${isoTime(atMs)}  (${span(nowMs - atMs)} ago)`;
	const ended = isTerminal(record.status);
	const rows: (readonly [string, string] | undefined)[] = [
		['Task', record.taskId],
		['Status', paint(STATUS_COLOURS[record.status], record.status)],
		['Says', plain(standOf(record))],
		['Tool', plain(record.tool)],
		['Principal', plain(record.principal)],
		record.idempotencyKey === null ? undefined : ['Key', plain(record.idempotencyKey)],
		['Created', ago(record.createdAtMs)],
		[ended ? 'Ended' : 'Changed', ago(record.lastUpdatedAtMs)],
		ended ? ['Took', span(record.lastUpdatedAtMs - record.createdAtMs)] : undefined,
		['Kept until', isoTime(record.createdAtMs + record.ttlMs)],
		['Worker', worker(record, nowMs)],
		['Entered', `${record.attempt} ${record.attempt === 1 ? 'time' : 'times'}${mishaps(record)}`],
		record.cancelRequestedAtMs === null ? undefined : ['Cancel', ago(record.cancelRequestedAtMs)],
	];
	const lines = rows
		.filter((row) => row !== undefined)
		.map(([name, text]) => `${paint('dim', name.padEnd(12))}${text}`);
	return `${lines.join('\n')}\n`;
}

function worker(record: TaskRecord, nowMs: number): string {
	const { lease, runAtMs } = record;
	if (lease) {
		const leftMs = lease.expiresAtMs - nowMs;
		const state = leftMs > 0 ? `lease for ${span(leftMs)} more` : `its lease ran out ${span(leftMs)} ago`;
		return `${workerName(lease.owner)}, ${state}`;
	}
	if (isTerminal(record.status)) return 'none; it has ended';
	if (runAtMs === null) return 'none; parked until it is answered';
	return runAtMs > nowMs ? `none; sleeps for ${span(runAtMs - nowMs)} more` : 'none; waits for a free one';
}

function mishaps({ retries, crashes }: TaskRecord): string {
	const parts = [
		...(retries > 0 ? [`${retries} retried after errors`] : []),
		...(crashes > 0 ? [`${crashes} crashed in a row`] : []),
	];
	return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function questions(record: TaskRecord, nowMs: number, paint: Paint): string[] {
	return Object.entries(record.openInputs).map(([key, { request, askedAtMs, deadlineAtMs }]) => {
		const { message, url, requestedSchema } = request.params ?? {};
		return section(paint, `Open question: ${plain(key)}`, [
			typeof message === 'string' ? plain(message) : request.method,
			`asked ${span(nowMs - askedAtMs)} ago; the task fails in ${span(deadlineAtMs - nowMs)} without an answer`,
			...(typeof url === 'string' ? [`page: ${plain(url)}`] : []),
			...(requestedSchema === undefined ? [] : [value(requestedSchema)]),
		]);
	});
}

function section(paint: Paint, title: string, lines: readonly string[]): string {
	if (lines.length === 0) return '';
	const body = lines.flatMap((line) => line.split('\n')).map((line) => `  ${line}`);
	return `${[paint('bold', title), ...body].join('\n')}\n`;
}

function value(json: JsonValue): string {
	const text = safeJson(json);
	if (text.length <= MAX_VALUE_LENGTH) return text;
	return `${text.slice(0, MAX_VALUE_LENGTH)}\n… ${text.length - MAX_VALUE_LENGTH} characters more; --json shows all`;
}
