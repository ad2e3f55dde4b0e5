import { isTerminal, TASK_STATUSES } from '../../protocol/status.ts';
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
import type { Connection } from './connection.ts';
import type { HandedTasks } from './handed-tasks.ts';
import {
	allFields,
	changingFields,
	decodeDetails,
	decodeRecord,
	keyText,
	type RecordRow,
	resultText,
	setOf,
	timeText,
	tokenText,
} from './row.ts';
import { CREATE, LIST, RECORD_FIELDS, REMOVE, RENEW, REPLACE, SAVE_STEP } from './scripts.ts';

type CreateReply =
	| readonly [outcome: 'created' | 'total' | 'principal']
	| readonly [outcome: 'exists', ...Required<RecordRow>];

type ListReply = readonly [looked: string, page: readonly (readonly [number: string, ...RecordRow])[]];

/**
 * Keeps tasks in Redis: a hash for each, and sorted sets that say which are open, runnable or due. Every change is one
 * script.
 *
 * A script whose answer was lost is sent again. Each is such that the second time changes nothing and gives the same
 * answer.
 */
export class RedisStore implements TaskStore {
	readonly #connection: Connection;
	readonly #handed: HandedTasks;
	readonly #time: TimeSource | undefined;

	constructor(connection: Connection, handed: HandedTasks, time: TimeSource | undefined) {
		this.#connection = connection;
		this.#handed = handed;
		this.#time = time;
	}

	async nowMs(): Promise<number> {
		if (this.#time) return this.#time.nowMs();
		const [seconds, micros] = await this.#connection.run<[seconds: string, micros: string]>('TIME');
		return Number(seconds) * 1000 + Number(micros) / 1000;
	}

	async create(details: TaskDetails, limits: TaskLimits): Promise<CreateOutcome> {
		const { record } = details;
		const [outcome, ...row] = await this.#connection.script<CreateReply>(CREATE, () => [
			...[encodeText(record.taskId), encodeText(record.principal), keyText(record), setOf(record)],
			...[limits.maxOpen, limits.maxOpenPerPrincipal, limits.maxKeptPerPrincipal],
			...[timeText(record.runAtMs), timeText(record.dueAtMs)],
			...allFields(details),
		]);
		if (outcome === 'created') return { kind: 'created' };
		if (outcome === 'total') return { kind: 'limit', scope: 'total', limit: limits.maxOpen };
		if (outcome === 'principal')
			return { kind: 'limit', scope: 'principal', limit: limits.maxOpenPerPrincipal };
		const existing = decodeRecord(row as unknown as RecordRow);
		if (!existing) throw new Error(`${this.#connection.place} has a key of a task that is not there`);
		return { kind: 'exists', record: existing };
	}

	async get(taskId: string): Promise<TaskRecord | undefined> {
		return decodeRecord(
			await this.#connection.run<RecordRow>('HMGET', this.#key(taskId), ...RECORD_FIELDS, 'result'),
		);
	}

	async load(taskId: string): Promise<TaskDetails | undefined> {
		const handed = this.#handed.take(taskId);
		return handed ?? decodeDetails(await this.#connection.run<string[]>('HGETALL', this.#key(taskId)));
	}

	/** How much a write survives is set for the whole server, so that `durability` changes nothing. */
	async replace(record: TaskRecord, _durability: Durability): Promise<boolean> {
		const replaced = await this.#connection.script<number>(REPLACE, (isRepeated) => [
			...[encodeText(record.taskId), record.revision - 1, isRepeated ? '1' : '0', setOf(record)],
			...[timeText(record.runAtMs), timeText(record.dueAtMs), resultText(record)],
			...changingFields(record),
		]);
		return replaced === 1;
	}

	async saveStep(taskId: string, token: string, { name, value }: TaskStep): Promise<boolean> {
		const saved = await this.#connection.script<number>(SAVE_STEP, () => [
			...[encodeText(taskId), tokenText(token), encodeText(name), JSON.stringify(value)],
		]);
		return saved === 1;
	}

	async renew(leases: readonly LeaseClaim[], expiresAtMs: number): Promise<readonly HeldLease[]> {
		if (leases.length === 0) return [];
		const claims = leases.flatMap(({ taskId, token }) => [encodeText(taskId), tokenText(token)]);
		const flat = await this.#connection.script<string[]>(RENEW, () => [expiresAtMs, ...claims]);
		return Array.from({ length: flat.length / 2 }, (_, index) => ({
			taskId: decodeText(flat[2 * index] ?? ''),
			revision: Number(flat[2 * index + 1]),
		}));
	}

	async due(nowMs: number, limit: number): Promise<readonly string[]> {
		const { run, base } = this.#connection;
		const ids = await run<string[]>('ZRANGEBYSCORE', `${base}due`, '-inf', nowMs, 'LIMIT', 0, limit);
		return ids.map(decodeText);
	}

	async list({ principal, statuses, limit, cursor }: TaskQuery): Promise<TaskPage> {
		const wanted = statuses ?? TASK_STATUSES;
		const of = principal === null ? '' : `:${encodeText(principal)}`;
		const sets = [
			...(wanted.some((status) => !isTerminal(status)) ? [`open${of}`] : []),
			...(wanted.some(isTerminal) ? [`ended${of}`] : []),
		];
		const found: [number: string, record: TaskRecord][] = [];
		// One more than asked for tells whether there is another page.
		for (let before = cursor; found.length <= limit; ) {
			const [looked, page] = await this.#connection.script<ListReply>(LIST, () => [
				...[before === null ? '+inf' : `(${before}`, limit + 1 - found.length, sets.length],
				...sets,
				...(statuses ?? []),
			]);
			for (const [number, ...row] of page) {
				const record = decodeRecord(row);
				if (record) found.push([number, record]);
			}
			if (looked === '' || sets.length === 0) break;
			before = looked;
		}
		return {
			records: found.slice(0, limit).map(([, record]) => record),
			nextCursor: found.length > limit ? (found[limit - 1]?.[0] ?? cursor) : null,
		};
	}

	async remove(taskId: string, revision: number): Promise<boolean> {
		let isRepeated = false;
		const removed = await this.#connection.script<number>(REMOVE, (isAgain) => {
			isRepeated = isAgain;
			return [encodeText(taskId), revision];
		});
		return removed === 1 || (isRepeated && (await this.get(taskId)) === undefined);
	}

	#key(taskId: string): string {
		return `${this.#connection.base}task:${encodeText(taskId)}`;
	}
}
