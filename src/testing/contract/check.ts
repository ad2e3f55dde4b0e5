import type { Backend } from '../../backend/backend.ts';
import type { TaskDetails, TaskRecord } from '../../backend/record.ts';
import type { CreateOutcome, TaskStore } from '../../backend/store.ts';
import { TEST_LIMITS } from '../records.ts';

/** Registers one test with a new backend, open and empty. */
export type Check = (name: string, body: (backend: Backend) => Promise<void>) => void;

/** Creates a task where no limit is in the way. */
export function create(store: TaskStore, details: TaskDetails): Promise<CreateOutcome> {
	return store.create(details, TEST_LIMITS);
}

/** The ids of records, in their order. */
export function ids(page: { readonly records: readonly TaskRecord[] }): string[] {
	return page.records.map(({ taskId }) => taskId);
}
