/** Which sites there are, and what became of each in words a caller can act on. */
import { Database, optional } from './database.ts';
import type { CrawlOptions } from './options.ts';

export interface SiteEntry {
	readonly siteId: number;
	readonly startAddress: string;
	readonly pages: number;
	/** `unfinished`: being read now, waiting for an answer, or ended before it was through. */
	readonly state: 'unfinished' | 'complete' | 'stopped at a limit';
	readonly createdAt: number;
	readonly updatedAt: number;
}

export interface SiteReport extends SiteEntry {
	/** Addresses found but not read. */
	readonly unread: number;
	readonly duplicates: number;
	readonly failed: readonly ReasonCount[];
	readonly skipped: readonly ReasonCount[];
	readonly refused: readonly ReasonCount[];
	readonly cut: number;
	readonly words: string;
}

export interface ReasonCount {
	readonly reason: string;
	readonly count: number;
	readonly example: string;
}

export class Catalogue {
	readonly #db: Database;

	constructor(file: string) {
		this.#db = new Database(file, true);
	}

	sites(owner: string): SiteEntry[] {
		return this.#db
			.all(
				`SELECT site.id, start_address, created_at, updated_at,
					(SELECT count(*) FROM page WHERE site_id = site.id AND kind = 'page' AND (state = 'indexed' OR
						-- What is still to be read again, or could not be, can be searched as it was.
						(state IN ('queued', 'failed') AND EXISTS (SELECT 1 FROM passage WHERE page_id = page.id)))) AS pages,
					EXISTS (SELECT 1 FROM page WHERE site_id = site.id AND kind = 'page' AND state = 'queued') AS queued,
					(SELECT finished_at FROM run WHERE site_id = site.id ORDER BY id DESC LIMIT 1) AS finished_at
				FROM site WHERE owner = ? ORDER BY site.id`,
				owner,
			)
			.map((row) => ({
				siteId: Number(row['id']),
				startAddress: String(row['start_address']),
				pages: Number(row['pages']),
				state:
					row['finished_at'] === null
						? 'unfinished'
						: row['queued'] === 1
							? 'stopped at a limit'
							: 'complete',
				createdAt: Number(row['created_at']),
				updatedAt: Number(row['updated_at']),
			}));
	}

	/** What the site was last read with; nothing when its owner has no such site. */
	options(owner: string, siteId: number): CrawlOptions | undefined {
		const row = this.#db.get('SELECT options FROM site WHERE owner = ? AND id = ?', owner, siteId);
		return row === undefined ? undefined : (JSON.parse(String(row['options'])) as CrawlOptions);
	}

	report(owner: string, siteId: number): SiteReport | undefined {
		const entry = this.sites(owner).find((site) => site.siteId === siteId);
		if (entry === undefined) return undefined;
		const count = (condition: string): number =>
			Number(
				this.#db.get(
					`SELECT count(*) AS n FROM page WHERE site_id = ? AND kind = 'page' AND ${condition}`,
					siteId,
				)?.['n'],
			);
		const counts = {
			unread: count(`state = 'queued'`),
			duplicates: count(`state = 'duplicate'`),
			cut: count(`state = 'indexed' AND reason IS NOT NULL`),
			failed: this.#reasons(siteId, `'failed', 'gone'`),
			skipped: this.#reasons(siteId, `'skipped'`),
			refused: this.#db
				.all('SELECT reason, count, example FROM refusal WHERE site_id = ? ORDER BY count DESC', siteId)
				.map(toReason),
		};
		return { ...entry, ...counts, words: inWords({ ...entry, ...counts }, this.#limit(siteId)) };
	}

	close(): void {
		this.#db.close();
	}

	#limit(siteId: number): number | undefined {
		const run = this.#db.get('SELECT page_limit FROM run WHERE site_id = ? ORDER BY id DESC LIMIT 1', siteId);
		return optional<number>(run?.['page_limit']);
	}

	#reasons(siteId: number, states: string): ReasonCount[] {
		return this.#db
			.all(
				`SELECT reason, count(*) AS count, min(address) AS example FROM page
				WHERE site_id = ? AND kind = 'page' AND state IN (${states}) GROUP BY reason ORDER BY count DESC LIMIT 20`,
				siteId,
			)
			.map(toReason);
	}
}

const toReason = (row: Record<string, unknown>): ReasonCount => ({
	reason: String(row['reason']),
	count: Number(row['count']),
	example: String(row['example']),
});

const total = (reasons: readonly ReasonCount[]): number => reasons.reduce((sum, { count }) => sum + count, 0);

const counted = (count: number, one: string, many = `${one}s`): string =>
	`${count.toLocaleString('en')} ${count === 1 ? one : many}`;

const listed = (reasons: readonly ReasonCount[]): string =>
	reasons
		.slice(0, 4)
		.map(({ reason, count, example }) => `${reason} (${count}, such as ${example})`)
		.join('; ');

const inWords = (report: Omit<SiteReport, 'words'>, limit: number | undefined): string => {
	const sentences = [`${counted(report.pages, 'page')} of ${report.startAddress} can be searched.`];
	if (report.state === 'unfinished')
		sentences.push(`${counted(report.unread, 'page')} known so far are still to be read.`);
	if (report.state === 'stopped at a limit')
		sentences.push(
			`The crawl stopped at your limit of ${counted(limit ?? 0, 'page')}: at least ${counted(report.unread, 'more page')} were found and not read.`,
		);
	if (report.duplicates > 0)
		sentences.push(`${counted(report.duplicates, 'page')} had nothing that another page does not say.`);
	if (report.cut > 0)
		sentences.push(`${counted(report.cut, 'page')} were larger than the limit and are indexed in part.`);
	if (report.failed.length > 0)
		sentences.push(`${counted(total(report.failed), 'page')} could not be read: ${listed(report.failed)}.`);
	if (report.skipped.length > 0)
		sentences.push(`${counted(total(report.skipped), 'page')} left out: ${listed(report.skipped)}.`);
	if (report.refused.length > 0)
		sentences.push(
			`${counted(total(report.refused), 'address', 'addresses')} not followed: ${listed(report.refused)}.`,
		);
	return sentences.join(' ');
};
