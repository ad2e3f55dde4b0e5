/** A folder for one test's index file, and a crawl into it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Asker } from '../src/asker.ts';
import { Catalogue } from '../src/catalogue.ts';
import { crawl } from '../src/crawl.ts';
import type { CrawlOutcome, CrawlPorts } from '../src/crawl-ports.ts';
import { Database } from '../src/database.ts';
import { HostGates } from '../src/host-gate.ts';
import { completeOptions, type CrawlOptions } from '../src/options.ts';
import { IndexThreads } from '../src/threads.ts';

export const owner = 'tests';

export class Scratch {
	readonly folder = mkdtempSync(join(tmpdir(), 'site-index-'));
	readonly file = join(this.folder, 'sites.db');
	readonly threads = new IndexThreads(this.file);
	readonly hosts = new HostGates();
	#tasks = 0;

	/** A crawl on a clock of its own: whoever waits there has waited as soon as it asks. */
	crawl(
		options: Partial<CrawlOptions> & { startAddress: string },
		ports: Partial<CrawlPorts> & { taskId?: string } = {},
	): Promise<CrawlOutcome> {
		this.#tasks += 1;
		const { taskId = `task-${this.#tasks}`, ...others } = ports;
		return crawl(taskId, owner, completeOptions(options), {
			threads: this.threads,
			hosts: this.hosts,
			signal: AbortSignal.timeout(100_000),
			allowPrivate: true,
			...others,
		});
	}

	pages(): { address: string; state: string; reason: string | null; title: string | null }[] {
		const db = new Database(this.file, true);
		try {
			return db.all(`SELECT address, state, reason, title FROM page WHERE kind = 'page' ORDER BY id`);
		} finally {
			db.close();
		}
	}

	ask<T>(work: (asker: Asker) => T): T {
		const asker = new Asker(this.file);
		try {
			return work(asker);
		} finally {
			asker.close();
		}
	}

	report<T>(work: (catalogue: Catalogue) => T): T {
		const catalogue = new Catalogue(this.file);
		try {
			return work(catalogue);
		} finally {
			catalogue.close();
		}
	}

	async close(): Promise<void> {
		await this.threads.close();
		rmSync(this.folder, { recursive: true, force: true });
	}
}

/** A clock that only moves when somebody sleeps. */
export class FakeClock {
	#time = Date.UTC(2026, 0, 1);
	readonly slept: number[] = [];

	readonly now = (): number => this.#time;

	readonly sleep = async (durationMs: number): Promise<void> => {
		this.slept.push(durationMs);
		this.#time += durationMs;
	};
}
