import { isTerminal } from '../protocol/status.ts';
import type { StoreOptions } from './arguments.ts';
import { EXIT_CODES, Failure } from './failure.ts';
import { withOpenStore } from './open-store.ts';
import { summaryOf, workerName } from './task-view.ts';
import { safeJson } from './terminal.ts';

/** Options of `holdfast tasks cancel`. */
export interface CancelOptions extends StoreOptions {
	readonly json?: boolean;
}

/** Asks for the end of a task, whoever it belongs to. */
export function cancelTask(taskId: string, options: CancelOptions): Promise<number> {
	return withOpenStore(options, async ({ writer, find, nowMs }) => {
		let { record } = await writer.apply(taskId, { type: 'cancel' }, await find(taskId));
		// No worker would see the request where the one that held the task is dead.
		if (record?.lease && record.lease.expiresAtMs <= nowMs())
			({ record } = await writer.apply(taskId, { type: 'sweep' }, record));
		if (!record) throw new Failure(`The task ${taskId} was removed this moment.`);
		if (isTerminal(record.status) && record.status !== 'cancelled')
			throw new Failure(`The task ${taskId} has already ended: it is ${record.status}.`);
		process.stdout.write(
			options.json === true
				? `${safeJson(summaryOf(record))}\n`
				: record.status === 'cancelled'
					? `${taskId} is cancelled.\n`
					: `${taskId} was asked to stop; its worker (${workerName(record.lease?.owner ?? '')}) ends it.\n`,
		);
		return EXIT_CODES.ok;
	});
}
