/** `tasks/get` over HTTP, against the least that a JSON server can do and against the SDK's own `tools/call`. */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { type Figure, median } from './figures.ts';
import { withFolder } from './fixture.ts';
import type { LoadOrder, LoadResult } from './http-load.ts';
import type { ServerName, ServerReady } from './http-server.ts';
import { body, headers, next, request } from './wire.ts';

const CONNECTIONS = 32;
const ROUNDS = 9;
const ROUND_MS = 1_000;
const WARM_UP_MS = 2_000;

type Name = Exclude<ServerName, 'stored'>;

interface Contender {
	readonly child: ChildProcess;
	readonly ready: ServerReady;
	readonly requests: readonly string[];
}

interface Round {
	readonly perSecond: number;
	/** Requests per second that the server spent computing; the load and others do not count. */
	readonly perCpuSecond: number;
	/** Which part of the time the server was computing. */
	readonly busy: number;
	readonly bodyBytes: number;
}

export function measure(): Promise<readonly Figure[]> {
	return withFolder(async (folder) => {
		const children: ChildProcess[] = [];
		const start = async (name: Name, argument: string): Promise<Contender> => {
			const child = fork(join(import.meta.dirname, 'http-server.ts'), [name, argument]);
			children.push(child);
			const ready = await next<ServerReady>(child);
			return { child, ready, requests: [] };
		};
		try {
			const load = fork(join(import.meta.dirname, 'http-load.ts'));
			children.push(load);
			const holdfast = await start('holdfast', join(folder, 'tasks.db'));
			const gets = holdfast.ready.taskIds.map((taskId) => request('tasks/get', taskId, { taskId }));
			const calls = holdfast.ready.taskIds.map((taskId) =>
				request('tools/call', 'status', { name: 'status', arguments: { taskId } }),
			);
			const echo = await start('echo', await resultOf(holdfast.ready));
			const sdk = await start('sdk', '');
			return await compare(load, {
				holdfast: { ...holdfast, requests: gets },
				echo: { ...echo, requests: gets },
				sdk: { ...sdk, requests: calls },
			});
		} finally {
			for (const child of children) child.kill();
		}
	});
}

async function compare(
	load: ChildProcess,
	contenders: Readonly<Record<Name, Contender>>,
): Promise<readonly Figure[]> {
	const names = ['holdfast', 'echo', 'sdk'] as const;
	for (const name of names) await round(load, contenders[name], WARM_UP_MS);
	const rounds: Record<Name, Round>[] = [];
	for (let index = 0; index < ROUNDS; index++) {
		const results: Partial<Record<Name, Round>> = {};
		// Each round begins with another one.
		for (const offset of [0, 1, 2]) {
			const name = names[(index + offset) % 3] ?? 'echo';
			results[name] = await round(load, contenders[name], ROUND_MS);
		}
		rounds.push(results as Record<Name, Round>);
	}
	const ratio = (other: Name, of: keyof Round): number =>
		median(rounds.map((each) => each.holdfast[of] / each[other][of]));
	const middle = (name: Name, of: keyof Round): number => median(rounds.map((each) => each[name][of]));
	return [
		{ what: 'against a JSON echo', value: ratio('echo', 'perSecond'), unit: '', goal: { atLeast: 0.5 } },
		{
			what: "against the SDK's tools/call",
			value: ratio('sdk', 'perSecond'),
			unit: '',
			goal: { atLeast: 5 },
		},
		{ what: 'by CPU time, against a JSON echo', value: ratio('echo', 'perCpuSecond'), unit: '' },
		{ what: "by CPU time, against the SDK's tools/call", value: ratio('sdk', 'perCpuSecond'), unit: '' },
		...names.flatMap((name) => [
			{ what: `${name}, requests per second`, value: middle(name, 'perSecond'), unit: '/s' },
			{ what: `${name}, server busy`, value: middle(name, 'busy') * 100, unit: '%' },
			{ what: `${name}, answer`, value: middle(name, 'bodyBytes'), unit: 'bytes' },
		]),
	];
}

async function round(
	load: ChildProcess,
	{ child, ready, requests }: Contender,
	durationMs: number,
): Promise<Round> {
	const before = await usage(child);
	const order: LoadOrder = { port: ready.port, requests, connections: CONNECTIONS, durationMs };
	load.send(order);
	const result = await next<LoadResult>(load);
	if (result.failure !== null) throw new Error(`a request failed: ${result.failure.slice(0, 1_000)}`);
	const busyMs = (await usage(child)) - before;
	return {
		perSecond: (result.answers / result.elapsedMs) * 1000,
		perCpuSecond: (result.answers / busyMs) * 1000,
		busy: busyMs / result.elapsedMs,
		bodyBytes: result.bodyBytes,
	};
}

/** Milliseconds that a process has computed. */
async function usage(child: ChildProcess): Promise<number> {
	child.send('usage');
	const { user, system } = await next<NodeJS.CpuUsage>(child);
	return (user + system) / 1000;
}

async function resultOf({ port, taskIds }: ServerReady): Promise<string> {
	const taskId = taskIds[0] ?? '';
	const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
		method: 'POST',
		headers: headers('tasks/get', taskId),
		body: body('tasks/get', { taskId }),
	});
	const answer = (await response.json()) as { result?: unknown };
	if (answer.result === undefined) throw new Error(`tasks/get answered ${JSON.stringify(answer)}`);
	return JSON.stringify(answer.result);
}
