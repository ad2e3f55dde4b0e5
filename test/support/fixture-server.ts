/** A task server with one tool per behaviour that the specification talks about, on either transport. */
import { inputRequired, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Backend } from '../../src/backend/backend.ts';
import { memory } from '../../src/backend/memory/index.ts';
import { TaskFailure } from '../../src/errors.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import {
	createFetch,
	createTaskServer,
	listen,
	type ListenOptions,
	serveTasksOverStdio,
	type TaskServer,
	type TaskServerOptions,
	type Tasks,
} from '../../src/server/index.ts';
import { type Gate, gate, question } from './engine-rig.ts';
import { httpWire, stdioPair, type StdioPair, type Wire } from './wire.ts';

/** What a test does to the handlers: gates by name, opened with what the handler is to do. */
export class Control {
	readonly #gates = new Map<string, Gate<string>>();
	readonly log: string[] = [];

	gate(name: string): Gate<string> {
		const one = this.#gates.get(name) ?? gate<string>();
		this.#gates.set(name, one);
		return one;
	}

	open(name: string, value = 'done'): void {
		this.gate(name).open(value);
	}
}

export interface Fixture {
	readonly control: Control;
	readonly server: TaskServer;
	readonly backend: Backend;
	readonly wire: Wire;
	/** The endpoint; undefined where it is not served over sockets. */
	readonly url?: string;
	/** Another client of the same server; over stdio there is only one. */
	another(): Wire;
	/** The server stops while its clients are still there. */
	closeServer(drainMs?: number): Promise<void>;
	/** Both ends go away. */
	close(): Promise<void>;
}

export interface FixtureOptions {
	readonly backend?: Backend;
	/** How the task server differs from its defaults. */
	readonly server?: Partial<Omit<TaskServerOptions, 'server' | 'backend'>>;
	/** How the HTTP endpoint differs from its defaults. */
	readonly listen?: ListenOptions;
}

const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] });

function register(server: McpServer, tasks: Tasks, control: Control): void {
	const named = z.object({ gate: z.string() });
	const none = z.object({});
	server.registerTool('plain', { inputSchema: none }, () => text('plain'));
	server.registerTool(
		'quick',
		{ inputSchema: none },
		tasks.handler({}, () => text('quick')),
	);
	server.registerTool(
		'slow',
		{ inputSchema: named },
		tasks.handler({ syncWindowMs: 0 }, async (args, task) => {
			control.log.push(`slow ${args.gate}`);
			task.signal.addEventListener('abort', () => control.log.push(`abort ${args.gate}`));
			return text(await control.gate(args.gate).opened);
		}),
	);
	server.registerTool(
		'window',
		{ inputSchema: named },
		tasks.handler({ syncWindowMs: 1_000 }, async (args) => {
			control.log.push(`window ${args.gate}`);
			return text(await control.gate(args.gate).opened);
		}),
	);
	server.registerTool(
		'polite',
		{ inputSchema: named },
		tasks.handler({ syncWindowMs: 0, onCrash: 'resume' }, async (args, task) => {
			await Promise.race([
				control.gate(args.gate).opened,
				new Promise((_resolve, reject) => {
					task.signal.addEventListener('abort', () => reject(task.signal.reason as Error));
				}),
			]);
			return text('polite');
		}),
	);
	server.registerTool(
		'structured',
		{ inputSchema: none, outputSchema: z.object({ answer: z.number() }) },
		tasks.handler({ syncWindowMs: 0 }, () => ({
			...text('42'),
			structuredContent: { answer: 42 },
			_meta: { 'example.com/own': true },
		})),
	);
	server.registerTool(
		'throwing',
		{ inputSchema: none },
		tasks.handler({ syncWindowMs: 0 }, () => {
			throw new Error('no such branch');
		}),
	);
	server.registerTool(
		'failing',
		{ inputSchema: none },
		tasks.handler({ syncWindowMs: 0 }, () => {
			throw new TaskFailure(-32099, 'quota used up', { left: 0 });
		}),
	);
	server.registerTool(
		'asking',
		{ inputSchema: z.object({ keys: z.array(z.string()) }) },
		tasks.handler({ syncWindowMs: 0 }, async ({ keys }, task) => {
			const answers = await Promise.all(keys.map((key) => task.requireInput(key, question(`${key}?`))));
			return text(JSON.stringify(answers));
		}),
	);
	server.registerTool(
		'asking_soon',
		{ inputSchema: none },
		tasks.handler({ syncWindowMs: 30_000 }, async (_args, task) => {
			return text(JSON.stringify(await task.requireInput('soon', question('Soon?'))));
		}),
	);
	for (const onDisconnect of ['continue', 'cancel'] as const)
		server.registerTool(
			`on_disconnect_${onDisconnect}`,
			{ inputSchema: named },
			tasks.handler({ onDisconnect, cancelGraceMs: 0 }, async (args) => {
				control.log.push(`held ${args.gate}`);
				return text(await control.gate(args.gate).opened);
			}),
		);
	server.registerTool(
		'asking_by_url',
		{ inputSchema: none },
		tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
			const url = 'https://example.com/consent';
			const answer = await task.requireInput('consent', { mode: 'url', message: 'Consent?', url });
			return text(answer.action);
		}),
	);
	server.registerTool(
		'drawing_on_the_client',
		{ inputSchema: none },
		tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
			const sampled = await task.requireInput('poem', {
				method: 'sampling/createMessage',
				params: { messages: [{ role: 'user', content: { type: 'text', text: 'A poem' } }], maxTokens: 9 },
			});
			const listed = await task.requireInput('roots', { method: 'roots/list' });
			return text(JSON.stringify([sampled, listed]));
		}),
	);
	server.registerTool(
		'noisy',
		{ inputSchema: named },
		tasks.handler({ syncWindowMs: 0 }, async (args, task) => {
			task.progress({ progress: 1, total: 4, message: 'one of four' });
			const value = await control.gate(args.gate).opened;
			task.progress({ progress: 2, total: 4, message: 'two of four' });
			return text(value);
		}),
	);
	server.registerTool(
		'required',
		{ inputSchema: none },
		tasks.handler({ support: 'required', syncWindowMs: 0 }, () => text('required')),
	);
	server.registerTool(
		'forbidden',
		{ inputSchema: none },
		tasks.handler({ support: 'forbidden', syncWindowMs: 0 }, () => text('forbidden')),
	);
	let failures = 0;
	server.registerTool(
		'forbidden_retrying',
		{ inputSchema: none },
		tasks.handler({ support: 'forbidden', retry: { maxAttempts: 2, backoffMs: 0 } }, (_args, task) => {
			failures += 1;
			control.log.push(`entered ${task.attempt}`);
			if (task.attempt === 1) throw new Error(`failure ${failures}`);
			return text('second time');
		}),
	);
	server.registerTool(
		'prepared',
		{ inputSchema: none },
		tasks.handler(
			{
				syncWindowMs: 0,
				prepare: (_args, ctx) => {
					const { inputResponses } = ctx.mcpReq;
					const said: unknown = inputResponses?.['who'];
					if (said === undefined)
						return inputRequired({
							inputRequests: {
								who: {
									method: 'elicitation/create',
									params: {
										mode: 'form',
										message: 'Who?',
										requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
									},
								},
							},
						});
					return said as JsonObject;
				},
			},
			async (_args, task) => {
				// The same key as before the task: another namespace, so another question.
				const again = await task.requireInput('who', question('Who again?'));
				return text(JSON.stringify([task.prepared, again]));
			},
		),
	);
}

function taskServer(control: Control, options: FixtureOptions, backend: Backend): TaskServer {
	return createTaskServer({
		...options.server,
		backend,
		server: (tasks) => {
			const server = new McpServer({ name: 'fixture', version: '1' });
			register(server, tasks, control);
			return server;
		},
	});
}

/** The fixture over HTTP, as `listen` serves it: small task methods take the direct path. */
export async function overHttp(options: FixtureOptions = {}): Promise<Fixture> {
	const control = new Control();
	const backend = options.backend ?? memory();
	const server = taskServer(control, options, backend);
	const listening = await listen(server, { port: 0, ...options.listen });
	const wire = httpWire(listening.url);
	return {
		control,
		server,
		backend,
		wire,
		url: listening.url,
		another: () => httpWire(listening.url),
		closeServer: (drainMs = 0) => listening.close(drainMs),
		close: async () => {
			await wire.close();
			await listening.close(0);
		},
	};
}

/** The fixture behind the web-standard face alone: every request goes through the SDK. */
export async function throughSdk(options: FixtureOptions = {}): Promise<Fixture> {
	const control = new Control();
	const backend = options.backend ?? memory();
	const server = taskServer(control, options, backend);
	await server.start();
	const endpoint = createFetch(server, options.listen ?? {});
	const open = (): Wire => httpWire('http://fixture.invalid/mcp', (request) => endpoint.fetch(request));
	const wire = open();
	const closeServer = async (drainMs = 0): Promise<void> => {
		await server.stop(drainMs);
		await endpoint.close();
	};
	return {
		control,
		server,
		backend,
		wire,
		another: open,
		closeServer,
		close: async () => {
			await wire.close();
			await closeServer();
		},
	};
}

/** The fixture over stdio, on an in-memory pipe. */
export async function overStdio(
	options: FixtureOptions = {},
): Promise<Fixture & { readonly pair: StdioPair }> {
	const control = new Control();
	const backend = options.backend ?? memory();
	const server = taskServer(control, options, backend);
	const pair = stdioPair();
	const serving = serveTasksOverStdio(server, { transport: pair.server });
	await server.start();
	return {
		control,
		server,
		backend,
		pair,
		wire: pair.wire,
		another: () => pair.wire,
		closeServer: (drainMs = 0) => serving.close(drainMs),
		close: () => serving.close(0),
	};
}

/** The ways in which a request reaches the server. */
export const ROUTES = [
	['HTTP', overHttp],
	['the SDK alone', throughSdk],
	['stdio', overStdio],
] as const;
