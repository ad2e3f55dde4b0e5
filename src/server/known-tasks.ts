import type { TaskRecord } from '../backend/record.ts';
import type { Engine } from '../engine/engine.ts';
import { isHoldfastError } from '../errors.ts';
import type { JsonObject } from '../protocol/json.ts';
import { ANONYMOUS } from './principal.ts';
import { toLegacyTask } from './legacy-task.ts';
import { InvalidParams } from './task-methods.ts';

/** Tasks on one page of `tasks/list`. */
const PAGE_SIZE = 100;

/** Most tasks that one connection without authentication can list. */
const MAX_KNOWN = 1_000;

/** Who lists, and whose tasks. */
interface Listing {
	readonly runtime: { readonly engine: () => Engine };
	readonly principal: string;
}

/**
 * `tasks/list` for one connection (L02). A principal sees all its tasks. Where nobody is authenticated
 * everybody is one principal and the unguessable id is the only key, so a connection sees the tasks that it
 * created or has named itself.
 */
export class KnownTasks {
	/** In the order in which they became known. */
	readonly #taskIds = new Set<string>();

	/** Notes that the connection knows a task's id. */
	add(taskId: string): void {
		this.#taskIds.add(taskId);
		const [oldest] = this.#taskIds;
		if (this.#taskIds.size > MAX_KNOWN && oldest !== undefined) this.#taskIds.delete(oldest);
	}

	/**
	 * One page, newest first.
	 *
	 * @throws InvalidParams for a cursor that no page gave.
	 */
	async page({ runtime, principal }: Listing, cursor: unknown): Promise<JsonObject> {
		const engine = runtime.engine();
		const after = cursor === undefined ? null : positionOf(cursor);
		const { records, next } =
			principal === ANONYMOUS ? await this.#known(engine, after) : await ownTasks(engine, principal, after);
		const tasks = records.map((record) => ({ ...toLegacyTask(record, engine.nowMs()) }));
		return { tasks, ...(next !== null && { nextCursor: cursorAt(next) }) };
	}

	async #known(engine: Engine, after: string | null): Promise<Page> {
		const newest = [...this.#taskIds].reverse();
		const from = after === null ? 0 : newest.indexOf(after) + 1;
		if (after !== null && from === 0) throw invalidCursor();
		const taskIds = newest.slice(from, from + PAGE_SIZE);
		const last = taskIds.at(-1);
		return {
			records: await readAll(engine, taskIds, ANONYMOUS),
			next: last !== undefined && newest.length > from + PAGE_SIZE ? last : null,
		};
	}
}

interface Page {
	readonly records: readonly TaskRecord[];
	/** From where the next page goes on; null on the last one. */
	readonly next: string | null;
}

async function ownTasks(engine: Engine, principal: string, cursor: string | null): Promise<Page> {
	const page = await engine.list({ principal, statuses: null, limit: PAGE_SIZE, cursor });
	const taskIds = page.records.map(({ taskId }) => taskId);
	// Read one by one: a list has no results, and without its result a failed tool call looks completed.
	return { records: await readAll(engine, taskIds, principal), next: page.nextCursor };
}

/** Records by id, without those that are gone. */
async function readAll(
	engine: Engine,
	taskIds: readonly string[],
	principal: string,
): Promise<readonly TaskRecord[]> {
	const records: TaskRecord[] = [];
	for (const taskId of taskIds) {
		try {
			records.push(await engine.get(taskId, principal));
		} catch (error) {
			if (!isHoldfastError(error, 'TASK_NOT_FOUND')) throw error;
		}
	}
	return records;
}

const CURSOR_PREFIX = 'holdfast:';

function cursorAt(position: string): string {
	return Buffer.from(CURSOR_PREFIX + position, 'utf8').toString('base64url');
}

function positionOf(cursor: unknown): string {
	const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString('utf8') : '';
	const position = text.slice(CURSOR_PREFIX.length);
	if (!text.startsWith(CURSOR_PREFIX) || cursorAt(position) !== cursor) throw invalidCursor();
	return position;
}

function invalidCursor(): InvalidParams {
	return new InvalidParams('params.cursor is not one that tasks/list gave');
}
