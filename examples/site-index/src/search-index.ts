/** The passages of all pages and the full-text index over them. */
import type { Database } from './database.ts';
import { type Passage, pathWords } from './passage.ts';
import { passagesPerSite } from './schema.ts';

interface PassageRow {
	readonly id: number;
	readonly heading: string;
	readonly above: string;
	readonly anchor: string | null;
	readonly text: string;
}

// Small, so that no batch holds up the pages behind it for long.
const indexBatch = 24;

interface Put {
	readonly siteId: number;
	readonly pageId: number;
	readonly hash: string;
	readonly passages: readonly Passage[];
}

export class SearchIndex {
	readonly #db: Database;
	#pending: number;

	constructor(db: Database) {
		this.#db = db;
		// Merging as seldom as can be: a crawl inserts far more than it is asked meanwhile.
		db.run(`INSERT INTO search (search, rank) VALUES ('automerge', 16)`);
		this.#pending = Number(db.get('SELECT count(*) AS n FROM pending')?.['n'] ?? 0);
	}

	/** Stores a page's passages in place of those it had, unless they are the same. Within a transaction. */
	put({ siteId, pageId, hash, passages }: Put): void {
		const before = this.#db.get<{ hash: string | null }>('SELECT hash FROM page WHERE id = ?', pageId);
		if (
			before?.hash === hash &&
			this.#db.get('SELECT 1 FROM passage WHERE page_id = ?', pageId) !== undefined
		)
			return;
		if (before?.hash != null) this.drop(pageId);
		let id = this.#passageId(siteId);
		for (const { heading, above, anchor, text } of passages) {
			this.#db.run(
				'INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?)',
				id,
				pageId,
				heading,
				above,
				anchor ?? null,
				text,
			);
			id += 1;
		}
		this.#pending += this.#db.run('INSERT OR IGNORE INTO pending VALUES (?)', pageId).changes;
	}

	/** Takes a page's passages away. Within a transaction. */
	drop(pageId: number): void {
		const waiting = this.#db.run('DELETE FROM pending WHERE page_id = ?', pageId).changes > 0;
		if (waiting) this.#pending -= 1;
		else this.#db.run('DELETE FROM search WHERE rowid IN (SELECT id FROM passage WHERE page_id = ?)', pageId);
		this.#db.run('DELETE FROM passage WHERE page_id = ?', pageId);
	}

	/** Makes stored pages searchable; a batch at a time unless all are wanted. */
	index(all: boolean): void {
		while (this.#pending >= (all ? 1 : indexBatch)) {
			this.#db.transaction(() => {
				const pages = this.#db.all<{ page_id: number }>('SELECT page_id FROM pending LIMIT ?', indexBatch);
				for (const { page_id: pageId } of pages) this.#indexPage(pageId);
				this.#pending = pages.length < indexBatch ? 0 : this.#pending - pages.length;
			});
		}
	}

	/** Takes all of a site's passages away. Within a transaction. */
	forget(siteId: number): void {
		const first = siteId * passagesPerSite;
		const range = [first, first + passagesPerSite] as const;
		this.#db.run(
			'DELETE FROM search WHERE rowid IN (SELECT id FROM passage WHERE id >= ? AND id < ?)',
			...range,
		);
		this.#db.run('DELETE FROM passage WHERE id >= ? AND id < ?', ...range);
	}

	/** Lists the words of the index, to look up how common one is and which are spelled alike. */
	listWords(): void {
		this.#db.run('DELETE FROM word');
		this.#db.run('INSERT INTO word SELECT term, doc FROM vocabulary');
	}

	#passageId(siteId: number): number {
		const first = siteId * passagesPerSite;
		const last = this.#db.get(
			'SELECT max(id) AS id FROM passage WHERE id >= ? AND id < ?',
			first,
			first + passagesPerSite,
		);
		return typeof last?.['id'] === 'number' ? last['id'] + 1 : first;
	}

	#indexPage(pageId: number): void {
		const page = this.#db.get<{ title: string; address: string }>(
			'SELECT title, address FROM page WHERE id = ?',
			pageId,
		);
		if (page !== undefined) {
			const path = pathWords(page.address);
			const rows = this.#db.all<PassageRow>(
				'SELECT id, heading, above, anchor, text FROM passage WHERE page_id = ?',
				pageId,
			);
			for (const { id, heading, above, anchor, text } of rows)
				this.#db.run(
					'INSERT INTO search (rowid, title, heading, above, path, text) VALUES (?, ?, ?, ?, ?, ?)',
					...[id, page.title, `${heading} ${namesIn(anchor)} ${partsOf(heading)}`, above, path, text],
				);
		}
		this.#db.run('DELETE FROM pending WHERE page_id = ?', pageId);
	}
}

/** An anchor that is a name (`os.path.join`) rather than a number. */
const namesIn = (anchor: string | null): string =>
	anchor !== null && /[._]/u.test(anchor) && !/^id[-_]?\d|\d\.\d/u.test(anchor) ? anchor : '';

/** Coined names taken apart (`ThreadPoolExecutor`), for those who ask for them in plain words. */
const partsOf = (heading: string): string =>
	(heading.match(/\p{Lu}?\p{Ll}+(?:\p{Lu}\p{Ll}+)+/gu) ?? [])
		.map((name) => name.replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' '))
		.join(' ');
