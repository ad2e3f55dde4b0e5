/** An MCP server that indexes documentation sites. Also for `holdfast serve examples/site-index/server.ts`. */
import { type CallToolResult, McpServer } from '@modelcontextprotocol/server';
import { isHoldfastError, type TaskServerOptions, type Tasks } from 'holdfast/server';
import type * as z from 'zod';
import { readSite } from './read-site.ts';
import { SiteIndex } from './site-index.ts';
import type { SiteReport } from './src/catalogue.ts';
import { completeOptions, type CrawlOptions } from './src/options.ts';
import * as schemas from './tool-schemas.ts';

/** Options of {@link siteIndexServer}. */
export interface SiteIndexOptions {
	/** The SQLite file of the index, made when it is not there. */
	readonly file: string;
	/** Whether sites at private, link-local and loopback addresses may be read. Default false. */
	readonly allowPrivate?: boolean;
	/** How long refresh_site may take and still be answered at once, without a task. Default 5,000. */
	readonly refreshWindowMs?: number;
}

/** A crawl is aborted with this much time to store what it has in hand. */
const CANCEL_GRACE_MS = 10_000;

/** The servers of one process, with what opens and closes the index that they share. */
export function siteIndexServer({
	file,
	allowPrivate = false,
	refreshWindowMs = 5_000,
}: SiteIndexOptions): Pick<TaskServerOptions, 'server' | 'open' | 'close'> {
	const index = new SiteIndex(file, allowPrivate);
	const build = (tasks: Tasks): McpServer => {
		const server = new McpServer({ name: 'site-index', version: '1.0.0' });
		server.registerTool(
			'submit_site',
			{
				title: 'Index a documentation site',
				description:
					'Reads a whole documentation site and makes it searchable with ask_site. Large sites take minutes ' +
					'or hours. A site that is known already is read again.',
				inputSchema: schemas.submitInput,
				outputSchema: schemas.siteReport,
				annotations: { idempotentHint: true, openWorldHint: true },
			},
			tasks.handler(
				{
					// A task before the first request goes out, so that a crash can never lose the call.
					syncWindowMs: 0,
					onCrash: 'resume',
					cancelGraceMs: CANCEL_GRACE_MS,
					// An address that is none is said at once, not by a task.
					prepare: optionsOf,
				},
				async (_args, task) => reported(await readSite(index, task.prepared, task)),
			),
		);
		server.registerTool(
			'refresh_site',
			{
				title: 'Bring a site up to date',
				description: 'Reads again what changed on a site since it was last read, with the same limits.',
				inputSchema: schemas.siteInput,
				outputSchema: schemas.siteReport,
				annotations: { idempotentHint: true, openWorldHint: true },
			},
			tasks.handler(
				{ syncWindowMs: refreshWindowMs, onCrash: 'resume', cancelGraceMs: CANCEL_GRACE_MS },
				async ({ siteId }, task) =>
					reported(await readSite(index, await index.options(task.principal, siteId), task)),
			),
		);
		// The others are no tasks; through the handler they know whose sites they are about.
		server.registerTool(
			'ask_site',
			{
				title: 'Ask the indexed sites',
				description:
					'Finds the passages that answer a question or explain a name, best first, with the address to read on.',
				inputSchema: schemas.askInput,
				outputSchema: schemas.answers,
				annotations: { readOnlyHint: true },
			},
			tasks.handler({ support: 'forbidden' }, async ({ siteId, path, ...question }, task) => {
				const owner = task.principal;
				if (siteId !== undefined) await index.options(owner, siteId);
				const asked = { ...question, owner, ...(siteId && { siteId }), ...(path && { path }) };
				const { passages, didYouMean = null } = await index.ask(asked);
				const found = passages.map(
					({ title, heading, address, text }) => `${title}: ${heading}\n${address}\n${text}`,
				);
				const hint = didYouMean === null ? [] : [`Did you mean: ${didYouMean}`];
				const text = [...hint, ...(found.length === 0 ? ['Nothing was found.'] : found)].join('\n\n');
				return answered(text, { passages: [...passages], didYouMean } satisfies z.infer<
					typeof schemas.answers
				>);
			}),
		);
		server.registerTool(
			'list_sites',
			{
				title: 'List the indexed sites',
				description: 'The sites that can be asked, with their numbers and how much of each is there.',
				inputSchema: schemas.noInput,
				outputSchema: schemas.siteList,
				annotations: { readOnlyHint: true },
			},
			tasks.handler({ support: 'forbidden' }, async (_args, task) => {
				const sites = (await index.sites(task.principal)).map(({ createdAt, updatedAt, ...site }) => ({
					...site,
					createdAt: new Date(createdAt).toISOString(),
					updatedAt: new Date(updatedAt).toISOString(),
				}));
				const lines = sites.map(
					({ siteId, startAddress, pages, state }) => `${siteId}: ${startAddress}, ${pages} pages, ${state}`,
				);
				return answered(lines.join('\n') || 'No site is indexed.', { sites });
			}),
		);
		server.registerTool(
			'forget_site',
			{
				title: 'Forget a site',
				description: 'Takes a site and all its pages out of the index.',
				inputSchema: schemas.siteInput,
				outputSchema: schemas.forgotten,
				annotations: { destructiveHint: true },
			},
			tasks.handler({ support: 'forbidden' }, async ({ siteId }, task) => {
				const { startAddress } = await index.options(task.principal, siteId);
				const cancelledTasks: string[] = [];
				// Before the site goes: a task that waits for an answer would begin it anew.
				for (const taskId of await index.unfinished(siteId, startAddress))
					if (await cancel(tasks, taskId, task.principal)) cancelledTasks.push(taskId);
				await index.forget(siteId);
				const also = cancelledTasks.map(
					(taskId) => ` Task ${taskId}, which had not finished it, is cancelled.`,
				);
				return answered(`${startAddress} is forgotten.${also.join('')}`, {
					...{ siteId, startAddress, cancelledTasks },
				});
			}),
		);
		return server;
	};
	return { server: build, open: () => index.open(), close: () => index.close() };
}

/** Cancels a task and tells whether there was something to cancel. */
async function cancel(tasks: Tasks, taskId: string, owner: string): Promise<boolean> {
	try {
		return await tasks.cancel(taskId, owner);
	} catch (error) {
		// It ended so long ago that it is no longer kept.
		if (isHoldfastError(error, 'TASK_NOT_FOUND')) return false;
		throw error;
	}
}

function optionsOf({
	url,
	maxPages,
	askAbove,
	origins,
	...others
}: z.infer<typeof schemas.submitInput>): CrawlOptions {
	return completeOptions({
		startAddress: url,
		...others,
		origins: origins.map((address) => new URL(address).origin),
		...(maxPages !== undefined && { maxPages }),
		...(askAbove !== undefined && { askAbove }),
	});
}

function reported({
	words,
	createdAt: _created,
	updatedAt: _updated,
	...report
}: SiteReport): CallToolResult {
	// A site of which nothing could be read is no index; the words say why.
	return { ...answered(words, report), ...(report.pages === 0 && { isError: true }) };
}

function answered(text: string, structuredContent: Record<string, unknown>): CallToolResult {
	return { content: [{ type: 'text', text }], structuredContent };
}

/** The server as the environment configures it: SITE_INDEX_DB and SITE_INDEX_ALLOW_PRIVATE. */
export const { server, open, close } = siteIndexServer({
	file: process.env['SITE_INDEX_DB'] ?? 'site-index.db',
	allowPrivate: process.env['SITE_INDEX_ALLOW_PRIVATE'] === '1',
});
