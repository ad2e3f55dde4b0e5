import type { JsonObject, JsonValue } from '../../protocol/json.ts';
import { isTerminal } from '../../protocol/status.ts';
import { decodeText, encodeText } from '../columns.ts';
import type { TaskDetails, TaskRecord, TaskStep } from '../record.ts';
import type { Argument } from './connection.ts';

/** The parts of a task that make up its record; the texts of a hash. */
export type RecordRow = readonly [
	record: string | null,
	journalled: string,
	expires: string,
	due: string,
	result?: string | null,
];

/** What `record` holds: all that no script changes by itself. */
type StoredRecord = Omit<TaskRecord, 'journalled' | 'dueAtMs' | 'result'>;

const STEP = 'step:';

/** The set that a task is in. */
export function setOf({ status }: TaskRecord): 'open' | 'ended' {
	return isTerminal(status) ? 'ended' : 'open';
}

/** A time of a record as a script takes it. */
export function timeText(timeMs: number | null): string {
	return timeMs === null ? '' : String(timeMs);
}

/** A token of a lease as a script compares it; never empty. */
export function tokenText(token: string): string {
	return JSON.stringify(token);
}

/** What the key of an idempotency key is made of; empty without one. */
export function keyText({ principal, idempotencyKey }: TaskRecord): string {
	return idempotencyKey === null ? '' : JSON.stringify([principal, idempotencyKey]);
}

export function resultText({ result }: TaskRecord): string {
	return result === null ? '' : JSON.stringify(result);
}

/** Fields and values that a replacement sets. `record` is the first: the script compares it. */
export function changingFields(record: TaskRecord): Argument[] {
	const { lease, journalled, dueAtMs } = record;
	const elsewhere = { journalled: undefined, dueAtMs: undefined, result: undefined };
	return [
		...['record', JSON.stringify({ ...record, ...elsewhere })],
		...['revision', record.revision],
		...['status', record.status],
		...['token', lease ? tokenText(lease.token) : ''],
		...['expires', lease ? lease.expiresAtMs : ''],
		...['due', dueAtMs],
		...['journalled', journalled ? '1' : ''],
	];
}

/** Fields and values of a new task. */
export function allFields(details: TaskDetails): Argument[] {
	const { record, steps } = details;
	const result = resultText(record);
	return [
		...changingFields(record),
		...['principal', encodeText(record.principal)],
		...['key', keyText(record)],
		...['arguments', JSON.stringify(details.arguments)],
		...['prepared', JSON.stringify(details.prepared)],
		...['steps', steps.length],
		...(result === '' ? [] : ['result', result]),
		...steps.flatMap(({ name, value }, index) => [stepField(name), `${index + 1} ${JSON.stringify(value)}`]),
	];
}

/** Undefined where the task is not there. */
export function decodeRecord([text, journalled, expires, due, result]: RecordRow): TaskRecord | undefined {
	if (text === null) return undefined;
	const stored = JSON.parse(text) as StoredRecord;
	return {
		...stored,
		lease: stored.lease && { ...stored.lease, expiresAtMs: Number(expires) },
		journalled: journalled === '1',
		dueAtMs: Number(due),
		result: typeof result === 'string' ? (JSON.parse(result) as JsonObject) : null,
	};
}

/** A whole task out of its hash; undefined where it is not there. */
export function decodeDetails(flat: readonly string[]): TaskDetails | undefined {
	const fields = new Map<string, string>();
	const steps: [number: number, step: TaskStep][] = [];
	for (let index = 0; index < flat.length; index += 2) {
		const [field = '', value = ''] = [flat[index], flat[index + 1]];
		if (field.startsWith(STEP)) steps.push(decodeStep(field, value));
		else fields.set(field, value);
	}
	const part = (name: string): string => fields.get(name) ?? '';
	const record = decodeRecord([
		fields.get('record') ?? null,
		...([part('journalled'), part('expires'), part('due')] as const),
		fields.get('result') ?? null,
	]);
	if (!record) return undefined;
	return {
		record,
		arguments: JSON.parse(part('arguments')) as JsonObject,
		prepared: JSON.parse(part('prepared')) as JsonValue,
		steps: steps.sort(([a], [b]) => a - b).map(([, step]) => step),
	};
}

function stepField(name: string): string {
	return STEP + encodeText(name);
}

function decodeStep(field: string, value: string): [number: number, step: TaskStep] {
	const space = value.indexOf(' ');
	const step = {
		name: decodeText(field.slice(STEP.length)),
		value: JSON.parse(value.slice(space + 1)) as JsonValue,
	};
	return [Number(value.slice(0, space)), step];
}
