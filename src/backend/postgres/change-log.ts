import type { Run } from './database.ts';
import type { Statements } from './statements.ts';

/** Most batches that are read at once. */
const PAGE = 1_000;

/**
 * The log of what was told, for those who did not hear it. Entries become visible out of order, so that the ones of
 * the last two seconds are looked at again and known by their numbers.
 */
export class ChangeLog {
	readonly #run: Run;
	readonly #statements: Statements;
	/** Everything up to here was read. */
	#cursor = 0n;
	#seen = new Set<string>();

	constructor(run: Run, statements: Statements) {
		this.#run = run;
		this.#statements = statements;
	}

	/** Leaves out everything up to now. */
	async skip(): Promise<void> {
		const [row] = await this.#run<[seq: string]>(this.#statements.lastChange, []);
		this.#cursor = BigInt(row?.[0] ?? 0);
		this.#seen.clear();
	}

	/** The batches that were not read yet. */
	async read(): Promise<string[]> {
		const fresh: string[] = [];
		for (let last = this.#cursor; ; ) {
			const rows = await this.#run<[seq: string, isSettled: boolean, batch: string]>(
				this.#statements.changesSince,
				[String(last)],
			);
			for (const [seq, isSettled, batch] of rows) {
				if (!this.#seen.has(seq)) fresh.push(batch);
				this.#seen.add(seq);
				last = BigInt(seq);
				if (isSettled && last > this.#cursor) this.#cursor = last;
			}
			if (rows.length < PAGE) break;
		}
		for (const seq of this.#seen) if (BigInt(seq) <= this.#cursor) this.#seen.delete(seq);
		return fresh;
	}
}
