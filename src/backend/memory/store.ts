import { isTerminal } from '../../protocol/status.ts';
import type { TimeSource } from '../backend.ts';
import type { TaskDetails, TaskRecord, TaskStep } from '../record.ts';
import type {
	CreateOutcome,
	HeldLease,
	LeaseClaim,
	TaskLimits,
	TaskPage,
	TaskQuery,
	TaskStore,
} from '../store.ts';

interface Entry {
	record: TaskRecord;
	readonly sequence: number;
	readonly details: Omit<TaskDetails, 'record' | 'steps'>;
	readonly steps: TaskStep[];
}

/** The reference store: the contract in its plainest form. Nothing survives the process. */
export class MemoryStore implements TaskStore {
	readonly #time: TimeSource;
	readonly #entries = new Map<string, Entry>();
	readonly #byKey = new Map<string, string>();
	#sequence = 0;

	constructor(time: TimeSource) {
		this.#time = time;
	}

	async nowMs(): Promise<number> {
		return this.#time.nowMs();
	}

	async create(details: TaskDetails, limits: TaskLimits): Promise<CreateOutcome> {
		const { record, steps, ...rest } = details;
		const existing = this.#existing(record);
		if (existing) return { kind: 'exists', record: existing };
		const open = this.records().filter((other) => !isTerminal(other.status));
		if (open.length >= limits.maxOpen) return { kind: 'limit', scope: 'total', limit: limits.maxOpen };
		if (open.filter((other) => other.principal === record.principal).length >= limits.maxOpenPerPrincipal)
			return { kind: 'limit', scope: 'principal', limit: limits.maxOpenPerPrincipal };
		this.#entries.set(record.taskId, {
			record,
			sequence: ++this.#sequence,
			details: structuredClone(rest),
			steps: [...steps],
		});
		if (record.idempotencyKey !== null) this.#byKey.set(keyOf(record), record.taskId);
		this.#evict(record.principal, limits.maxKeptPerPrincipal);
		return { kind: 'created' };
	}

	async get(taskId: string): Promise<TaskRecord | undefined> {
		return this.#entries.get(taskId)?.record;
	}

	async load(taskId: string): Promise<TaskDetails | undefined> {
		const entry = this.#entries.get(taskId);
		return entry && { record: entry.record, ...entry.details, steps: [...entry.steps] };
	}

	async replace(record: TaskRecord): Promise<boolean> {
		const entry = this.#entries.get(record.taskId);
		if (entry?.record.revision !== record.revision - 1) return false;
		entry.record = structuredClone(record);
		return true;
	}

	async saveStep(taskId: string, token: string, step: TaskStep): Promise<boolean> {
		const entry = this.#entries.get(taskId);
		if (entry?.record.lease?.token !== token) return false;
		if (!entry.steps.some((other) => other.name === step.name)) entry.steps.push(structuredClone(step));
		entry.record = { ...entry.record, journalled: true };
		return true;
	}

	async renew(leases: readonly LeaseClaim[], expiresAtMs: number): Promise<readonly HeldLease[]> {
		const held: HeldLease[] = [];
		for (const { taskId, token } of leases) {
			const entry = this.#entries.get(taskId);
			const lease = entry?.record.lease;
			if (!entry || lease?.token !== token) continue;
			entry.record = { ...entry.record, lease: { ...lease, expiresAtMs }, dueAtMs: expiresAtMs };
			held.push({ taskId, revision: entry.record.revision });
		}
		return held;
	}

	async due(nowMs: number, limit: number): Promise<readonly string[]> {
		return this.records()
			.filter((record) => record.dueAtMs <= nowMs)
			.sort((a, b) => a.dueAtMs - b.dueAtMs)
			.slice(0, limit)
			.map((record) => record.taskId);
	}

	async list(query: TaskQuery): Promise<TaskPage> {
		const before = query.cursor === null ? Infinity : Number(query.cursor);
		const found = [...this.#entries.values()]
			.filter(({ record, sequence }) => sequence < before && matches(record, query))
			.sort((a, b) => b.sequence - a.sequence);
		const page = found.slice(0, query.limit);
		return {
			records: page.map(({ record }) => ({ ...record, result: null })),
			nextCursor: found.length > page.length ? String(page.at(-1)?.sequence) : null,
		};
	}

	async remove(taskId: string, revision: number): Promise<boolean> {
		const entry = this.#entries.get(taskId);
		if (entry?.record.revision !== revision) return false;
		this.#entries.delete(taskId);
		if (entry.record.idempotencyKey !== null) this.#byKey.delete(keyOf(entry.record));
		return true;
	}

	/** Every record, oldest first. */
	records(): TaskRecord[] {
		return [...this.#entries.values()].map((entry) => entry.record);
	}

	#existing(record: TaskRecord): TaskRecord | undefined {
		const taskId = record.idempotencyKey === null ? undefined : this.#byKey.get(keyOf(record));
		return taskId === undefined ? undefined : this.#entries.get(taskId)?.record;
	}

	#evict(principal: string, keep: number): void {
		const ended = this.records().filter(
			(record) => record.principal === principal && isTerminal(record.status),
		);
		for (const record of ended.slice(0, Math.max(0, ended.length - keep)))
			void this.remove(record.taskId, record.revision);
	}
}

function keyOf(record: TaskRecord): string {
	return JSON.stringify([record.principal, record.idempotencyKey]);
}

function matches(record: TaskRecord, query: TaskQuery): boolean {
	return (
		(query.principal === null || record.principal === query.principal) &&
		(query.statuses === null || query.statuses.includes(record.status))
	);
}
