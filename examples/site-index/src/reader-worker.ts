import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { PageReader } from './page-reader.ts';
import type { SiteStore } from './site-store.ts';
import { answerCalls, Calls } from './worker-calls.ts';

if (parentPort !== null)
	answerCalls(parentPort, new PageReader(new Calls<SiteStore>(workerData as MessagePort)));
