/**
 * Everything known about the sites, in one SQLite file: what was found, what was fetched, what it says. Each
 * fetched page is one transaction, so a process killed at any point has lost only the pages still in its hands.
 */
import { Database, optional } from './database.ts';
import { originOf } from './address.ts';
import { Claims } from './claims.ts';
import type { CrawlOptions } from './options.ts';
import { schema } from './schema.ts';
import { SearchIndex } from './search-index.ts';
import { SiteScope } from './site-scope.ts';
import type { Fetched, Found, PageKind, PageState, QueuedPage, Run } from './stored.ts';
import { toQueuedPage } from './stored.ts';

const mostHops = 10;

export class SiteStore {
	readonly #db: Database;
	readonly #scopes = new Map<number, SiteScope>();
	readonly #search: SearchIndex;
	readonly #claims: Claims;

	constructor(file: string) {
		this.#db = new Database(file);
		// A commit that a power cut undoes costs a few pages fetched again; waiting for the disk at each costs more.
		this.#db.exec(
			'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8000;',
		);
		this.#db.exec(schema);
		this.#search = new SearchIndex(this.#db);
		this.#claims = new Claims(this.#db);
	}

	/** Makes several calls one transaction. */
	together(work: () => void): void {
		this.#db.transaction(work);
	}

	/**
	 * Starts a task's run, or finds it where it was, and claims the site for it. A site that is known already is
	 * read again for changes.
	 *
	 * @throws when another task reads the site.
	 */
	begin(taskId: string, owner: string, options: CrawlOptions, now: number): Run {
		const siteId = this.#db.transaction(() => {
			const known = this.#db.get<{ site_id: number }>('SELECT site_id FROM run WHERE task_id = ?', taskId);
			const site = known?.site_id ?? this.#siteOf(owner, options, now);
			this.#claims.make(site, taskId, options.startAddress, now);
			// Another process may have read or forgotten the site since.
			this.#scopes.delete(site);
			if (known !== undefined) return site;
			const { changes } = this.#db.run(
				`UPDATE page SET state = 'queued', reason = NULL, hops = 0 WHERE site_id = ? AND state != 'queued'`,
				site,
			);
			this.#db.run('DELETE FROM refusal WHERE site_id = ?', site);
			this.#db.run(
				'INSERT INTO run (task_id, site_id, kind, page_limit, started_at) VALUES (?, ?, ?, ?, ?)',
				...[taskId, site, changes > 0 ? 'refresh' : 'submit', options.maxPages ?? null, now],
			);
			return site;
		});
		return this.#runOf(taskId, siteId);
	}

	/** Whether the site still is the task's own to read. */
	renew(siteId: number, taskId: string, now: number): boolean {
		return this.#claims.renew(siteId, taskId, now);
	}

	release(siteId: number, taskId: string): void {
		this.#claims.release(siteId, taskId);
	}

	/** The tasks that began to read a site and did not get to its end: one reads it, others may wait or be gone. */
	unfinished(
		siteId: number,
		now: number,
	): { readonly reading: string | undefined; readonly tasks: string[] } {
		const rows = this.#db.all<{ task_id: string }>(
			'SELECT task_id FROM run WHERE site_id = ? AND finished_at IS NULL ORDER BY id',
			siteId,
		);
		return { reading: this.#claims.holder(siteId, now), tasks: rows.map(({ task_id: taskId }) => taskId) };
	}

	#siteOf(owner: string, options: CrawlOptions, now: number): number {
		const found = this.#db.get<{ id: number }>(
			'SELECT id FROM site WHERE owner = ? AND start_address = ?',
			...[owner, options.startAddress],
		);
		if (found !== undefined) {
			this.#db.run(
				'UPDATE site SET options = ?, updated_at = ? WHERE id = ?',
				JSON.stringify(options),
				now,
				found.id,
			);
			return found.id;
		}
		const origins = [...new Set([originOf(options.startAddress), ...options.origins])];
		return this.#db.run(
			'INSERT INTO site (owner, start_address, options, origins, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)',
			...[owner, options.startAddress, JSON.stringify(options), JSON.stringify(origins), now, now],
		).id;
	}

	#runOf(taskId: string, siteId: number): Run {
		const run = this.#db.get(
			`SELECT run.id, run.kind, page_limit, finished_at,
				(SELECT count(*) FROM page WHERE page.site_id = run.site_id AND kind = 'page') AS known,
				(SELECT count(*) FROM page WHERE page.site_id = run.site_id AND kind = 'page' AND run_id = run.id
					AND state IN ('indexed', 'duplicate')) AS visited,
				EXISTS (SELECT 1 FROM page WHERE page.run_id = run.id) AS resumed
			FROM run WHERE task_id = ?`,
			taskId,
		);
		return {
			runId: Number(run?.['id']),
			siteId,
			refresh: run?.['kind'] === 'refresh',
			resumed: run?.['resumed'] === 1,
			finished: run?.['finished_at'] !== null,
			pageLimit: optional<number>(run?.['page_limit']),
			visited: Number(run?.['visited']),
			known: Number(run?.['known']),
		};
	}

	limit(runId: number, pageLimit: number): void {
		this.#db.run('UPDATE run SET page_limit = ? WHERE id = ?', pageLimit, runId);
	}

	/** The next queued addresses behind a given one. Numbers only grow, so this walks the site breadth first. */
	take(siteId: number, kind: PageKind, after: number, count: number): QueuedPage[] {
		return this.#db
			.all(
				`SELECT id, address, depth, hops, etag, last_modified, changed_at, fetched_at, hash FROM page
				WHERE site_id = ? AND kind = ? AND state = 'queued' AND id > ? ORDER BY id LIMIT ?`,
				...[siteId, kind, after, count],
			)
			.map(toQueuedPage);
	}

	/** Queues addresses named by a sitemap or the caller; tells how many pages are new. */
	admit(siteId: number, found: readonly Found[], base: string, now: number): number {
		return this.#db.transaction(() => {
			const scope = this.#scope(siteId, now);
			let added = 0;
			for (const entry of found) {
				if (entry.changedAt !== undefined) {
					this.#db.run(
						'UPDATE page SET changed_at = ? WHERE site_id = ? AND address = ?',
						...[entry.changedAt, siteId, entry.address],
					);
				}
				if (entry.kind === 'sitemap') this.#insert(siteId, entry, 0);
				else {
					const judged = scope.judge(entry.address, base);
					if (judged === undefined) continue;
					if (judged.refused !== undefined) this.#refuse(siteId, judged.refused, judged.address);
					else added += this.#insert(siteId, { ...entry, address: judged.address }, 0);
				}
			}
			return added;
		});
	}

	/** A page's content: stored with its links as one. */
	absorb(fetched: Fetched): { state: PageState; added: number } {
		return this.#db.transaction(() => {
			const { siteId, pageId, page } = fetched;
			const scope = this.#scope(siteId, fetched.at);
			const canonical = this.#canonicalOf(fetched, scope);
			const twin = this.#db.get<{ address: string; canonical: string | null }>(
				`SELECT address, canonical FROM page WHERE site_id = ? AND hash = ? AND id != ? AND state = 'indexed' LIMIT 1`,
				...[siteId, fetched.hash, pageId],
			);
			const supersedes = twin !== undefined && twin.canonical === fetched.address;
			// The links of a page seen before under another address are not followed: relative links in a page that
			// answers to any address would lead on for ever.
			const added = twin === undefined || supersedes ? this.#follow(fetched, scope) : 0;
			let state: PageState = 'indexed';
			let reason: string | null = fetched.cut ? `only the first ${fetched.bytes} bytes were read` : null;
			if (page.noIndex) [state, reason] = ['skipped', 'the page asks not to be indexed'];
			else if (twin !== undefined && !supersedes) [state, reason] = ['duplicate', `same as ${twin.address}`];
			else if (canonical !== undefined && this.#isIndexed(siteId, canonical))
				[state, reason] = ['duplicate', `same as ${canonical}`];
			if (state === 'indexed') {
				this.#search.put(fetched);
				this.#supersede(siteId, fetched.address);
			} else this.#search.drop(pageId);
			this.#db.run(
				`UPDATE page SET state = ?, reason = ?, canonical = ?, etag = ?, last_modified = ?, hash = ?, title = ?,
					bytes = ?, fetched_at = ?, run_id = ? WHERE id = ?`,
				...[
					state,
					reason,
					canonical ?? null,
					fetched.etag ?? null,
					fetched.lastModified ?? null,
					fetched.hash,
				],
				...[page.title, fetched.bytes, fetched.at, fetched.runId, pageId],
			);
			return { state, added };
		});
	}

	/** What became of an address without content to store. */
	settle(pageId: number, runId: number, state: PageState, reason: string | undefined): void {
		this.#db.transaction(() => {
			if (state === 'gone' || state === 'skipped' || state === 'redirected') this.#search.drop(pageId);
			this.#db.run(
				'UPDATE page SET state = ?, reason = ?, run_id = ? WHERE id = ?',
				state,
				reason ?? null,
				runId,
				pageId,
			);
		});
	}

	/** A page that the server, or its sitemap, says is as it was. */
	unchanged(pageId: number, runId: number, now: number, asked: boolean): PageState {
		const row = this.#db.get<{ title: string | null; has: number }>(
			'SELECT title, EXISTS (SELECT 1 FROM passage WHERE page_id = page.id) AS has FROM page WHERE id = ?',
			pageId,
		);
		const state: PageState = row?.has === 1 ? 'indexed' : 'duplicate';
		this.#db.run(
			'UPDATE page SET state = ?, run_id = ?, fetched_at = iif(?, ?, fetched_at) WHERE id = ?',
			...[state, runId, asked ? 1 : 0, now, pageId],
		);
		return state;
	}

	/** A redirect: its target is one more address of the site, with all that is asked of one. */
	redirect(siteId: number, from: QueuedPage, runId: number, location: string, now: number): number {
		const scope = this.#scope(siteId, now);
		return this.#db.transaction(() => {
			const target = URL.parse(location, from.address);
			// Where the start address leads is where the site is: to https, or to its www name.
			if (
				target !== null &&
				from.depth === 0 &&
				/^https?:$/u.test(target.protocol) &&
				!scope.holds(target.href)
			) {
				scope.addOrigin(target.origin);
				this.#db.run('UPDATE site SET origins = ? WHERE id = ?', JSON.stringify(scope.origins), siteId);
			}
			const judged = from.hops >= mostHops ? undefined : scope.judge(location, from.address);
			const reason = from.hops >= mostHops ? 'too many redirects in a row' : `to ${location.slice(0, 500)}`;
			let added = 0;
			if (judged?.refused !== undefined) this.#refuse(siteId, judged.refused, judged.address);
			else if (judged !== undefined)
				added = this.#insert(
					siteId,
					{ address: judged.address, kind: 'page', depth: from.depth },
					from.hops + 1,
				);
			this.#search.drop(from.id);
			this.#db.run(
				`UPDATE page SET state = 'redirected', reason = ?, run_id = ?, hash = NULL WHERE id = ?`,
				...[reason, runId, from.id],
			);
			return added;
		});
	}

	robots(siteId: number, origin: string, notBefore: number): { text: string | undefined } | undefined {
		const row = this.#db.get(
			'SELECT text FROM robots WHERE site_id = ? AND origin = ? AND fetched_at >= ?',
			...[siteId, origin, notBefore],
		);
		return row === undefined ? undefined : { text: optional<string>(row['text']) };
	}

	keepRobots(siteId: number, origin: string, text: string | undefined, now: number): void {
		this.#db.run('INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)', siteId, origin, text ?? null, now);
	}

	/** Makes stored pages searchable; a batch at a time unless all are wanted. */
	index(all: boolean): void {
		this.#search.index(all);
	}

	finish(runId: number, now: number): void {
		this.#search.index(true);
		this.#db.transaction(() => {
			this.#search.listWords();
			this.#db.run('UPDATE run SET finished_at = ? WHERE id = ?', now, runId);
		});
	}

	forget(siteId: number): void {
		this.#search.index(true);
		this.#scopes.delete(siteId);
		this.#db.transaction(() => {
			this.#search.forget(siteId);
			for (const table of ['page', 'run', 'refusal', 'robots', 'claim'])
				this.#db.run(`DELETE FROM ${table} WHERE site_id = ?`, siteId);
			this.#db.run('DELETE FROM site WHERE id = ?', siteId);
		});
	}

	close(): void {
		this.#db.close();
	}

	#scope(siteId: number, now: number): SiteScope {
		let scope = this.#scopes.get(siteId);
		if (scope === undefined) {
			const site = this.#db.get<{ options: string; origins: string }>(
				'SELECT options, origins FROM site WHERE id = ?',
				siteId,
			);
			if (site === undefined) throw new Error(`site ${siteId} is not known any more`);
			const addresses = this.#db.all<{ address: string }>(
				'SELECT address FROM page WHERE site_id = ?',
				siteId,
			);
			scope = new SiteScope(
				JSON.parse(site.options) as CrawlOptions,
				JSON.parse(site.origins) as string[],
				addresses.map(({ address }) => address),
				now,
			);
			this.#scopes.set(siteId, scope);
		}
		return scope;
	}

	#insert(siteId: number, { address, kind, depth, changedAt }: Found, hops: number): number {
		return this.#db.run(
			`INSERT INTO page (site_id, address, kind, state, depth, hops, changed_at) VALUES (?, ?, ?, 'queued', ?, ?, ?)
			ON CONFLICT DO NOTHING`,
			...[siteId, address, kind, depth, hops, changedAt ?? null],
		).changes;
	}

	#refuse(siteId: number, reason: string, example: string): void {
		this.#db.run(
			`INSERT INTO refusal VALUES (?, ?, 1, ?) ON CONFLICT DO UPDATE SET count = count + 1`,
			...[siteId, reason, example],
		);
	}

	#follow(fetched: Fetched, scope: SiteScope): number {
		const base = URL.parse(fetched.page.base ?? '', fetched.address)?.href ?? fetched.address;
		const depth = fetched.depth + 1;
		let added = 0;
		for (const link of fetched.page.links) {
			const judged = scope.judge(link, base);
			if (judged === undefined) continue;
			const refused = judged.refused ?? (depth > scope.options.maxDepth ? 'too many links deep' : undefined);
			if (refused !== undefined) this.#refuse(fetched.siteId, refused, judged.address);
			else added += this.#insert(fetched.siteId, { address: judged.address, kind: 'page', depth }, 0);
		}
		return added;
	}

	/** The address a page gives as its own, when it is another one of the same site. */
	#canonicalOf({ siteId, page, address, depth }: Fetched, scope: SiteScope): string | undefined {
		if (page.canonical === undefined) return undefined;
		const url = URL.parse(page.canonical, address);
		if (url === null || !/^https?:$/u.test(url.protocol) || !scope.holds(url.href)) return undefined;
		const judged = scope.judge(url.href, address);
		if (judged !== undefined && judged.refused === undefined)
			this.#insert(siteId, { address: judged.address, kind: 'page', depth }, 0);
		url.hash = '';
		return url.href === address ? undefined : url.href;
	}

	#isIndexed(siteId: number, address: string): boolean {
		return (
			this.#db.get(
				`SELECT 1 FROM page WHERE site_id = ? AND address = ? AND state = 'indexed'`,
				siteId,
				address,
			) !== undefined
		);
	}

	/** Pages indexed while their own canonical address was still to come give way to it. */
	#supersede(siteId: number, address: string): void {
		const others = this.#db.all<{ id: number }>(
			`SELECT id FROM page WHERE site_id = ? AND canonical = ? AND state = 'indexed'`,
			...[siteId, address],
		);
		for (const { id } of others) {
			this.#search.drop(id);
			this.#db.run(`UPDATE page SET state = 'duplicate', reason = ? WHERE id = ?`, `same as ${address}`, id);
		}
	}
}
