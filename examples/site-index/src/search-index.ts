/** The passages of all pages and the full-text index over them. */
import type { Database } from './database.ts';
import { type Passage, pathWords } from './passage.ts';
import { passagesPerSite } from './schema.ts';

interface PassageRow extends Omit<Passage, 'anchor'> {
	readonly id: number;
	readonly anchor: string | null | undefined;
}

// Small, so that no batch holds up the pages behind it for long.
const indexBatch = 64;

interface Put {
	readonly siteId: number;
	readonly pageId: number;
	readonly address: string;
	readonly hash: string;
	readonly page: { readonly title: string };
	readonly passages: readonly Passage[];
}

/** What is indexed of a page. */
interface PageRows {
	readonly title: string;
	readonly address: string;
	readonly rows: readonly PassageRow[];
}

export class SearchIndex {
	readonly #db: Database;
	#pending: number;
	/** What this process stored of the pending pages, so that it need not be read back. */
	readonly #fresh = new Map<number, PageRows>();

	constructor(db: Database) {
		this.#db = db;
		// Merging as seldom as can be: a crawl inserts far more than it is asked meanwhile.
		db.run(`INSERT INTO search (search, rank) VALUES ('automerge', 16)`);
		this.#pending = this.#count();
	}

	/** Stores a page's passages in place of those it had, unless they are the same. Within a transaction. */
	put({ siteId, pageId, address, hash, page, passages }: Put): void {
		const before = this.#db.get<{ hash: string | null }>('SELECT hash FROM page WHERE id = ?', pageId);
		if (
			before?.hash === hash &&
			this.#db.get('SELECT 1 FROM passage WHERE page_id = ?', pageId) !== undefined
		)
			return;
		if (before?.hash != null) this.drop(pageId);
		const first = this.#passageId(siteId);
		const rows = passages.map((passage, at) => ({ ...passage, id: first + at }));
		for (const { id, heading, above, anchor, text } of rows)
			this.#db.run(
				'INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?)',
				...[id, pageId, heading, above, anchor ?? null, text],
			);
		this.#fresh.set(pageId, { title: page.title, address, rows });
		this.#pending += this.#db.run('INSERT OR IGNORE INTO pending VALUES (?)', pageId).changes;
	}

	/** Takes a page's passages away. Within a transaction. */
	drop(pageId: number): void {
		this.#fresh.delete(pageId);
		const waiting = this.#db.run('DELETE FROM pending WHERE page_id = ?', pageId).changes > 0;
		if (waiting) this.#pending -= 1;
		else this.#db.run('DELETE FROM search WHERE rowid IN (SELECT id FROM passage WHERE page_id = ?)', pageId);
		this.#db.run('DELETE FROM passage WHERE page_id = ?', pageId);
	}

	/** Makes stored pages searchable; a batch at a time unless all are wanted. */
	index(all: boolean): void {
		// A process that was killed may have left some.
		if (all) this.#pending = this.#count();
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

	#count(): number {
		return Number(this.#db.get('SELECT count(*) AS n FROM pending')?.['n'] ?? 0);
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
		const page = this.#fresh.get(pageId) ?? this.#stored(pageId);
		this.#fresh.delete(pageId);
		if (page !== undefined) {
			const path = pathWords(page.address);
			for (const { id, heading, above, anchor, text } of page.rows)
				this.#db.run(
					'INSERT INTO search (rowid, title, heading, above, path, text) VALUES (?, ?, ?, ?, ?, ?)',
					...[id, page.title, `${heading} ${namesIn(anchor)} ${partsOf(heading)}`, above, path, text],
				);
		}
		this.#db.run('DELETE FROM pending WHERE page_id = ?', pageId);
	}

	/** A page that an earlier process left pending. */
	#stored(pageId: number): PageRows | undefined {
		const page = this.#db.get<{ title: string; address: string }>(
			'SELECT title, address FROM page WHERE id = ?',
			pageId,
		);
		if (page === undefined) return undefined;
		const rows = this.#db.all<PassageRow>(
			'SELECT id, heading, above, anchor, text FROM passage WHERE page_id = ?',
			pageId,
		);
		return { ...page, rows };
	}
}

/** An anchor that is a name (`os.path.join`) rather than a number. */
const namesIn = (anchor: string | null | undefined): string =>
	anchor != null && /[._]/u.test(anchor) && !/^id[-_]?\d|\d\.\d/u.test(anchor) ? anchor : '';

/** Coined names taken apart (`ThreadPoolExecutor`), for those who ask for them in plain words. */
const partsOf = (heading: string): string =>
	(heading.match(/\p{Lu}?\p{Ll}+(?:\p{Lu}\p{Ll}+)+/gu) ?? [])
		.map((name) => name.replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' '))
		.join(' ');
