import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { SiteStore } from './site-store.ts';
import { answerCallsTogether } from './worker-calls.ts';

export interface StoreWorkerData {
	readonly file: string;
	/** Where the reading threads hand in their pages. */
	readonly readers: readonly MessagePort[];
}

const { file, readers } = workerData as StoreWorkerData;
const store = new SiteStore(file);
if (parentPort !== null)
	answerCallsTogether(
		[parentPort, ...readers],
		store,
		(work) => store.together(work),
		// Behind the answers: what is not searchable yet is stored all the same.
		() => store.index(false),
	);
