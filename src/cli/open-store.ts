import type { Backend } from '../backend/backend.ts';
import type { TaskRecord } from '../backend/record.ts';
import { systemClock } from '../engine/clock.ts';
import { isExpired } from '../engine/deadlines.ts';
import { StoreClock } from '../engine/store-clock.ts';
import { TaskWriter } from '../engine/writer.ts';
import type { StoreOptions } from './arguments.ts';
import { Failure } from './failure.ts';
import { existingStore } from './store.ts';

/** A store as an operator sees it: every task, whoever it belongs to. */
export interface OpenStore {
	readonly backend: Backend;
	readonly writer: TaskWriter;
	readonly nowMs: () => number;
	/**
	 * One task by id.
	 *
	 * @throws Failure when there is none.
	 */
	readonly find: (taskId: string) => Promise<TaskRecord>;
}

/** Opens a store that must be there, hands it to `work`, and closes it. */
export async function withOpenStore<T>(
	options: StoreOptions,
	work: (store: OpenStore) => Promise<T>,
): Promise<T> {
	const { backend, place } = await existingStore(options);
	await backend.open();
	try {
		const clock = new StoreClock(systemClock, backend.store);
		await clock.compare();
		const nowMs = (): number => clock.nowMs();
		const find = async (taskId: string): Promise<TaskRecord> => {
			const record = await backend.store.get(taskId);
			if (!record || isExpired(record, nowMs())) throw noSuchTask(taskId, place);
			return record;
		};
		return await work({ backend, writer: new TaskWriter(backend, clock), nowMs, find });
	} finally {
		await backend.close();
	}
}

function noSuchTask(taskId: string, place: string): Failure {
	return new Failure(
		`There is no task ${taskId} in ${place}. \`holdfast tasks list\` shows those that are there.`,
	);
}
