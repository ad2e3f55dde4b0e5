/** Runs one measurement in a process of its own: `node bench/measure.ts NAME`, forked by main.ts. */
import type { Measure } from './figures.ts';

const MEASURES: Readonly<Record<string, () => Promise<{ readonly measure: Measure }>>> = {
	throughput: () => import('./throughput.ts'),
	pickup: () => import('./pickup.ts'),
	http: () => import('./http.ts'),
	'memory-queued': () => import('./memory-queued.ts'),
	'memory-waiting': () => import('./memory-waiting.ts'),
	latency: () => import('./latency.ts'),
	postgres: () => import('./postgres.ts'),
	redis: () => import('./redis.ts'),
	'client-waiting': () => import('./client-waiting.ts'),
	'client-many': () => import('./client-many.ts'),
};

const name = process.argv[2] ?? '';
const load = MEASURES[name];
if (!load) throw new Error(`There is no measurement "${name}"`);
const { measure } = await load();
const figures = await measure();
if (process.send) process.send(figures, () => process.disconnect());
else console.log(figures);
