import { isTerminal } from '../../protocol/status.ts';
import type { TimeSource } from '../backend.ts';
import { decodeText, encodeInputs, encodeText } from '../columns.ts';
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
import type { Database } from './database.ts';
import { Policies } from './policies.ts';
import { RecordCache } from './record-cache.ts';
import { plainColumns, decodeJson, decodeRecord, type TaskRow } from './row.ts';
import * as sql from './statements.ts';

/** How many changes other processes may lag behind; a prune every few hundred keeps the log this long. */
const CHANGES_KEPT = 10_000;
const PRUNE_EVERY = 256;

/** Keeps tasks in an SQLite file. Every method is one transaction, and all work is done when it returns. */
export class SqliteStore implements TaskStore {
	readonly #database: Database;
	readonly #time: TimeSource;
	readonly #policies: Policies;
	readonly #cache = new RecordCache();

	constructor(database: Database, time: TimeSource) {
		this.#database = database;
		this.#time = time;
		this.#policies = new Policies(database);
	}

	async nowMs(): Promise<number> {
		return this.#time.nowMs();
	}

	async create(details: TaskDetails, limits: TaskLimits): Promise<CreateOutcome> {
		const { record } = details;
		const principal = encodeText(record.principal);
		const key = record.idempotencyKey === null ? null : encodeText(record.idempotencyKey);
		const inputs = encodeInputs(record);
		// Outside the transaction, as everything that can be: others wait for its end.
		const columns = plainColumns(record, this.#policies.idOf(record.policy), inputs);
		const fixed = [
			encodeText(record.taskId),
			principal,
			key,
			encodeText(record.tool),
			record.createdAtMs,
		] as const;
		const indexed = [record.status, record.runAtMs, record.dueAtMs] as const;
		const payload = [JSON.stringify(details.arguments), JSON.stringify(details.prepared)] as const;
		return this.#database.write<CreateOutcome>('full', () => {
			const existing = key === null ? undefined : this.#one(sql.GET_BY_KEY, principal, key);
			if (existing) return { kind: 'exists', record: existing };
			const { total, open, ended } = this.#count(principal);
			if (total >= limits.maxOpen) return { kind: 'limit', scope: 'total', limit: limits.maxOpen };
			if (open >= limits.maxOpenPerPrincipal)
				return { kind: 'limit', scope: 'principal', limit: limits.maxOpenPerPrincipal };
			const id = Number(
				this.#database.statement(sql.INSERT).run(...fixed, ...columns, ...indexed).lastInsertRowid,
			);
			this.#database.statement(sql.INSERT_PAYLOAD).run(id, ...payload);
			for (const step of details.steps) this.#insertStep(id, step);
			this.#putLargeValues(id, record, inputs);
			this.#noteChange(id);
			const surplus = ended + (isTerminal(record.status) ? 1 : 0) - limits.maxKeptPerPrincipal;
			if (surplus > 0) {
				this.#cache.clear();
				this.#database.statement(sql.EVICT).run(principal, surplus);
			}
			return { kind: 'created' };
		});
	}

	async get(taskId: string): Promise<TaskRecord | undefined> {
		return this.#database.read(() => {
			const cached = this.#cache.get(taskId, this.#dataVersion());
			if (cached) return cached;
			const row = this.#database.tuples<TaskRow>(sql.GET).get(encodeText(taskId));
			if (!row) return undefined;
			const record = this.#decode(row);
			this.#cache.put(record, row[20]?.length ?? 0);
			return record;
		});
	}

	async load(taskId: string): Promise<TaskDetails | undefined> {
		return this.#database.snapshot(() => {
			const row = this.#database.tuples<TaskRow>(sql.GET).get(encodeText(taskId));
			const payload =
				row && this.#database.statement<{ arguments: string; prepared: string }>(sql.GET_PAYLOAD).get(row[0]);
			if (!payload) return undefined;
			return {
				record: this.#decode(row),
				arguments: decodeJson(payload.arguments) as TaskDetails['arguments'],
				prepared: decodeJson(payload.prepared),
				steps: this.#database
					.statement<{ name: string; value: string }>(sql.GET_STEPS)
					.all(row[0])
					.map(({ name, value }) => ({ name: decodeText(name), value: decodeJson(value) })),
			};
		});
	}

	async replace(record: TaskRecord, durability: Durability): Promise<boolean> {
		this.#cache.forget(record.taskId);
		const taskId = encodeText(record.taskId);
		const inputs = encodeInputs(record);
		const columns = plainColumns(record, this.#policies.idOf(record.policy), inputs);
		return this.#database.write(durability, () => {
			const stored = this.#database
				.tuples<readonly [id: number, status: string, runAtMs: number | null, dueAtMs: number]>(sql.INDEXED)
				.get(taskId, record.revision - 1);
			if (!stored) return false;
			const status = stored[1] !== record.status;
			const runAtMs = stored[2] !== record.runAtMs;
			const dueAtMs = stored[3] !== record.dueAtMs;
			const indexed: (string | number | null)[] = [];
			if (status) indexed.push(record.status);
			if (runAtMs) indexed.push(record.runAtMs);
			if (dueAtMs) indexed.push(record.dueAtMs);
			const update = sql.replaceSql({ status, runAtMs, dueAtMs });
			this.#database.statement(update).run(...columns, ...indexed, stored[0]);
			this.#putLargeValues(stored[0], record, inputs);
			this.#noteChange(stored[0]);
			return true;
		});
	}

	async saveStep(taskId: string, token: string, step: TaskStep): Promise<boolean> {
		this.#cache.forget(taskId);
		return this.#database.write('full', () => {
			const held = this.#database
				.statement<{ id: number; journalled: number }>(sql.HELD)
				.get(encodeText(taskId), encodeText(token));
			if (!held) return false;
			this.#insertStep(held.id, step);
			if (held.journalled === 0) this.#database.statement(sql.MARK_JOURNALLED).run(held.id);
			return true;
		});
	}

	async renew(leases: readonly LeaseClaim[], expiresAtMs: number): Promise<readonly HeldLease[]> {
		if (leases.length === 0) return [];
		for (const { taskId } of leases) this.#cache.forget(taskId);
		return this.#database.write('normal', () =>
			leases.flatMap(({ taskId, token }) => {
				const row = this.#database
					.statement<{ revision: number }>(sql.RENEW)
					.get(expiresAtMs, encodeText(taskId), encodeText(token));
				return row ? [{ taskId, revision: row.revision }] : [];
			}),
		);
	}

	async due(nowMs: number, limit: number): Promise<readonly string[]> {
		return this.#database.read(() =>
			this.#database
				.statement<{ task_id: string }>(sql.DUE)
				.all(nowMs, limit)
				.map((row) => decodeText(row.task_id)),
		);
	}

	async list({ principal, statuses, limit, cursor }: TaskQuery): Promise<TaskPage> {
		if (statuses?.length === 0) return { records: [], nextCursor: null };
		return this.#database.snapshot(() => {
			const before = cursor === null ? Number.MAX_SAFE_INTEGER : Number(cursor);
			// One more than asked for tells whether there is another page.
			const rows = this.#database
				.tuples<TaskRow>(sql.listSql({ principal, statuses }))
				.all(before, limit + 1, ...(principal === null ? [] : [encodeText(principal)]));
			const page = rows.slice(0, limit);
			return {
				records: page.map((row) => this.#decode(row)),
				nextCursor: rows.length > limit ? String(page.at(-1)?.[0] ?? before) : null,
			};
		});
	}

	async remove(taskId: string, revision: number): Promise<boolean> {
		this.#cache.forget(taskId);
		// Not worth a wait for the disk: what a power cut brings back is swept once more.
		return this.#database.write(
			'normal',
			() => this.#database.statement(sql.REMOVE).get(encodeText(taskId), revision) !== undefined,
		);
	}

	#dataVersion(): number {
		return this.#database.tuples<readonly [number]>(sql.DATA_VERSION).get()?.[0] ?? 0;
	}

	#one(select: string, ...parameters: string[]): TaskRecord | undefined {
		const row = this.#database.tuples<TaskRow>(select).get(...parameters);
		return row && this.#decode(row);
	}

	#decode(row: TaskRow): TaskRecord {
		return decodeRecord(row, this.#policies.get(row[17]));
	}

	#count(principal: string): { total: number; open: number; ended: number } {
		const counts = this.#database
			.tuples<readonly [total: number, open: number, ended: number]>(sql.COUNT)
			.get(principal);
		if (!counts) throw new Error('its counters are missing');
		return { total: counts[0], open: counts[1], ended: counts[2] };
	}

	#insertStep(id: number, { name, value }: TaskStep): void {
		this.#database.statement(sql.INSERT_STEP).run(id, encodeText(name), JSON.stringify(value));
	}

	#putLargeValues(id: number, record: TaskRecord, inputs: string | null): void {
		if (record.result !== null)
			this.#database.statement(sql.PUT_RESULT).run(id, JSON.stringify(record.result));
		if (inputs !== null) this.#database.statement(sql.PUT_INPUTS).run(id, inputs);
	}

	#noteChange(id: number): void {
		const seq = Number(
			this.#database.statement(sql.INSERT_CHANGE).run(id, this.#database.origin).lastInsertRowid,
		);
		if (seq % PRUNE_EVERY === 0) this.#database.statement(sql.PRUNE_CHANGES).run(seq - CHANGES_KEPT);
	}
}
