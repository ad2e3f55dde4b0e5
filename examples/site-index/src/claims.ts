/** Which task reads which site now. A task that is gone without a word loses its claim after a while. */
import type { Database } from './database.ts';

/** A claim that is not renewed for so long is void: its process is gone. */
export const claimMs = 15_000;

export class Claims {
	readonly #db: Database;

	constructor(db: Database) {
		this.#db = db;
	}

	/**
	 * Makes a site a task's own. Within a transaction.
	 *
	 * @throws when it is another task's.
	 */
	make(siteId: number, taskId: string, startAddress: string, now: number): void {
		const other = this.holder(siteId, now);
		if (other !== undefined && other !== taskId)
			throw new Error(`${startAddress} is being read already, by task ${other}.`);
		this.#db.run('INSERT OR REPLACE INTO claim VALUES (?, ?, ?)', siteId, taskId, now + claimMs);
	}

	/** Whether the site still is the task's own, and goes on being it. */
	renew(siteId: number, taskId: string, now: number): boolean {
		const { changes } = this.#db.run(
			'UPDATE claim SET until = ? WHERE site_id = ? AND task_id = ?',
			...[now + claimMs, siteId, taskId],
		);
		return changes > 0;
	}

	release(siteId: number, taskId: string): void {
		this.#db.run('DELETE FROM claim WHERE site_id = ? AND task_id = ?', siteId, taskId);
	}

	/** The task that reads a site. */
	holder(siteId: number, now: number): string | undefined {
		return this.#db.get<{ task_id: string }>(
			'SELECT task_id FROM claim WHERE site_id = ? AND until > ?',
			siteId,
			now,
		)?.task_id;
	}
}
