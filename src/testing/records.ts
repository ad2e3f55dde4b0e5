import { randomUUID } from 'node:crypto';
import type { TaskDetails, TaskPolicy, TaskRecord } from '../backend/record.ts';
import type { TaskLimits, TaskQuery } from '../backend/store.ts';
import { NO_INPUT } from '../protocol/capabilities.ts';

/** The time of every test, in milliseconds since the epoch. */
export const T0: number = Date.UTC(2026, 6, 28);

/** A tool's options in tests. */
export const TEST_POLICY: TaskPolicy = {
	resume: 'journalled',
	retry: { maxAttempts: 1, backoffMs: 1_000, maxBackoffMs: 60_000 },
	estimateMs: null,
	minPollIntervalMs: 500,
	maxPollIntervalMs: 30_000,
	retentionMs: 3_600_000,
	inputWaitMs: 86_400_000,
	parkAfterMs: 30_000,
	cancelGraceMs: 10_000,
	maxCrashes: 3,
};

/** Limits that no test reaches by accident. */
export const TEST_LIMITS: TaskLimits = {
	maxOpenPerPrincipal: 1_000_000,
	maxOpen: 1_000_000,
	maxKeptPerPrincipal: 1_000_000,
};

/** Every task, in one page. */
export const ALL: TaskQuery = { principal: null, statuses: null, limit: 100, cursor: null };

/** The fields of a task that has ended well. */
export const ENDED: Partial<TaskRecord> = { status: 'completed', runAtMs: null, result: { ok: true } };

/** A value in every field that can have one. */
export const EVERYTHING: Partial<TaskRecord> = {
	revision: 41,
	idempotencyKey: 'key',
	status: 'input_required',
	statusMessage: 'waiting',
	progress: { progress: 1.5, total: 3, message: 'half' },
	lastUpdatedAtMs: T0 + 5,
	ttlMs: 123_456_789,
	inputCapabilities: { form: true, url: false, sampling: true, roots: true },
	openInputs: {
		approve: {
			request: { method: 'elicitation/create', params: { mode: 'form', message: 'Deploy?' } },
			...{ askedAtMs: T0, deadlineAtMs: T0 + 60_000 },
		},
	},
	inputResponses: { region: { action: 'accept', content: { region: 'eu' } } },
	journalled: true,
	...{
		attempt: 3,
		retries: 1,
		crashes: 2,
		releasedSinceMs: 1_767_225_600_000,
		waitedMs: 5,
		waitingSinceMs: 6,
	},
	lease: { owner: 'host 1', token: 'token', expiresAtMs: T0 + 0.5 },
	...{ runAtMs: T0 + 1, dueAtMs: T0 + 2, cancelRequestedAtMs: T0 + 3 },
	result: { content: [{ type: 'text', text: 'done' }] },
	error: { code: -32_603, message: 'no', data: [1] },
	trace: { traceparent: '00-1-2-01' },
	policy: { ...TEST_POLICY, resume: 'never', estimateMs: 60_000 },
};

/** A new task that waits to be run, with the given fields changed. */
export function newRecord(fields: Partial<TaskRecord> = {}): TaskRecord {
	return {
		taskId: randomUUID(),
		revision: 1,
		tool: 'build',
		principal: 'local',
		idempotencyKey: null,
		argumentsDigest: 'digest',
		status: 'working',
		statusMessage: null,
		progress: null,
		createdAtMs: T0,
		lastUpdatedAtMs: T0,
		ttlMs: 3_600_000,
		policy: TEST_POLICY,
		inputCapabilities: NO_INPUT,
		openInputs: {},
		inputResponses: {},
		journalled: false,
		attempt: 0,
		retries: 0,
		crashes: 0,
		releasedSinceMs: null,
		waitedMs: 0,
		waitingSinceMs: null,
		lease: null,
		runAtMs: T0,
		dueAtMs: T0 + 3_600_000,
		cancelRequestedAtMs: null,
		result: null,
		error: null,
		trace: {},
		...fields,
	};
}

/** A new task with arguments and journal; the fields change its record. */
export function newDetails(
	fields: Partial<TaskRecord> = {},
	rest: Partial<Omit<TaskDetails, 'record'>> = {},
): TaskDetails {
	return { record: newRecord(fields), arguments: { branch: 'main' }, prepared: null, steps: [], ...rest };
}

/** The next revision of a record, with the given fields changed. */
export function revised(record: TaskRecord, fields: Partial<TaskRecord> = {}): TaskRecord {
	return { ...record, revision: record.revision + 1, lastUpdatedAtMs: record.lastUpdatedAtMs + 1, ...fields };
}

/** The fields of a task that a worker runs. */
export function leased(token: string, expiresAtMs: number): Partial<TaskRecord> {
	return { lease: { owner: 'worker', token, expiresAtMs }, runAtMs: null, dueAtMs: expiresAtMs, attempt: 1 };
}
