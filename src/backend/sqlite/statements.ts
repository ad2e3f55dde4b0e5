import { TASK_STATUSES, type TaskStatus } from '../../protocol/status.ts';
import type { TaskQuery } from '../store.ts';

/** The columns that make up a record, without its result. */
const RECORD = `tasks.id, task_id, revision, principal, idempotency_key, tool, status, created_at_ms,
	last_updated_at_ms, ttl_ms, run_at_ms, due_at_ms, cancel_requested_at_ms, lease_owner, lease_token,
	lease_expires_at_ms, journalled, policy_id, body,
	CASE WHEN has_inputs THEN (SELECT value FROM inputs WHERE inputs.id = tasks.id) END AS inputs`;

const RECORD_WITH_RESULT = `${RECORD},
	CASE WHEN has_result THEN (SELECT value FROM results WHERE results.id = tasks.id) END AS result`;

export const GET = `SELECT ${RECORD_WITH_RESULT} FROM tasks WHERE task_id = ?`;

export const GET_BY_KEY = `SELECT ${RECORD_WITH_RESULT} FROM tasks WHERE principal = ? AND idempotency_key = ?`;

export const GET_PAYLOAD = 'SELECT arguments, prepared FROM payloads WHERE id = ?';

export const GET_STEPS = 'SELECT name, value FROM steps WHERE task = ? ORDER BY id';

export const COUNT = `SELECT
	(SELECT open FROM counters WHERE id = 0) AS total,
	coalesce((SELECT open FROM counters WHERE principal = ?1), 0) AS open,
	coalesce((SELECT ended FROM counters WHERE principal = ?1), 0) AS ended`;

export const INSERT = `INSERT INTO tasks (task_id, principal, idempotency_key, tool, created_at_ms,
	revision, last_updated_at_ms, ttl_ms, cancel_requested_at_ms, lease_owner, lease_token, lease_expires_at_ms,
	journalled, policy_id, has_result, has_inputs, body, status, run_at_ms, due_at_ms)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

export const INSERT_PAYLOAD = 'INSERT INTO payloads (id, arguments, prepared) VALUES (?, ?, ?)';

/** The columns that have an index. */
export const INDEXED =
	'SELECT id, status, run_at_ms, due_at_ms FROM tasks WHERE task_id = ? AND revision = ?';

/** Which indexed columns a replacement changes. */
export interface IndexedChanges {
	readonly status: boolean;
	readonly runAtMs: boolean;
	readonly dueAtMs: boolean;
}

/**
 * SQLite rewrites the index of every column that is set, also when its value stays the same. So the indexed
 * columns are left out where they do not change: a progress write touches no index at all.
 */
export function replaceSql({ status, runAtMs, dueAtMs }: IndexedChanges): string {
	return REPLACE[(status ? 1 : 0) + (runAtMs ? 2 : 0) + (dueAtMs ? 4 : 0)] as string;
}

const REPLACE: readonly string[] = [0, 1, 2, 3, 4, 5, 6, 7].map(
	(flags) => `UPDATE tasks SET revision = ?, last_updated_at_ms = ?, ttl_ms = ?, cancel_requested_at_ms = ?,
		lease_owner = ?, lease_token = ?, lease_expires_at_ms = ?, journalled = ?, policy_id = ?, has_result = ?,
		has_inputs = ?, body = ?${flags & 1 ? ', status = ?' : ''}${flags & 2 ? ', run_at_ms = ?' : ''}
		${flags & 4 ? ', due_at_ms = ?' : ''} WHERE id = ?`,
);

export const PUT_RESULT = 'INSERT OR REPLACE INTO results (id, value) VALUES (?, ?)';

/** Writes nothing where the questions and answers are the same, since they can be large. */
export const PUT_INPUTS = `INSERT INTO inputs (id, value) VALUES (?, ?)
	ON CONFLICT (id) DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value`;

export const INSERT_CHANGE = 'INSERT INTO changes (task, origin) VALUES (?, ?)';

export const PRUNE_CHANGES = 'DELETE FROM changes WHERE seq <= ?';

export const LAST_CHANGE = 'SELECT coalesce(max(seq), 0) AS seq FROM changes';

export const CHANGES_OF_OTHERS = `SELECT DISTINCT tasks.task_id, tasks.revision, tasks.run_at_ms IS NOT NULL AS runnable
	FROM changes JOIN tasks ON tasks.id = changes.task
	WHERE changes.seq > ? AND changes.seq <= ? AND changes.origin <> ?`;

export const DATA_VERSION = 'PRAGMA data_version';

export const HELD = 'SELECT id, journalled FROM tasks WHERE task_id = ? AND lease_token = ?';

export const MARK_JOURNALLED = 'UPDATE tasks SET journalled = 1 WHERE id = ?';

export const INSERT_STEP = 'INSERT INTO steps (task, name, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING';

export const RENEW = `UPDATE tasks SET lease_expires_at_ms = ?1, due_at_ms = ?1
	WHERE task_id = ?2 AND lease_token = ?3 RETURNING revision`;

export const DUE = 'SELECT task_id FROM tasks WHERE due_at_ms <= ? ORDER BY due_at_ms LIMIT ?';

export const RUNNABLE = 'SELECT task_id FROM tasks WHERE run_at_ms <= ? ORDER BY run_at_ms, id LIMIT ?';

export const NEXT_RUN_AT = 'SELECT min(run_at_ms) AS run_at_ms FROM tasks WHERE run_at_ms IS NOT NULL';

export const REMOVE = 'DELETE FROM tasks WHERE task_id = ? AND revision = ? RETURNING id';

/** Each status by itself, so that the index gives the oldest without any sorting of the rest. */
export const EVICT = `DELETE FROM tasks WHERE id IN (
	SELECT id FROM (${oldest('completed')} UNION ALL ${oldest('failed')} UNION ALL ${oldest('cancelled')})
	ORDER BY id LIMIT ?2)`;

function oldest(status: TaskStatus): string {
	return `SELECT * FROM (SELECT id FROM tasks WHERE principal = ?1 AND status = '${status}' ORDER BY id LIMIT ?2)`;
}

/** Parameters: the cursor, the limit and the principal, if any. */
export function listSql({ principal, statuses }: Pick<TaskQuery, 'principal' | 'statuses'>): string {
	const last = 'ORDER BY id DESC LIMIT ?2';
	if (principal === null && statuses === null) return `SELECT ${RECORD} FROM tasks WHERE id < ?1 ${last}`;
	const owned = principal === null ? '' : 'AND principal = ?3';
	const branches = TASK_STATUSES.filter((status) => statuses?.includes(status) ?? true).map(
		(status) =>
			`SELECT * FROM (SELECT id FROM tasks WHERE status = '${status}' ${owned} AND id < ?1 ${last})`,
	);
	return `SELECT ${RECORD} FROM (SELECT * FROM (${branches.join(' UNION ALL ')}) ${last}) AS found
		CROSS JOIN tasks ON tasks.id = found.id ORDER BY found.id DESC`;
}
