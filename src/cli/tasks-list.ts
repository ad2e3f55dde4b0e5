import type { TaskRecord } from '../backend/record.ts';
import type { TaskStatus } from '../protocol/status.ts';
import type { StoreOptions } from './arguments.ts';
import { EXIT_CODES } from './failure.ts';
import { type OpenStore, withOpenStore } from './open-store.ts';
import { span, standOf, STATUS_COLOURS, summaryOf } from './task-view.ts';
import { type Paint, paintFor, safeJson, table, widthOf } from './terminal.ts';

/** Options of `holdfast tasks list`. */
export interface ListOptions extends StoreOptions {
	readonly status?: readonly TaskStatus[];
	readonly principal?: string;
	readonly limit: number;
	readonly json?: boolean;
}

/** Most tasks that are read from the store at once. */
const PAGE = 500;

/** Shows the tasks of a store, newest first. */
export function listTasks(options: ListOptions): Promise<number> {
	return withOpenStore(options, async (store) => {
		const { records, isMore } = await read(store, options);
		const { stdout, stderr } = process;
		if (options.json === true) {
			stdout.write(`${safeJson({ tasks: records.map(summaryOf), isMore })}\n`);
			return EXIT_CODES.ok;
		}
		if (records.length === 0) stderr.write('No tasks match.\n');
		else stdout.write(asTable(records, store.nowMs(), widthOf(stdout), paintFor(stdout)));
		if (isMore) stderr.write(`There are more; --limit is ${options.limit}.\n`);
		return EXIT_CODES.ok;
	});
}

async function read(
	{ backend, nowMs }: OpenStore,
	{ principal, status, limit }: ListOptions,
): Promise<{ records: readonly TaskRecord[]; isMore: boolean }> {
	const records: TaskRecord[] = [];
	let cursor: string | null = null;
	do {
		const room: number = Math.min(PAGE, limit - records.length);
		const page = await backend.store.list({
			principal: principal ?? null,
			statuses: status ?? null,
			limit: room,
			cursor,
		});
		records.push(...page.records.filter((record) => record.createdAtMs + record.ttlMs > nowMs()));
		cursor = page.nextCursor;
	} while (cursor !== null && records.length < limit);
	return { records, isMore: cursor !== null };
}

function asTable(records: readonly TaskRecord[], nowMs: number, width: number, paint: Paint): string {
	const rows = records.map((record) => [
		record.taskId,
		span(nowMs - record.createdAtMs),
		record.status,
		record.tool,
		standOf(record),
	]);
	const [heading = '', ...lines] = table([['TASK', 'AGE', 'STATUS', 'TOOL', 'PROGRESS'], ...rows], width)
		.trimEnd()
		.split('\n');
	// Coloured last: colours take no room, but would be counted.
	const coloured = lines.map((line, index) => {
		const status = records[index]?.status ?? 'working';
		return line.replace(`  ${status}  `, `  ${paint(STATUS_COLOURS[status], status)}  `);
	});
	return `${[paint('bold', heading), ...coloured].join('\n')}\n`;
}
