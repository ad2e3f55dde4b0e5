/** What is kept of sites, runs and pages, as it goes to and from the store. */
import { optional, type Row } from './database.ts';
import type { Page } from './page.ts';
import type { Passage } from './passage.ts';

export type PageKind = 'sitemap' | 'page';
export type PageState = 'queued' | 'indexed' | 'duplicate' | 'redirected' | 'skipped' | 'failed' | 'gone';

export interface Found {
	readonly address: string;
	readonly kind: PageKind;
	readonly depth: number;
	readonly changedAt?: number | undefined;
}

export interface QueuedPage {
	readonly id: number;
	readonly address: string;
	readonly depth: number;
	readonly hops: number;
	readonly etag: string | undefined;
	readonly lastModified: string | undefined;
	readonly changedAt: number | undefined;
	readonly fetchedAt: number | undefined;
	readonly hash: string | undefined;
}

export interface Run {
	readonly runId: number;
	readonly siteId: number;
	readonly refresh: boolean;
	readonly resumed: boolean;
	readonly finished: boolean;
	/** The limit in force: the caller's, or what the caller answered when asked. */
	readonly pageLimit: number | undefined;
	readonly visited: number;
	readonly known: number;
}

export interface Fetched {
	readonly pageId: number;
	readonly runId: number;
	readonly siteId: number;
	readonly address: string;
	readonly depth: number;
	readonly etag: string | undefined;
	readonly lastModified: string | undefined;
	readonly bytes: number;
	readonly cut: boolean;
	readonly hash: string;
	readonly page: Omit<Page, 'sections'>;
	readonly passages: readonly Passage[];
	readonly at: number;
}

export const toQueuedPage = (row: Row): QueuedPage => ({
	id: Number(row['id']),
	address: String(row['address']),
	depth: Number(row['depth']),
	hops: Number(row['hops']),
	etag: optional<string>(row['etag']),
	lastModified: optional<string>(row['last_modified']),
	changedAt: optional<number>(row['changed_at']),
	fetchedAt: optional<number>(row['fetched_at']),
	hash: optional<string>(row['hash']),
});
