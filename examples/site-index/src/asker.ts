/** Answers questions from the index file: the passages that say most about what is asked, best first. */
import { Database } from './database.ts';
import { passagesPerSite } from './schema.ts';
import { phraseOf, type Term, termsOf } from './question.ts';
import { excerpt } from './excerpt.ts';
import { nearest } from './spelling.ts';
import { stem } from './stem.ts';

export interface Question {
	readonly question: string;
	readonly owner: string;
	/** One site of the owner's; all of them when left out. */
	readonly siteId?: number;
	/** Only pages whose path starts like this. */
	readonly path?: string;
	readonly limit?: number;
}

export interface Answered {
	readonly passages: readonly FoundPassage[];
	/** The question as it was probably meant, when a word of it is nowhere in the index. */
	readonly didYouMean: string | undefined;
}

export interface FoundPassage {
	readonly title: string;
	readonly heading: string;
	/** Where to read on: the page's address with the section's anchor. */
	readonly address: string;
	readonly text: string;
	readonly score: number;
}

interface Hit {
	readonly id: number;
	readonly page_id: number;
	readonly heading: string;
	readonly above: string;
	readonly anchor: string | null;
	readonly text: string;
	readonly title: string;
	readonly address: string;
	readonly score: number;
}

interface Weighed extends Term {
	readonly passages: number;
}

// What a passage is headed by says more about it than what is mentioned in it.
const weights = 'bm25(4.0, 8.0, 2.0, 4.0, 1.0)';
// How much the other passages of a page add to its best one.
const helpOfOthers = 0.6;
const candidates = 80;
// Ranking looks at every passage that has one of the words: the commonest words are left to break ties.
const mostRanked = 6_000;

export class Asker {
	readonly #db: Database;

	constructor(file: string) {
		this.#db = new Database(file, true);
		this.#db.exec('PRAGMA cache_size = -65536; PRAGMA mmap_size = 1000000000;');
	}

	ask(question: Question): Answered {
		const terms = termsOf(question.question);
		const sites = this.#sites(question);
		if (terms.length === 0 || sites.length === 0) return { passages: [], didYouMean: undefined };
		const weighed = terms.map((term) => ({ ...term, passages: this.#passagesWith(term) }));
		const known = weighed.filter(({ passages }) => passages > 0);
		const hits =
			known.length === 0
				? []
				: sites.flatMap((siteId) => this.#search(siteId, matchFor(known), question.path));
		const best = onePerPage(hits, known).slice(0, question.limit ?? 8);
		return {
			passages: best.map((hit) => ({
				title: hit.title,
				heading: [hit.above, hit.heading].filter((part) => part !== '').join(' › '),
				address: hit.anchor === null ? hit.address : `${hit.address}#${hit.anchor}`,
				text: excerpt(
					hit.text,
					known.flatMap(({ words }) => words),
				),
				score: Math.round(hit.score * 100) / 100,
			})),
			didYouMean: this.#didYouMean(question.question, weighed),
		};
	}

	close(): void {
		this.#db.close();
	}

	#sites({ owner, siteId }: Question): number[] {
		return this.#db
			.all<{ id: number }>(
				'SELECT id FROM site WHERE owner = ? AND (? IS NULL OR id = ?)',
				owner,
				siteId ?? null,
				siteId ?? null,
			)
			.map(({ id }) => id);
	}

	#search(siteId: number, match: string, path: string | undefined): Hit[] {
		const first = siteId * passagesPerSite;
		const columns = `passage.id, page_id, passage.heading, passage.above, anchor, passage.text, page.title, address, -ranked.rank AS score`;
		if (path === undefined || path === '' || path === '/') {
			return this.#db.all<Hit>(
				`SELECT ${columns} FROM (
					SELECT rowid, rank FROM search WHERE search MATCH ? AND rank MATCH '${weights}' AND rowid >= ? AND rowid < ?
					ORDER BY rank LIMIT ${candidates}
				) AS ranked JOIN passage ON passage.id = ranked.rowid JOIN page ON page.id = passage.page_id`,
				...[match, first, first + passagesPerSite],
			);
		}
		const site = this.#db.get<{ origins: string }>('SELECT origins FROM site WHERE id = ?', siteId);
		const origins = JSON.parse(site?.origins ?? '[]') as string[];
		return origins.flatMap((origin) => {
			const prefix = new URL(path, origin).href;
			return this.#db.all<Hit>(
				`SELECT ${columns} FROM search AS ranked JOIN passage ON passage.id = ranked.rowid
					JOIN page ON page.id = passage.page_id
				WHERE search MATCH ? AND rank MATCH '${weights}' AND ranked.rowid >= ? AND ranked.rowid < ?
					AND address >= ? AND address < ?
				ORDER BY ranked.rank LIMIT ${candidates}`,
				...[match, first, first + passagesPerSite, prefix, `${prefix}\u{10ffff}`],
			);
		});
	}

	/** In how many passages the rarest word of a term is. */
	#passagesWith({ words }: Term): number {
		let least = Infinity;
		for (const word of words) {
			const term = stem(fold(word));
			const row =
				this.#db.get<{ passages: number }>('SELECT passages FROM word WHERE term = ?', term) ??
				this.#db.get<{ passages: number }>('SELECT doc AS passages FROM vocabulary WHERE term = ?', term);
			least = Math.min(least, row?.passages ?? 0);
		}
		return least;
	}

	#didYouMean(question: string, terms: readonly Weighed[]): string | undefined {
		let meant = question;
		for (const { words } of terms.filter(({ passages }) => passages === 0))
			for (const word of words) {
				if (this.#passagesWith({ written: word, words: [word], isName: false }) > 0) continue;
				const suggestion = this.#suggest(fold(word));
				if (suggestion !== undefined) meant = meant.replace(new RegExp(escape(word), 'iu'), suggestion);
			}
		return meant === question ? undefined : meant;
	}

	/** A word near one that is not in the index. Its stem is what is looked for: the index knows no others. */
	#suggest(word: string): string | undefined {
		const [a = '', b = ''] = word;
		const starts = [...new Set([a, b])].filter((start) => start !== '');
		const near = starts.flatMap((start) =>
			this.#db.all<{ term: string; passages: number }>(
				'SELECT term, passages FROM word WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?',
				...[start, `${start}\u{10ffff}`, stem(word).length - 2, word.length + 2],
			),
		);
		const found = nearest([stem(word), word], near);
		return found === undefined ? undefined : this.#wordOf(found.term, word);
	}

	/** A word as it is written somewhere, given its stem: of several the one most like what was asked. */
	#wordOf(term: string, like: string): string {
		const rows = this.#db.all<{ text: string }>(
			`SELECT passage.heading || ' ' || passage.text AS text FROM search JOIN passage ON passage.id = search.rowid
			WHERE search MATCH ? LIMIT 20`,
			`"${term}"`,
		);
		const counts = new Map<string, number>();
		for (const word of rows.flatMap(({ text }) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []))
			if (stem(fold(word)) === term) counts.set(word, (counts.get(word) ?? 0) + 1);
		const words = [...counts].map(([word, passages]) => ({ term: word, passages }));
		return nearest([like], words)?.term ?? words[0]?.term ?? term;
	}
}

/**
 * What the index is asked: any of the terms, as long as that stays a bounded number of passages to rank. Beyond
 * that a passage must have one of the rarer terms, and the common ones only count where they stand beside it.
 */
const matchFor = (terms: readonly Weighed[]): string => {
	const rarestFirst = [...terms].sort((a, b) => a.passages - b.passages);
	const leading: Weighed[] = [];
	let ranked = 0;
	for (const term of rarestFirst) {
		if (leading.length > 0 && ranked + term.passages > mostRanked) break;
		leading.push(term);
		ranked += term.passages;
	}
	const any = (some: readonly Term[]): string => some.map(phraseOf).join(' OR ');
	return leading.length === terms.length ? any(terms) : `(${any(leading)}) AND (${any(terms)})`;
};

/** The best passage of each page; a page is helped a little by how much else on it is to the point. */
const onePerPage = (hits: readonly Hit[], terms: readonly Term[]): Hit[] => {
	const pages = new Map<number, Hit[]>();
	for (const hit of hits) {
		const page = pages.get(hit.page_id);
		if (page === undefined) pages.set(hit.page_id, [hit]);
		else page.push(hit);
	}
	const best = [...pages.values()].map((passages) => {
		const scored = passages
			.map((hit) => ({ ...hit, score: hit.score * coverage(hit, terms) }))
			.sort((a, b) => b.score - a.score);
		const [first, ...others] = scored as [Hit, ...Hit[]];
		const help = others.slice(0, 4).reduce((sum, { score }, at) => sum + score / (at + 2) ** 2, 0);
		return { ...first, score: first.score + helpOfOthers * help };
	});
	return best.sort((a, b) => b.score - a.score);
};

/** How much of the question a passage speaks to; one rare word alone makes no answer to a longer question. */
const coverage = (hit: Hit, terms: readonly Term[]): number => {
	const text = fold(
		`${hit.title} ${hit.above} ${hit.heading} ${hit.anchor ?? ''} ${hit.address} ${hit.text}`.toLowerCase(),
	);
	const found = terms.filter(({ words }) =>
		words.every((word) => text.includes(stemStart(fold(word)))),
	).length;
	return 0.5 + (0.5 * found) / terms.length;
};

const stemStart = (word: string): string => {
	const stemmed = stem(word);
	return word.startsWith(stemmed) ? stemmed : stemmed.slice(0, -1);
};

const fold = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '');

const escape = (text: string): string => text.replace(/[\\^$.|?+*()[\]{}]/gu, '\\$&');
