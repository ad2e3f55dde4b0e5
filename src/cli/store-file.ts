import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Backend } from '../backend/backend.ts';
import type { TaskRecord } from '../backend/record.ts';
import { systemClock } from '../engine/clock.ts';
import { isExpired } from '../engine/deadlines.ts';
import { TaskWriter } from '../engine/writer.ts';
import { isHoldfastError } from '../errors.ts';
import { Failure, UsageError } from './failure.ts';

/** The store of an SQLite file, as an operator sees it: every task, whoever it belongs to. */
export interface StoreFile {
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

/** A backend in an SQLite file, not opened yet. */
export async function backendOf(file: string): Promise<Backend> {
	const { sqlite } = await import('../backend/sqlite/index.ts');
	try {
		return sqlite({ file });
	} catch (error) {
		if (isHoldfastError(error, 'INVALID_OPTION'))
			throw new UsageError(`--db ${file} is not the path of a file`);
		throw error;
	}
}

/** Opens the store in a file that must be there, hands it to `work`, and closes it. */
export async function withStoreFile<T>(db: string, work: (store: StoreFile) => Promise<T>): Promise<T> {
	const file = resolve(db);
	if (!existsSync(file))
		throw new Failure(`There is no file ${file}. Name the one that \`holdfast serve\` was given, with --db.`);
	const backend = await backendOf(file);
	await backend.open();
	try {
		const nowMs = (): number => systemClock.nowMs();
		const find = async (taskId: string): Promise<TaskRecord> => {
			const record = await backend.store.get(taskId);
			if (!record || isExpired(record, nowMs())) throw noSuchTask(taskId, file);
			return record;
		};
		return await work({ backend, writer: new TaskWriter(backend, systemClock), nowMs, find });
	} finally {
		await backend.close();
	}
}

function noSuchTask(taskId: string, file: string): Failure {
	return new Failure(
		`There is no task ${taskId} in ${file}. \`holdfast tasks list\` shows those that are there.`,
	);
}
