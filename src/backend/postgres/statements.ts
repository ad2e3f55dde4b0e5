import type { TaskQuery } from '../store.ts';
import type { Statement } from './database.ts';
import { RECORD_COLUMNS, RESULT_COLUMNS } from './row.ts';

/** Over how many rows each counter is spread. */
const SLOTS = 16;

const IS_OPEN = "status IN ('working', 'input_required')";

/** A write waits for the disk, or not, until its transaction is committed; the last parameter says which. */
const commitAs = (parameter: number): string => `set_config('synchronous_commit', $${parameter}, true)`;

/** Every statement of a store, for one schema. */
export interface Statements {
	readonly now: Statement;
	readonly defaultCommit: Statement;
	readonly get: Statement;
	readonly getByKey: Statement;
	readonly load: Statement;
	readonly parts: Statement;
	readonly steps: Statement;
	readonly create: Statement;
	readonly replace: Statement;
	readonly end: Statement;
	readonly putPart: Statement;
	readonly saveStep: Statement;
	readonly renew: Statement;
	readonly due: Statement;
	readonly take: Statement;
	readonly nextRunAt: Statement;
	readonly remove: Statement;
	readonly evict: Statement;
	/** Parameters: the cursor, the limit, the statuses or null, and the principal, if any. */
	list(query: Pick<TaskQuery, 'principal'>): Statement;
	readonly tell: Statement;
	readonly lastChange: Statement;
	readonly changesSince: Statement;
	readonly pruneChanges: Statement;
}

/** The columns that a replacement sets, as in `changingColumns`, beginning with a parameter. */
function setters(first: number): string {
	const columns = [
		...['revision', 'status', 'last_updated_at_ms', 'ttl_ms', 'run_at_ms', 'due_at_ms'],
		...[
			'cancel_requested_at_ms',
			'lease_owner',
			'lease_token',
			'lease_expires_at_ms',
			'journalled',
			'policy',
		],
		'body',
	];
	const inputs = `$${first + columns.length}::text`;
	return [
		...columns.map((column, index) => `${column} = $${first + index}`),
		// The stored value itself, where it is the same: a large one is then not written again.
		`inputs = CASE WHEN tasks.inputs IS DISTINCT FROM ${inputs} THEN ${inputs} ELSE tasks.inputs END`,
		`result = $${first + columns.length + 1}`,
		`result_parts = $${first + columns.length + 2}`,
		'offered_until_ms = 0',
	].join(', ');
}

/** Parameters of {@link setters}. */
const SETTERS = 16;

export function statementsFor(schema: string): Statements {
	const table = (name: string): string => `"${schema}".${name}`;
	const tasks = `${table('tasks')} AS tasks`;
	const named = (name: string, text: string): Statement => ({ name: `holdfast ${schema} ${name}`, text });

	/** Moves counters; `moves` has `principal`, `open` and `ended` of one task each. */
	const count = (moves: string): string => `counted AS (
			INSERT INTO ${table('counters')} AS counters (principal, slot, open, ended)
			SELECT principal, pg_backend_pid() % ${SLOTS}, sum(open), sum(ended) FROM ${moves} GROUP BY principal
			ON CONFLICT (md5(principal), slot)
			DO UPDATE SET open = counters.open + excluded.open, ended = counters.ended + excluded.ended
		), totalled AS (
			INSERT INTO ${table('totals')} AS totals (slot, open)
			SELECT pg_backend_pid() % ${SLOTS}, sum(open) FROM ${moves} HAVING sum(open) <> 0
			ON CONFLICT (slot) DO UPDATE SET open = totals.open + excluded.open
		)`;

	/** Deletes tasks with all they have. */
	const forget = (which: string): string => `WITH gone AS (
			DELETE FROM ${tasks} WHERE ${which} RETURNING id, principal, status
		), without_steps AS (DELETE FROM ${table('steps')} AS steps USING gone WHERE steps.task = gone.id
		), without_results AS (DELETE FROM ${table('results')} AS results USING gone WHERE results.task = gone.id
		), moves AS (
			SELECT principal, CASE WHEN ${IS_OPEN} THEN -1 ELSE 0 END AS open,
				CASE WHEN ${IS_OPEN} THEN 0 ELSE -1 END AS ended FROM gone
		), ${count('moves')}`;

	return {
		now: named('now', 'SELECT extract(epoch FROM clock_timestamp())::double precision * 1000'),
		defaultCommit: named('default commit', "SELECT current_setting('synchronous_commit')"),
		get: named('get', `SELECT ${RECORD_COLUMNS}, ${RESULT_COLUMNS} FROM ${tasks} WHERE task_id = $1`),
		getByKey: named(
			'get by key',
			`SELECT ${RECORD_COLUMNS}, ${RESULT_COLUMNS} FROM ${tasks}
			WHERE md5(principal) = md5($1) AND md5(idempotency_key) = md5($2) AND principal = $1 AND idempotency_key = $2`,
		),
		load: named(
			'load',
			`SELECT ${RECORD_COLUMNS}, ${RESULT_COLUMNS}, arguments, prepared,
				EXISTS (SELECT 1 FROM ${table('steps')} WHERE task = tasks.id)
			FROM ${tasks} WHERE task_id = $1`,
		),
		parts: named(
			'parts',
			`SELECT value FROM ${table('results')} WHERE task = $1 AND part <= $2 ORDER BY part`,
		),
		steps: named('steps', `SELECT name, value FROM ${table('steps')} WHERE task = $1 ORDER BY id`),
		create: named('create', createText(table, count)),
		replace: named(
			'replace',
			`UPDATE ${tasks} SET ${setters(3)} WHERE task_id = $1 AND revision = $2
			RETURNING id, ${commitAs(3 + SETTERS)}`,
		),
		end: named(
			'end',
			`WITH old AS (SELECT id, ${IS_OPEN} AS was_open FROM ${tasks} WHERE task_id = $1 AND revision = $2 FOR UPDATE
			), ended AS (
				UPDATE ${tasks} SET ${setters(3)} FROM old WHERE tasks.id = old.id RETURNING tasks.id, principal, was_open
			), moves AS (SELECT principal, -1 AS open, 1 AS ended FROM ended WHERE was_open
			), ${count('moves')}
			SELECT id, ${commitAs(3 + SETTERS)} FROM ended`,
		),
		putPart: named(
			'put part',
			`INSERT INTO ${table('results')} (task, part, value) VALUES ($1, $2, $3)
			ON CONFLICT (task, part) DO UPDATE SET value = excluded.value`,
		),
		saveStep: named(
			'save step',
			`WITH held AS (
				SELECT id, journalled FROM ${tasks} WHERE task_id = $1 AND lease_token = $2 FOR NO KEY UPDATE
			), saved AS (
				INSERT INTO ${table('steps')} (task, name, value) SELECT id, $3, $4 FROM held ON CONFLICT DO NOTHING
			), marked AS (
				UPDATE ${tasks} SET journalled = true FROM held WHERE tasks.id = held.id AND NOT held.journalled
			)
			SELECT id, ${commitAs(5)} FROM held`,
		),
		renew: named(
			'renew',
			`UPDATE ${tasks} SET lease_expires_at_ms = $3, due_at_ms = $3
			FROM unnest($1::text[], $2::text[]) AS claims (task_id, token)
			WHERE tasks.task_id = claims.task_id AND tasks.lease_token = claims.token
			RETURNING tasks.task_id, revision, ${commitAs(4)}`,
		),
		due: named('due', `SELECT task_id FROM ${tasks} WHERE due_at_ms <= $1 ORDER BY due_at_ms, id LIMIT $2`),
		take: named(
			'take',
			`WITH taken AS (
				UPDATE ${tasks} SET offered_until_ms = $3 WHERE id IN (
					SELECT id FROM ${table('tasks')} WHERE run_at_ms <= $1 AND offered_until_ms <= $1
					ORDER BY run_at_ms, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
				) RETURNING task_id, run_at_ms, id
			)
			SELECT task_id, ${commitAs(4)} FROM taken ORDER BY run_at_ms, id`,
		),
		nextRunAt: named(
			'next run at',
			`SELECT greatest(run_at_ms, offered_until_ms) AS at_ms FROM (
				SELECT run_at_ms, offered_until_ms FROM ${tasks} WHERE run_at_ms IS NOT NULL ORDER BY run_at_ms, id LIMIT 64
			) AS first ORDER BY at_ms LIMIT 1`,
		),
		remove: named(
			'remove',
			`${forget('task_id = $1 AND revision = $2')} SELECT id, ${commitAs(3)} FROM gone`,
		),
		evict: named(
			'evict',
			`${forget(`id IN (SELECT id FROM ${table('tasks')} WHERE md5(principal) = md5($1) AND principal = $1
				AND NOT ${IS_OPEN} ORDER BY id LIMIT $2)`)} SELECT id, ${commitAs(3)} FROM gone`,
		),
		list: ({ principal }) => ({
			// Never prepared: one plan for all filters would be the wrong one for most.
			name: '',
			text: `SELECT ${RECORD_COLUMNS} FROM ${tasks} WHERE id < $1
				AND ($3::text[] IS NULL OR status = ANY ($3))
				${principal === null ? '' : 'AND md5(principal) = md5($4) AND principal = $4'}
				ORDER BY id DESC LIMIT $2`,
		}),
		tell: named(
			'tell',
			`WITH logged AS (INSERT INTO ${table('changes')} (batch) SELECT unnest($2::text[]))
			SELECT pg_notify($1, batch), ${commitAs(3)} FROM unnest($2::text[]) AS told (batch)`,
		),
		lastChange: named('last change', `SELECT coalesce(max(seq), 0) FROM ${table('changes')}`),
		changesSince: named(
			'changes since',
			`SELECT seq, at < clock_timestamp() - interval '2 seconds', batch FROM ${table('changes')}
			WHERE seq > $1 ORDER BY seq LIMIT 1000`,
		),
		pruneChanges: named(
			'prune changes',
			`WITH pruned AS (DELETE FROM ${table('changes')} WHERE at < clock_timestamp() - interval '1 minute')
			SELECT ${commitAs(1)}`,
		),
	};
}

/**
 * One statement, which is one transaction and one wait. It writes nothing where the key is taken or a limit reached;
 * what it answers says which. Creates at the same time do not see each other in the counters.
 */
function createText(table: (name: string) => string, count: (moves: string) => string): string {
	return `WITH known AS (
			SELECT 1 FROM ${table('tasks')} WHERE md5(principal) = md5($2) AND md5(idempotency_key) = md5($3)
				AND principal = $2 AND idempotency_key = $3
		), numbers AS (
			SELECT (SELECT coalesce(sum(open), 0) FROM ${table('totals')})::double precision AS total,
				coalesce(sum(open), 0)::double precision AS open, coalesce(sum(ended), 0)::double precision AS ended
			FROM ${table('counters')} WHERE md5(principal) = md5($2) AND principal = $2
		), inserted AS (
			INSERT INTO ${table('tasks')} (task_id, principal, idempotency_key, tool, created_at_ms, arguments, prepared,
				revision, status, last_updated_at_ms, ttl_ms, run_at_ms, due_at_ms, cancel_requested_at_ms, lease_owner,
				lease_token, lease_expires_at_ms, journalled, policy, body, inputs, result, result_parts)
			SELECT $1::text, $2::text, $3::text, $4::text, $5::double precision, $6::text, $7::text,
				$8::integer, $9::text, $10::double precision, $11::double precision, $12::double precision,
				$13::double precision, $14::double precision, $15::text,
				$16::text, $17::double precision, $18::boolean, $19::text, $20::text, $21::text, $22::text, $23::integer
			FROM numbers WHERE NOT EXISTS (SELECT 1 FROM known) AND total < $26 AND open < $27
			ON CONFLICT DO NOTHING RETURNING id, principal, status
		), saved AS (
			INSERT INTO ${table('steps')} (task, name, value)
			SELECT id, name, value FROM inserted, unnest($24::text[], $25::text[]) WITH ORDINALITY AS step (name, value, n)
			ORDER BY n
		), moves AS (
			SELECT principal, CASE WHEN ${IS_OPEN} THEN 1 ELSE 0 END AS open,
				CASE WHEN ${IS_OPEN} THEN 0 ELSE 1 END AS ended FROM inserted
		), ${count('moves')}
		SELECT (SELECT id FROM inserted), EXISTS (SELECT 1 FROM known), total, open, ended, ${commitAs(28)} FROM numbers`;
}
