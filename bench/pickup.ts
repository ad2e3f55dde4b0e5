/** How long a new task waits for its handler, in one process, with nothing else to do. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Backend } from '../src/backend/backend.ts';
import { sqlite } from '../src/backend/sqlite/index.ts';
import type { TaskDetails } from '../src/backend/record.ts';
import type { CreateOutcome, TaskLimits } from '../src/backend/store.ts';
import type { Engine } from '../src/engine/engine.ts';
import { createTaskServer } from '../src/server/index.ts';
import { type Figure, percentile } from './figures.ts';
import { callOf, LOG, startEngine, withFolder } from './fixture.ts';

const WARM_UP = 100;
const SAMPLES = 300;
const PAUSE_MS = 10;
const TOOL = 'deploy';

interface Marks {
	created: number;
	entered: number;
	readonly entry: PromiseWithResolvers<void>;
}

type AllMarks = Map<string, Marks>;

export function measure(): Promise<readonly Figure[]> {
	return withFolder(async (folder) => [
		...(await throughEngine(join(folder, 'engine.db'))),
		...(await throughSdk(join(folder, 'sdk.db'))),
	]);
}

async function throughEngine(file: string): Promise<readonly Figure[]> {
	const marks: AllMarks = new Map();
	const backend = marked(sqlite(file), marks);
	const engine = await startEngine(backend, 64, async ({ record }) => {
		enter(marks, record.taskId);
		return { kind: 'returned', result: { content: [] } };
	});
	const figures = await sample('engine', engine, marks);
	await engine.stop(1_000);
	await backend.close();
	return figures;
}

/** As a tool's author has it: the handler is entered through an SDK server, which checks the arguments. */
async function throughSdk(file: string): Promise<readonly Figure[]> {
	const marks: AllMarks = new Map();
	const inputSchema = z.object({ branch: z.string(), environment: z.string(), build: z.number() });
	const server = createTaskServer({
		backend: marked(sqlite(file), marks),
		log: LOG,
		server: (tasks) => {
			const mcp = new McpServer({ name: 'bench', version: '1.0.0' });
			const handler = tasks.handler<z.infer<typeof inputSchema>>({}, (_args, task) => {
				enter(marks, task.taskId);
				return { content: [] };
			});
			mcp.registerTool(TOOL, { inputSchema }, handler);
			return mcp;
		},
	});
	await server.start();
	const figures = await sample('SDK handler', server.engine, marks);
	await server.stop(1_000);
	return figures;
}

async function sample(name: string, engine: Engine, marks: AllMarks): Promise<readonly Figure[]> {
	const pickups: number[] = [];
	const totals: number[] = [];
	for (let number = 0; number < WARM_UP + SAMPLES; number++) {
		const calledAt = performance.now();
		const call = await engine.call(callOf(TOOL, number));
		const mark = marksOf(marks, call.taskId);
		await mark.entry.promise;
		if (number >= WARM_UP) {
			pickups.push(mark.entered - mark.created);
			totals.push(mark.entered - calledAt);
		}
		marks.delete(call.taskId);
		await sleep(PAUSE_MS);
	}
	return [
		{
			what: `${name}, durable to entered, p50`,
			value: percentile(pickups, 0.5),
			unit: 'ms',
			goal: { atMost: 1 },
		},
		{ what: `${name}, durable to entered, p99`, value: percentile(pickups, 0.99), unit: 'ms' },
		{ what: `${name}, called to entered, p50`, value: percentile(totals, 0.5), unit: 'ms' },
		{ what: `${name}, called to entered, p99`, value: percentile(totals, 0.99), unit: 'ms' },
	];
}

function marksOf(marks: AllMarks, taskId: string): Marks {
	const mark = marks.get(taskId) ?? { created: 0, entered: 0, entry: Promise.withResolvers<void>() };
	marks.set(taskId, mark);
	return mark;
}

function enter(marks: AllMarks, taskId: string): void {
	const mark = marksOf(marks, taskId);
	mark.entered = performance.now();
	mark.entry.resolve();
}

/** A backend that notes when a task has become durable. */
function marked(backend: Backend, marks: AllMarks): Backend {
	const { store } = backend;
	const create = async (details: TaskDetails, limits: TaskLimits): Promise<CreateOutcome> => {
		const outcome = await store.create(details, limits);
		marksOf(marks, details.record.taskId).created = performance.now();
		return outcome;
	};
	return {
		...backend,
		store: new Proxy(store, {
			get(target, name) {
				if (name === 'create') return create;
				const member: unknown = Reflect.get(target, name, target);
				return typeof member === 'function' ? member.bind(target) : member;
			},
		}),
	};
}
