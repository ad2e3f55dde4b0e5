/** A task server on real sockets or pipes with time in the test's hand. */
import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { onTestFinished } from 'vitest';
import type { Backend } from '../../src/backend/backend.ts';
import type { TaskRecord } from '../../src/backend/record.ts';
import type { TaskStore } from '../../src/backend/store.ts';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import {
	createTaskServer,
	listen,
	type ListenOptions,
	serveTasksOverStdio,
	type TaskServer,
	type TaskServerOptions,
	type Tasks,
} from '../../src/server/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { envelope, Wire, type WireOptions } from './wire.ts';
import { newBackend } from '../support/backends.ts';

export interface RigOptions extends Pick<TaskServerOptions, 'concurrency' | 'limits' | 'timing'> {
	readonly tools: (server: McpServer, tasks: Tasks) => void;
	/** Makes the backend; by default one in memory. */
	readonly backend?: (clock: FakeClock) => Backend;
	readonly clock?: FakeClock;
	readonly http?: ListenOptions;
}

/** What the server complained about. */
export interface Complaint {
	readonly level: 'warn' | 'error';
	readonly message: string;
	readonly facts: Readonly<Record<string, unknown>>;
}

export interface Rig {
	readonly clock: FakeClock;
	readonly server: TaskServer;
	readonly backend: Backend;
	readonly complaints: readonly Complaint[];
	/** Calls of each method of the store. */
	readonly writes: Readonly<Record<'create' | 'full' | 'normal' | 'step', number>>;
	/** Every stored task. */
	records(): Promise<readonly TaskRecord[]>;
	stop(drainMs?: number): Promise<void>;
}

export interface HttpRig extends Rig {
	readonly url: string;
	readonly wire: Wire;
	/** Another client of the same server. */
	connect(options?: WireOptions): Wire;
}

export interface StdioRig extends Rig {
	/** Sends any bytes. */
	write(bytes: string | Buffer): void;
	/** Sends a request; resolves with the message that answers it. */
	request(method: string, params?: JsonObject, id?: number): Promise<JsonObject>;
	notify(method: string, params: JsonObject): void;
	/** Everything that came back, in order. */
	readonly messages: readonly JsonObject[];
	readonly isClosed: () => boolean;
}

/** Serves tools over HTTP on a free port until the test ends. */
export async function serveHttp(options: RigOptions): Promise<HttpRig> {
	const rig = prepare(options);
	const listening = await listen(rig.server, { port: 0, ...options.http });
	const wires: Wire[] = [];
	const connect = (wireOptions?: WireOptions): Wire => {
		const wire = new Wire(listening.url, wireOptions);
		wires.push(wire);
		return wire;
	};
	let stopped: Promise<void> | undefined;
	const stop = (drainMs = 0): Promise<void> => {
		stopped ??= (async () => {
			for (const wire of wires) wire.close();
			await listening.close(drainMs);
		})();
		return stopped;
	};
	onTestFinished(() => stop());
	return { ...rig, url: listening.url, wire: connect(), connect, stop };
}

/** Serves tools over a pair of pipes until the test ends. */
export function serveStdio(options: RigOptions): StdioRig {
	const rig = prepare(options);
	const stdin = new PassThrough();
	const stdout = new PassThrough();
	const messages: JsonObject[] = [];
	let rest = '';
	stdout.setEncoding('utf8').on('data', (chunk: string) => {
		const lines = (rest + chunk).split('\n');
		rest = lines.pop() ?? '';
		for (const line of lines) messages.push(JSON.parse(line) as JsonObject);
	});
	let isClosed = false;
	const serving = serveTasksOverStdio(rig.server, { transport: new StdioServerTransport(stdin, stdout) });
	void serving.closed.then(() => {
		isClosed = true;
	});
	const stop = (drainMs = 0): Promise<void> => serving.close(drainMs);
	onTestFinished(() => stop());
	let lastId = 0;
	const write = (bytes: string | Buffer): void => void stdin.write(bytes);
	return {
		...rig,
		stop,
		write,
		messages,
		isClosed: () => isClosed,
		notify: (method, params) => write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`),
		request: async (method, params = {}, id = ++lastId) => {
			const body = { jsonrpc: '2.0', id, method, params: { _meta: envelope(), ...params } };
			write(`${JSON.stringify(body)}\n`);
			return eventually(() => messages.find((message) => message['id'] === id), `the answer to ${method}`);
		},
	};
}

/** Looks again and again until there is something; fails after some seconds of real time. */
export async function eventually<T>(
	look: () => T | undefined | false | Promise<T | undefined | false>,
	what = 'it',
	withinMs = 10_000,
): Promise<T> {
	const deadlineMs = performance.now() + withinMs;
	for (;;) {
		const found = await look();
		if (found !== undefined && found !== false) return found;
		if (performance.now() > deadlineMs) throw new Error(`${what} did not happen within ${withinMs} ms`);
		await turn();
	}
}

/** Moves time on in small steps until something is there; fails when it takes longer on the test's clock. */
export async function advanceUntil<T>(
	clock: FakeClock,
	look: () => T | undefined | false | Promise<T | undefined | false>,
	{ stepMs = 100, withinMs = 60_000 } = {},
): Promise<T> {
	for (let passedMs = 0; passedMs <= withinMs; passedMs += stepMs) {
		const found = await look();
		if (found !== undefined && found !== false) return found;
		await clock.advance(stepMs);
	}
	throw new Error(`It did not happen within ${withinMs} ms of the test's time`);
}

/** Whether a promise has settled by now. */
export function settledFlag(promise: Promise<unknown>): () => boolean {
	let isSettled = false;
	const settle = (): void => {
		isSettled = true;
	};
	promise.then(settle, settle);
	return () => isSettled;
}

export function text(value: string): { content: [{ type: 'text'; text: string }] } {
	return { content: [{ type: 'text', text: value }] };
}

function prepare(options: RigOptions): Rig {
	const { tools, backend: makeBackend, clock = new FakeClock() } = options;
	const backend = makeBackend?.(clock) ?? newBackend(clock);
	const writes = { create: 0, full: 0, normal: 0, step: 0 };
	countWrites(backend.store, writes);
	const complaints: Complaint[] = [];
	const server = createTaskServer({
		...(options.concurrency !== undefined && { concurrency: options.concurrency }),
		...(options.limits && { limits: options.limits }),
		...(options.timing && { timing: options.timing }),
		backend,
		clock,
		log: {
			info: () => {},
			warn: (facts, message) => void complaints.push({ level: 'warn', message, facts }),
			error: (facts, message) => void complaints.push({ level: 'error', message, facts }),
		},
		server: (tasks) => {
			const mcp = new McpServer({ name: 'field', version: '1' });
			tools(mcp, tasks);
			return mcp;
		},
	});
	const records = async (): Promise<readonly TaskRecord[]> =>
		(await backend.store.list({ principal: null, statuses: null, limit: 100_000, cursor: null })).records;
	return { clock, server, backend, complaints, writes, records, stop: (drainMs = 0) => server.stop(drainMs) };
}

function countWrites(store: TaskStore, writes: Record<'create' | 'full' | 'normal' | 'step', number>): void {
	const create = store.create.bind(store);
	const replace = store.replace.bind(store);
	const saveStep = store.saveStep.bind(store);
	store.create = (details, limits) => {
		writes.create += 1;
		return create(details, limits);
	};
	store.replace = (record, durability) => {
		writes[durability] += 1;
		return replace(record, durability);
	};
	store.saveStep = (taskId, token, step) => {
		writes.step += 1;
		return saveStep(taskId, token, step);
	};
}

/** The value of a key in something that came over the wire. */
export function field(value: unknown, key: string): unknown {
	return isJsonObject(value) ? value[key] : undefined;
}
