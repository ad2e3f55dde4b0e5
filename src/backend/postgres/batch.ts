import type { TaskChange } from '../signals.ts';

/** Longest payload that Postgres takes is 8,000 bytes. */
const MAX_BATCH_BYTES = 7_900;

type Wire = { readonly by: string; readonly changes: readonly (readonly [string, number, boolean])[] };

/** Changes as they go from process to process: JSON texts, each short enough to be told at once. */
export function encodeBatches(by: string, changes: Iterable<TaskChange>): string[] {
	const batches: string[] = [];
	const open = `{"by":${JSON.stringify(by)},"changes":[`;
	let batch = '';
	for (const { taskId, revision, runnable } of changes) {
		const change = JSON.stringify([taskId, revision, runnable]);
		if (Buffer.byteLength(open + batch + change) + 3 > MAX_BATCH_BYTES) {
			if (batch !== '') batches.push(`${open}${batch}]}`);
			batch = '';
		}
		batch += batch === '' ? change : `,${change}`;
	}
	if (batch !== '') batches.push(`${open}${batch}]}`);
	return batches;
}

/** The changes of other processes in a batch; none in a text that is no batch, which anybody can send. */
export function decodeBatch(own: string, batch: string): TaskChange[] {
	let wire: Wire;
	try {
		wire = JSON.parse(batch) as Wire;
	} catch {
		return [];
	}
	if (wire.by === own || !Array.isArray(wire.changes)) return [];
	return wire.changes.map(([taskId, revision, runnable]) => ({ taskId, revision, runnable }));
}
