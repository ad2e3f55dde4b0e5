import { HoldfastError } from '../errors.ts';
import { isJsonObject } from '../protocol/json.ts';

/** What is needed to come back to a task, from another process or another day. */
export interface TaskPointer {
	/** Which server the task lives on, in the host's own words. */
	readonly server: string;
	readonly taskId: string;
	readonly tool: string;
	/** The protocol version that the task belongs to. */
	readonly protocolVersion: string;
	/** When this client first saw the task, in milliseconds since the epoch on its own clock (T73). */
	readonly firstSeenAtMs: number;
	/** How long after that the server promised to keep the task, in milliseconds; null is for ever. */
	readonly ttlMs: number | null;
}

const PREFIX = 'holdfast-task:';
const MAX_LENGTH = 8_192;

/** Serialises a pointer: one word, safe in a shell, a URL and a log. Whoever has it can read the task. */
export function toReference(pointer: TaskPointer): string {
	const { server, taskId, tool, protocolVersion, firstSeenAtMs, ttlMs } = pointer;
	const fields = [server, taskId, tool, protocolVersion, firstSeenAtMs, ttlMs];
	return PREFIX + Buffer.from(JSON.stringify(fields), 'utf8').toString('base64url');
}

/**
 * Reads a reference.
 *
 * @throws INVALID_REFERENCE
 */
export function readReference(reference: string): TaskPointer {
	try {
		if (reference.startsWith(PREFIX) && reference.length <= MAX_LENGTH) {
			const text = Buffer.from(reference.slice(PREFIX.length), 'base64url').toString('utf8');
			const fields: unknown = JSON.parse(text);
			const pointer = Array.isArray(fields) ? toPointer(fields) : undefined;
			if (isPointer(pointer)) return pointer;
		}
	} catch {
		// Said below.
	}
	throw new HoldfastError('INVALID_REFERENCE', `Not a task reference: ${reference.slice(0, 60)}`);
}

function toPointer(fields: readonly unknown[]): unknown {
	const [server, taskId, tool, protocolVersion, firstSeenAtMs, ttlMs] = fields;
	return { server, taskId, tool, protocolVersion, firstSeenAtMs, ttlMs };
}

function isPointer(value: unknown): value is TaskPointer {
	if (!isJsonObject(value)) return false;
	const words = [value['server'], value['taskId'], value['tool'], value['protocolVersion']];
	return (
		words.every((word) => typeof word === 'string') &&
		value['taskId'] !== '' &&
		Number.isFinite(value['firstSeenAtMs']) &&
		(value['ttlMs'] === null || Number.isFinite(value['ttlMs']))
	);
}
