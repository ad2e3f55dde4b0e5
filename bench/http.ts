/** `tasks/get` over HTTP, against the least that a JSON server can do and against the SDK's own `tools/call`. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import {
	CLIENT_CAPABILITIES_META,
	CLIENT_INFO_META,
	PROTOCOL_VERSION_META,
	TASKS_EXTENSION,
	TASKS_PROTOCOL_VERSION,
} from '../src/protocol/names.ts';
import { type Figure, median } from './figures.ts';
import { withFolder } from './fixture.ts';
import type { LoadOrder, LoadResult } from './http-load.ts';
import type { ServerName, ServerReady } from './http-server.ts';

const CONNECTIONS = 32;
const ROUNDS = 9;
const ROUND_MS = 1_000;
const WARM_UP_MS = 2_000;

const META = {
	[PROTOCOL_VERSION_META]: TASKS_PROTOCOL_VERSION,
	[CLIENT_INFO_META]: { name: 'bench', version: '1.0.0' },
	[CLIENT_CAPABILITIES_META]: { extensions: { [TASKS_EXTENSION]: {} } },
};

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
		const start = async (name: ServerName, argument: string): Promise<Contender> => {
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
	contenders: Readonly<Record<ServerName, Contender>>,
): Promise<readonly Figure[]> {
	const names = ['holdfast', 'echo', 'sdk'] as const;
	for (const name of names) await round(load, contenders[name], WARM_UP_MS);
	const rounds: Record<ServerName, Round>[] = [];
	for (let index = 0; index < ROUNDS; index++) {
		const results: Partial<Record<ServerName, Round>> = {};
		// Each round begins with another one.
		for (const offset of [0, 1, 2]) {
			const name = names[(index + offset) % 3] ?? 'echo';
			results[name] = await round(load, contenders[name], ROUND_MS);
		}
		rounds.push(results as Record<ServerName, Round>);
	}
	const ratio = (other: ServerName, of: keyof Round): number =>
		median(rounds.map((each) => each.holdfast[of] / each[other][of]));
	const middle = (name: ServerName, of: keyof Round): number => median(rounds.map((each) => each[name][of]));
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

/** The next message of a child; whoever sends it is known by who was asked. */
async function next<Message>(child: ChildProcess): Promise<Message> {
	const gone = new AbortController();
	const ended = once(child, 'exit', { signal: gone.signal }).then(() => {
		throw new Error('a child process ended too early');
	});
	try {
		const [message] = (await Promise.race([
			once(child, 'message', { signal: gone.signal }),
			ended,
		])) as unknown[];
		return message as Message;
	} finally {
		ended.catch(() => {});
		gone.abort();
	}
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

function request(method: string, name: string, params: Readonly<Record<string, unknown>>): string {
	const text = body(method, params);
	const head = Object.entries({
		host: 'localhost',
		...headers(method, name),
		'content-length': String(Buffer.byteLength(text)),
	}).map(([key, value]) => `${key}: ${value}\r\n`);
	return `POST /mcp HTTP/1.1\r\n${head.join('')}\r\n${text}`;
}

function headers(method: string, name: string): Record<string, string> {
	return {
		'content-type': 'application/json',
		accept: 'application/json, text/event-stream',
		'mcp-protocol-version': TASKS_PROTOCOL_VERSION,
		'mcp-method': method,
		'mcp-name': name,
	};
}

function body(method: string, params: Readonly<Record<string, unknown>>): string {
	return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } });
}
