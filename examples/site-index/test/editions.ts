/** An index file of ten thousand real pages: six editions of two documentations, filled in as a crawl would. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HtmlReader } from '../src/html-reader.ts';
import { completeOptions } from '../src/options.ts';
import { passagesOf } from '../src/passage.ts';
import { SiteStore } from '../src/site-store.ts';
import { postgresDocs, pythonDocs } from './real-docs.ts';

const editions = 6;

/** Fills an index file for an owner and tells how many pages it has. */
export const fillEditions = (file: string, owner: string): number => {
	const store = new SiteStore(file);
	const reader = new HtmlReader();
	const base = 'https://docs.example.org/';
	const { runId, siteId } = store.begin(
		'fill',
		owner,
		completeOptions({ startAddress: base, maxDepth: 9 }),
		0,
	);
	const names = [pythonDocs, postgresDocs].flatMap((folder) =>
		readdirSync(folder, { recursive: true, encoding: 'utf8' })
			.filter((name) => name.endsWith('.html'))
			.map((name) => ({ name, page: reader.read(readFileSync(join(folder, name), 'utf8')) })),
	);
	for (let edition = 1; edition <= editions; edition += 1) {
		const found = names.map(({ name }) => ({
			address: `${base}${edition}/${name}`,
			kind: 'page' as const,
			depth: 1,
		}));
		store.admit(siteId, found, base, 0);
	}
	let at = 0;
	for (const queued of store.take(siteId, 'page', 0, 100_000)) {
		const entry = names[at % names.length];
		if (entry === undefined) break;
		const { address, depth, id: pageId } = queued;
		const page = { ...entry.page, links: [], canonical: undefined };
		const passages = passagesOf(entry.page);
		store.absorb({
			...{ pageId, runId, siteId, address, depth, page, passages, etag: undefined, lastModified: undefined },
			...{ bytes: 1, cut: false, hash: String(at), at: 0 },
		});
		store.index(false);
		at += 1;
	}
	store.finish(runId, 0);
	store.close();
	return at;
};
