/** The task behind submit_site and refresh_site: it may end at any point and is entered again from its start. */
import { isHoldfastError, type TaskContext } from 'holdfast/server';
import type { SiteIndex } from './site-index.ts';
import type { SiteReport } from './src/catalogue.ts';
import type { Progress } from './src/crawl-ports.ts';
import type { CrawlOptions } from './src/options.ts';

/** Thrown out of a crawl, so that nothing of it is in memory while somebody thinks about the answer. */
class SizeQuestion extends Error {
	readonly known: number;

	constructor(known: number) {
		super(`${known} pages are known`);
		this.known = known;
	}
}

type Task = Omit<TaskContext, 'prepared'>;

/** Every so many pages the task's journal says that the crawl gets on: then earlier crashes count no more. */
const PAGES_PER_MILESTONE = 250;

const FORM = {
	type: 'object',
	properties: {
		goOn: { type: 'boolean', title: 'Read on' },
		maxPages: { type: 'integer', minimum: 1, title: 'At most so many pages in all' },
	},
	required: ['goOn'],
} as const;

/** Reads a site for a task. Where it stands is in the index file, under the task's id. */
export async function readSite(index: SiteIndex, options: CrawlOptions, task: Task): Promise<SiteReport> {
	let answer: boolean | number | undefined;
	for (;;) {
		const given = answer;
		try {
			return await index.read({
				taskId: task.taskId,
				owner: task.principal,
				options,
				signal: task.signal,
				onProgress: (progress) => note(progress, task),
				confirm: async (known) => {
					if (given === undefined) throw new SizeQuestion(known);
					return given;
				},
			});
		} catch (error) {
			if (!(error instanceof SizeQuestion)) throw error;
			answer = await askOn(error.known, options, task);
		}
	}
}

function note({ visited, total, message }: Progress, task: Task): void {
	task.progress({ progress: visited, total, message });
	// A failure to record it means that the task is somebody else's by now; then the signal fires as well.
	if (visited % PAGES_PER_MILESTONE === 0) task.step(`${visited} pages`, () => {}).catch(() => {});
}

/** Whether to read on: true for all of it, false for no further than the size that was named, or how many pages. */
async function askOn(found: number, options: CrawlOptions, task: Task): Promise<boolean | number> {
	// A question must be word for word the same on every entry, and more pages may be known by then.
	const known = await task.step('size', () => found);
	const count = known.toLocaleString('en');
	try {
		const { action, content } = await task.requireInput('go on', {
			mode: 'form',
			message: `${options.startAddress} has at least ${count} pages. Read them all?`,
			requestedSchema: FORM,
		});
		if (action !== 'accept' || content?.['goOn'] !== true) return false;
		const maxPages = content['maxPages'];
		return typeof maxPages === 'number' ? maxPages : true;
	} catch (error) {
		// The caller wanted to be asked and cannot be: what may be read without asking is read.
		if (isHoldfastError(error, 'INPUT_UNAVAILABLE')) return false;
		throw error;
	}
}
