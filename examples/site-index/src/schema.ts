/** The tables of the index file. */

export const schema = `
CREATE TABLE IF NOT EXISTS site (
	id INTEGER PRIMARY KEY,
	owner TEXT NOT NULL,
	start_address TEXT NOT NULL,
	options TEXT NOT NULL,
	origins TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	UNIQUE (owner, start_address)
);
CREATE TABLE IF NOT EXISTS run (
	id INTEGER PRIMARY KEY,
	task_id TEXT NOT NULL UNIQUE,
	site_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	page_limit INTEGER,
	started_at INTEGER NOT NULL,
	finished_at INTEGER
);
-- Which task reads a site now, until when it may be taken for alive.
CREATE TABLE IF NOT EXISTS claim (
	site_id INTEGER PRIMARY KEY,
	task_id TEXT NOT NULL,
	until INTEGER NOT NULL
);
-- Frontier and pages in one: a page that was found is a row in state 'queued', and stays the same row for ever.
CREATE TABLE IF NOT EXISTS page (
	id INTEGER PRIMARY KEY,
	site_id INTEGER NOT NULL,
	address TEXT NOT NULL,
	kind TEXT NOT NULL,
	state TEXT NOT NULL,
	reason TEXT,
	depth INTEGER NOT NULL,
	hops INTEGER NOT NULL DEFAULT 0,
	canonical TEXT,
	etag TEXT,
	last_modified TEXT,
	changed_at INTEGER,
	hash TEXT,
	title TEXT,
	bytes INTEGER,
	fetched_at INTEGER,
	run_id INTEGER,
	UNIQUE (site_id, address)
);
CREATE INDEX IF NOT EXISTS page_queue ON page (site_id, kind, state, id);
CREATE INDEX IF NOT EXISTS page_hash ON page (site_id, hash) WHERE hash IS NOT NULL;
CREATE INDEX IF NOT EXISTS page_canonical ON page (site_id, canonical) WHERE canonical IS NOT NULL;
CREATE TABLE IF NOT EXISTS passage (
	id INTEGER PRIMARY KEY,
	page_id INTEGER NOT NULL,
	heading TEXT NOT NULL,
	above TEXT NOT NULL,
	anchor TEXT,
	text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS passage_page ON passage (page_id);
-- Pages whose passages are stored but not yet searchable: inserting into the search index pays off in batches.
CREATE TABLE IF NOT EXISTS pending (page_id INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS refusal (
	site_id INTEGER NOT NULL,
	reason TEXT NOT NULL,
	count INTEGER NOT NULL,
	example TEXT NOT NULL,
	PRIMARY KEY (site_id, reason)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS robots (
	site_id INTEGER NOT NULL,
	origin TEXT NOT NULL,
	text TEXT,
	fetched_at INTEGER NOT NULL,
	PRIMARY KEY (site_id, origin)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS word (term TEXT PRIMARY KEY, passages INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5 (
	title, heading, above, path, text,
	content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab (search, 'row');
`;

/** Passages of one site have numbers in one range, which the search index can be limited to. */
export const passagesPerSite = 2 ** 31;
