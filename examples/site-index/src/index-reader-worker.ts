/** Answers in a thread of its own: a question takes tens of milliseconds, in which others are to be served. */
import { parentPort, workerData } from 'node:worker_threads';
import { IndexReader } from './index-reader.ts';
import { answerCalls } from './worker-calls.ts';

if (parentPort !== null) answerCalls(parentPort, new IndexReader(workerData as string));
