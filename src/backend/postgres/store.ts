import { isDeepStrictEqual } from 'node:util';
import { isTerminal } from '../../protocol/status.ts';
import type { JsonObject } from '../../protocol/json.ts';
import type { TimeSource } from '../backend.ts';
import { decodeText, encodeText } from '../columns.ts';
import type { TaskDetails, TaskRecord, TaskStep } from '../record.ts';
import type {
	CreateOutcome,
	Durability,
	HeldLease,
	LeaseClaim,
	TaskLimits,
	TaskPage,
	TaskQuery,
	TaskStore,
} from '../store.ts';
import type { Database, Run, Work } from './database.ts';
import { changingColumns, decodeJson, decodeRecord, encodeResult, type TaskRow } from './row.ts';
import type { Statements } from './statements.ts';

/** What `synchronous_commit` is for a write that a power cut may lose. */
const NORMAL = 'off';

/** Greater than every id. */
const BEFORE_ALL = '9223372036854775807';

type LoadedRow = readonly [...Required<TaskRow>, arguments: string, prepared: string, hasSteps: boolean];

/**
 * Keeps tasks in Postgres. Every change is one statement, hence one transaction and one way there and back; only a
 * result that is kept in parts takes several.
 *
 * A statement whose answer was lost is sent again. Each is such that the second time changes nothing and gives the
 * same answer.
 */
export class PostgresStore implements TaskStore {
	readonly #database: Database;
	readonly #sql: Statements;
	readonly #time: TimeSource | undefined;
	#full = 'on';

	constructor(database: Database, statements: Statements, time: TimeSource | undefined) {
		this.#database = database;
		this.#sql = statements;
		this.#time = time;
	}

	/** Called once the database is reached: a server may be set up to confirm more than its own disk, or less. */
	async open(run: Run): Promise<void> {
		const [row] = await run<[level: string]>(this.#sql.defaultCommit, []);
		const level = row?.[0] ?? NORMAL;
		this.#full = level === NORMAL || level === 'local' ? 'on' : level;
	}

	async nowMs(): Promise<number> {
		if (this.#time) return this.#time.nowMs();
		const [row] = await this.#database.run<[nowMs: number]>(this.#sql.now, []);
		if (!row) throw new Error('Postgres did not say what time it is');
		return row[0];
	}

	async create(details: TaskDetails, limits: TaskLimits): Promise<CreateOutcome> {
		const { record, steps } = details;
		const result = encodeResult(record.result);
		const principal = encodeText(record.principal);
		const parameters = [
			encodeText(record.taskId),
			principal,
			record.idempotencyKey === null ? null : encodeText(record.idempotencyKey),
			encodeText(record.tool),
			record.createdAtMs,
			JSON.stringify(details.arguments),
			JSON.stringify(details.prepared),
			...changingColumns(record, result),
			steps.map(({ name }) => encodeText(name)),
			steps.map(({ value }) => JSON.stringify(value)),
			limits.maxOpen,
			limits.maxOpenPerPrincipal,
			this.#full,
		];
		const [row] = await this.#write(result.parts, (run) =>
			run<[id: string | null, isKnown: boolean, total: number, open: number, ended: number]>(
				this.#sql.create,
				parameters,
			),
		);
		if (!row) throw new Error('Postgres did not say whether the task was created');
		const [id, isKnown, total, open, ended] = row;
		if (id === null) {
			// One with the same key that was there before, or came at the same time; or this very task, whose first
			// confirmation was lost.
			const existing = await this.#existing(record);
			if (existing) return existing;
			// It went away this moment.
			if (isKnown) return this.create(details, limits);
			return total >= limits.maxOpen
				? { kind: 'limit', scope: 'total', limit: limits.maxOpen }
				: open >= limits.maxOpenPerPrincipal
					? { kind: 'limit', scope: 'principal', limit: limits.maxOpenPerPrincipal }
					: this.create(details, limits);
		}
		const surplus = ended + (isTerminal(record.status) ? 1 : 0) - limits.maxKeptPerPrincipal;
		if (surplus > 0) await this.#database.run(this.#sql.evict, [principal, surplus, NORMAL]);
		return { kind: 'created' };
	}

	async get(taskId: string): Promise<TaskRecord | undefined> {
		const [row] = await this.#database.run<Required<TaskRow>>(this.#sql.get, [encodeText(taskId)]);
		return row && this.#decode(row);
	}

	async load(taskId: string): Promise<TaskDetails | undefined> {
		const [row] = await this.#database.run<LoadedRow>(this.#sql.load, [encodeText(taskId)]);
		const record = row && (await this.#decode(row));
		if (!record) return undefined;
		const steps = row[24]
			? await this.#database.run<[name: string, value: string]>(this.#sql.steps, [row[0]])
			: [];
		return {
			record,
			arguments: decodeJson(row[22]) as JsonObject,
			prepared: decodeJson(row[23]),
			steps: steps.map(([name, value]) => ({ name: decodeText(name), value: decodeJson(value) })),
		};
	}

	async replace(record: TaskRecord, durability: Durability): Promise<boolean> {
		const result = encodeResult(record.result);
		const statement = isTerminal(record.status) ? this.#sql.end : this.#sql.replace;
		const parameters = [
			encodeText(record.taskId),
			record.revision - 1,
			...changingColumns(record, result),
			durability === 'full' ? this.#full : NORMAL,
		];
		let isRepeated = false;
		const rows = await this.#write(result.parts, (run, isAgain) => {
			isRepeated = isAgain;
			return run<[id: string]>(statement, parameters);
		});
		return rows.length > 0 || (isRepeated && this.#isStored(record));
	}

	async saveStep(taskId: string, token: string, { name, value }: TaskStep): Promise<boolean> {
		const rows = await this.#database.run(this.#sql.saveStep, [
			...[encodeText(taskId), encodeText(token), encodeText(name), JSON.stringify(value)],
			this.#full,
		]);
		return rows.length > 0;
	}

	async renew(leases: readonly LeaseClaim[], expiresAtMs: number): Promise<readonly HeldLease[]> {
		if (leases.length === 0) return [];
		const rows = await this.#database.run<[taskId: string, revision: number]>(this.#sql.renew, [
			leases.map(({ taskId }) => encodeText(taskId)),
			leases.map(({ token }) => encodeText(token)),
			expiresAtMs,
			NORMAL,
		]);
		return rows.map(([taskId, revision]) => ({ taskId: decodeText(taskId), revision }));
	}

	async due(nowMs: number, limit: number): Promise<readonly string[]> {
		const rows = await this.#database.run<[taskId: string]>(this.#sql.due, [nowMs, limit]);
		return rows.map(([taskId]) => decodeText(taskId));
	}

	async list({ principal, statuses, limit, cursor }: TaskQuery): Promise<TaskPage> {
		// One more than asked for tells whether there is another page.
		const rows = await this.#database.run<TaskRow>(this.#sql.list({ principal }), [
			cursor ?? BEFORE_ALL,
			limit + 1,
			statuses,
			...(principal === null ? [] : [encodeText(principal)]),
		]);
		const page = rows.slice(0, limit);
		return {
			records: page.map((row) => decodeRecord(row, null)),
			nextCursor: rows.length > limit ? (page.at(-1)?.[0] ?? cursor) : null,
		};
	}

	async remove(taskId: string, revision: number): Promise<boolean> {
		const rows = await this.#database.run(this.#sql.remove, [encodeText(taskId), revision, NORMAL]);
		return rows.length > 0;
	}

	/** What is in the way of a create: a task with the same key, or the same task. */
	async #existing(record: TaskRecord): Promise<CreateOutcome | undefined> {
		const { taskId, principal, idempotencyKey } = record;
		if (idempotencyKey === null) return (await this.get(taskId)) && { kind: 'created' };
		const [row] = await this.#database.run<Required<TaskRow>>(this.#sql.getByKey, [
			encodeText(principal),
			encodeText(idempotencyKey),
		]);
		const existing = row && (await this.#decode(row));
		if (!existing) return undefined;
		return existing.taskId === taskId ? { kind: 'created' } : { kind: 'exists', record: existing };
	}

	/** A result in parts is read by parts; undefined when its task was removed meanwhile. */
	async #decode(row: Required<TaskRow> | LoadedRow): Promise<TaskRecord | undefined> {
		const [id, inline, count] = [row[0], row[20], row[21]];
		if (count === 0) return decodeRecord(row as TaskRow, inline === null ? null : parseResult(inline));
		const parts = await this.#database.run<[value: string]>(this.#sql.parts, [id, count]);
		if (parts.length < count) return undefined;
		return decodeRecord(row as TaskRow, parseResult(parts.map(([value]) => value).join('')));
	}

	/** Whether this very record is stored: it was written, and the confirmation was lost. */
	async #isStored(record: TaskRecord): Promise<boolean> {
		const stored = await this.get(record.taskId);
		return stored !== undefined && isDeepStrictEqual(writtenBy(stored), writtenBy(record));
	}

	/** Runs a statement that answers the id of the task it wrote, and writes the parts of its result with it. */
	#write<Row extends readonly [id: string | null, ...unknown[]]>(
		parts: readonly string[],
		work: Work<Row[]>,
	): Promise<Row[]> {
		if (parts.length === 0) return this.#database.attempt(work);
		return this.#database.transaction(async (run, isRepeated) => {
			const rows = await work(run, isRepeated);
			const id = rows[0]?.[0];
			if (typeof id !== 'string') return rows;
			for (const [index, part] of parts.entries()) await run(this.#sql.putPart, [id, index + 1, part]);
			return rows;
		});
	}
}

/** What one writer wrote, as it comes back: without what moves on with the same revision. */
function writtenBy(record: TaskRecord): unknown {
	const fixed = { ...record, lease: record.lease?.token ?? null, dueAtMs: 0, journalled: true };
	return JSON.parse(JSON.stringify(fixed)) as unknown;
}

function parseResult(text: string): JsonObject {
	return JSON.parse(text) as JsonObject;
}
