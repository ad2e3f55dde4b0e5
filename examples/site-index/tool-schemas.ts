/** What the tools take and give. */
import * as z from 'zod';
import { usualOptions } from './src/options.ts';

const patterns = z.array(z.string().min(1).max(500)).max(100).default([]);
const siteId = z.int().positive().describe('Number of the site, from list_sites');

export const submitInput = z.object({
	url: z.string().min(1).describe('Where the site begins, such as https://docs.example.org/'),
	maxPages: z.int().positive().optional().describe('Read at most so many pages; without it, the whole site'),
	maxDepth: z
		.int()
		.min(0)
		.max(1_000)
		.default(usualOptions.maxDepth)
		.describe('Links deep from the first page'),
	maxBytesPerPage: z.int().min(1_000).max(64_000_000).default(usualOptions.maxBytesPerPage),
	include: patterns.describe('Only paths that begin like one of these, in which * stands for anything'),
	exclude: patterns.describe('No paths that begin like one of these'),
	origins: z
		.array(z.url({ protocol: /^https?$/ }))
		.max(20)
		.default([])
		.describe('Further origins of the site'),
	askAbove: z.int().positive().optional().describe('Ask before reading on when the site has more pages'),
});

const reasons = z.array(z.object({ reason: z.string(), count: z.int(), example: z.string() }));
const entry = {
	siteId: z.int(),
	startAddress: z.string(),
	pages: z.int().describe('Pages that can be searched'),
	state: z.enum(['unfinished', 'complete', 'stopped at a limit']),
};

export const siteReport = z.object({
	...entry,
	unread: z.int().describe('Pages found and not read'),
	duplicates: z.int(),
	cut: z.int().describe('Pages of which only the beginning was read, for their size'),
	failed: reasons,
	skipped: reasons,
	refused: reasons,
});

export const noInput = z.object({});

export const siteInput = z.object({ siteId });

export const siteList = z.object({
	sites: z.array(z.object({ ...entry, createdAt: z.iso.datetime(), updatedAt: z.iso.datetime() })),
});

export const forgotten = z.object({
	siteId: z.int(),
	startAddress: z.string(),
	cancelledTasks: z.array(z.string()).describe('Tasks that had not come to the end of the site'),
});

export const askInput = z.object({
	question: z.string().min(1).max(1_000),
	siteId: siteId.optional().describe('Only this site, from list_sites; without it, all of them'),
	path: z.string().startsWith('/').optional().describe('Only pages whose path begins like this'),
	limit: z.int().min(1).max(50).default(8),
});

export const answers = z.object({
	passages: z.array(
		z.object({
			title: z.string(),
			heading: z.string(),
			address: z.string().describe('Where to read on: the page, with the anchor of the section'),
			text: z.string(),
			score: z.number(),
		}),
	),
	didYouMean: z.string().nullable(),
});
