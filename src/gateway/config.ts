import { resolve } from 'node:path';
import * as z from 'zod';
import type { BudgetOverrides } from './host-budget.ts';
import { foldSchema } from './folding/presets.ts';
import type { UpstreamOptions } from './upstream-options.ts';

const MIB = 1_048_576;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A number of milliseconds. The unit is in the name of every key, so there is none to guess. */
const ms = (least: number, greatest: number): z.ZodNumber => z.number().int().min(least).max(greatest);

const TOOL = z.strictObject({
	/** How long a call may take and still be answered at once. */
	syncWindowMs: ms(0, 30_000).optional(),
	/** Whether a second call with the same arguments does no harm. */
	idempotent: z.boolean().optional(),
	/** Whether hosts see the tool. */
	visible: z.boolean().optional(),
});

const HEADER_RULE = 'names and values must be as HTTP allows them';

function isHeaders(headers: Readonly<Record<string, string>>): boolean {
	try {
		return new Headers(headers) instanceof Headers;
	} catch {
		return false;
	}
}

const UPSTREAM = z
	.strictObject({
		/** The program that is the server; with its arguments when it is a list. */
		command: z.union([z.string().min(1), z.array(z.string()).min(1)]).optional(),
		args: z.array(z.string()).default([]),
		/** Beside the environment of the gateway itself. */
		env: z.record(z.string(), z.string()).default({}),
		/** Meant from the folder of the file, which it is by default. */
		cwd: z.string().optional(),
		url: z
			.url({ protocol: /^https?$/, error: 'must be a URL with http or https' })
			.refine((url) => !/^\w+:\/\/[^/?#]*@/.test(url), {
				error: 'must have no name and password in it; say them in headers',
			})
			.optional(),
		transport: z.enum(['http', 'sse']).default('http'),
		headers: z.record(z.string(), z.string()).refine(isHeaders, { error: HEADER_RULE }).default({}),
		/** Goes before the names of its tools and prompts. Default: `<name>_`, nothing with a single upstream. */
		prefix: z
			.string()
			.regex(/^[\w-]*$/)
			.optional(),
		maxConcurrentCalls: z.number().int().min(1).max(10_000).default(64),
		/** Largest result of a call that is passed on, as JSON. */
		maxResultBytes: z
			.number()
			.int()
			.min(1_024)
			.max(64 * MIB)
			.default(10 * MIB),
		startTimeoutMs: ms(100, HOUR_MS).default(30_000),
		tools: z.record(z.string(), TOOL).default({}),
		/** Families of tools that hosts see as one tool each: presets by name, and mappings. */
		fold: foldSchema,
	})
	.refine(({ command, url }) => (command === undefined) !== (url === undefined), {
		error: 'needs either command or url, and not both',
	})
	.refine(
		({ url, args, env, cwd }) =>
			url === undefined || (args.length === 0 && Object.keys(env).length === 0 && cwd === undefined),
		{ error: 'args, env and cwd are for a command, and it has a url' },
	)
	.refine(
		({ command, headers, transport }) =>
			command === undefined || (Object.keys(headers).length === 0 && transport === 'http'),
		{ error: 'headers and transport are for a url, and it has a command' },
	);

const NO_UPSTREAM = 'needs at least one upstream';

const CONFIG = z.strictObject({
	listen: z
		.strictObject({
			host: z.string().min(1).default('127.0.0.1'),
			port: z.number().int().min(0).max(65_535).default(3000),
			path: z.string().startsWith('/').default('/mcp'),
			/** Listens where others can connect though nobody is asked who they are. */
			allowUnauthenticated: z.boolean().default(false),
		})
		.prefault({}),
	/** What keeps the tasks: an SQLite file, or the address of a Postgres database that several gateways share. */
	store: z.string().min(1).default('holdfast-gateway.db'),
	/** Folder for what the upstreams offered last. */
	stateFolder: z.string().min(1).default('.holdfast-gateway'),
	/** By the host's name in `clientInfo`. */
	hosts: z.record(z.string(), z.strictObject({ budgetMs: ms(1_000, 30 * DAY_MS).nullable() })).default({}),
	upstreams: z
		.record(z.string().regex(/^[\w-]+$/, 'a name is made of letters, digits, - and _'), UPSTREAM, {
			error: ({ input }) => (input === undefined || input === null ? NO_UPSTREAM : undefined),
		})
		.refine((upstreams) => Object.keys(upstreams).length > 0, { error: NO_UPSTREAM }),
});

/** A gateway's configuration as it is written. */
export type GatewayConfig = z.output<typeof CONFIG>;

/** The schema of a gateway's configuration file. */
export const gatewayConfigSchema = CONFIG;

/**
 * The upstreams of a configuration, in its order.
 *
 * @param environment - what every command inherits.
 * @param folder - where paths of the configuration are meant from.
 */
export function upstreamsOf(
	config: GatewayConfig,
	environment: Readonly<Record<string, string | undefined>>,
	folder: string,
): readonly UpstreamOptions[] {
	const entries = Object.entries(config.upstreams);
	return entries.map(([name, upstream]) => {
		const { command, args, env, cwd, url, transport, headers, tools } = upstream;
		const { maxConcurrentCalls, maxResultBytes, startTimeoutMs } = upstream;
		const [program = '', ...words] = typeof command === 'string' ? [command] : (command ?? []);
		const target =
			url === undefined
				? {
						kind: 'command' as const,
						command: program,
						args: [...words, ...args],
						env: { ...definedOf(environment), ...env },
						cwd: resolve(folder, cwd ?? ''),
					}
				: { kind: transport, url, headers };
		const prefix = upstream.prefix ?? (entries.length === 1 ? '' : `${name}_`);
		return {
			name,
			target,
			prefix,
			maxConcurrentCalls,
			maxResultBytes,
			startTimeoutMs,
			tools: toolsOf(tools),
			folds: upstream.fold,
		};
	});
}

/** What the operator says about hosts. */
export function budgetsOf({ hosts }: GatewayConfig): BudgetOverrides {
	return (hostName) => (Object.hasOwn(hosts, hostName) ? hosts[hostName]?.budgetMs : undefined);
}

function toolsOf(tools: z.output<typeof UPSTREAM>['tools']): UpstreamOptions['tools'] {
	return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, definedOf(tool)]));
}

/** Without the members that are undefined. */
function definedOf<T extends object>(value: T): { [K in keyof T]-?: Exclude<T[K], undefined> } {
	return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as never;
}
