/**
 * The shape of src, as rules. Each rule is one entry of RULES: what it forbids, a source that breaks it and one
 * that does not. Every rule is run over src and, so that a rule cannot quietly stop seeing, over its own examples.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';

const MAX_LINES = 400;

/**
 * What each room may import. A room is a folder of src (or a file directly in it); `backend` is the contracts
 * themselves and `backend/*` each implementation. A room may always import itself.
 */
const ROOMS: Record<string, { may: string[]; lazily?: string[] }> = {
	protocol: { may: [] },
	'errors.ts': { may: ['protocol'] },
	// Who holds a lease: workers in the store, hosts in their journal.
	'process-owner.ts': { may: [] },
	'index.ts': { may: ['protocol', 'errors.ts'] },
	backend: { may: ['protocol', 'errors.ts'] },
	'backend/*': { may: ['backend', 'protocol', 'errors.ts'] },
	engine: { may: ['backend', 'protocol', 'errors.ts'] },
	server: { may: ['engine', 'backend', 'protocol', 'errors.ts', 'process-owner.ts'] },
	client: { may: ['protocol', 'errors.ts', 'process-owner.ts'] },
	gateway: { may: ['server', 'client', 'engine', 'backend', 'protocol', 'errors.ts'] },
	admin: { may: ['engine', 'backend', 'protocol', 'errors.ts'] },
	cli: {
		may: ['admin', 'gateway', 'server', 'client', 'engine', 'backend', 'protocol', 'errors.ts', 'index.ts'],
		lazily: ['backend/*'],
	},
	testing: { may: ['backend', 'protocol', 'errors.ts', 'engine/clock.ts'] },
};

/** Rooms that have no business with the world outside: no Node built-ins, no SDK. */
const WITHOUT_NODE = ['protocol', 'errors.ts', 'index.ts'];
const WITHOUT_SDK = ['errors.ts', 'backend', 'backend/*', 'engine', 'testing'];

/** The one file that imports each half of the SDK, so that a new SDK version is one file's concern. */
const SDK_IMPORTERS: Record<string, string> = {
	'@modelcontextprotocol/server': 'server/sdk.ts',
	'@modelcontextprotocol/node': 'server/sdk.ts',
	'@modelcontextprotocol/client': 'client/sdk.ts',
};

/** Files that must spell a bare `timeout`, `ttl`, `interval` or `delay`, because somebody else named it. */
const FOREIGN_NAMES: Record<string, string> = {};
const LEGACY_PROTOCOL = /^protocol\/legacy[^/]*\.ts$/;

const BARE_DURATION = /\b(?:timeout|ttl|interval|delay)\??\s*:\s*[^;,)\n]*\bnumber\b/g;

/** Comments, strings, templates and regular expressions: what has to be told apart before a pattern is looked for. */
const TOKEN =
	/\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|(?<=[(,=:[!&|?{};>]\s*|\breturn\s+)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/*\\\n[])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])*\/[a-z]*/g;

/** Files behind the exports map: the only ones called index.ts, and the only ones that re-export another room. */
const PUBLIC_ENTRIES = Object.values<string | { default: string }>(
	JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')).exports,
).flatMap((target) =>
	typeof target === 'string' ? [] : [target.default.replace('./dist/', '').replace(/\.js$/, '.ts')],
);

/** Sources by path below src. */
type Tree = Record<string, string>;
type Import = { from: string; specifier: string; kind: 'type' | 'static' | 'dynamic'; reexport: boolean };
type Rule = { forbids: string; find: (tree: Tree) => string[]; wrong: Tree[]; fine: Tree };

const RULES: Rule[] = [
	{
		forbids: 'a room importing what lies outside its arrows',
		find: (tree) =>
			localImports(tree).flatMap(({ from, to, kind }) => {
				const room = roomOf(from);
				const target = roomOf(to);
				const arrows = ROOMS[generic(room)];
				if (!arrows || room === target) return [];
				const may = (allowed: string[]) => allowed.includes(generic(target)) || allowed.includes(to);
				if (may(arrows.may)) return [];
				if (may(arrows.lazily ?? [])) {
					return kind === 'static' ? [`${from} imports ${to} eagerly; ${room} loads it by import()`] : [];
				}
				return [`${from} imports ${to}: ${room} may not import ${target}`];
			}),
		wrong: [
			{ 'protocol/task.ts': `import { fail } from '../errors.ts';` },
			{ 'errors.ts': `import type { Clock } from './engine/clock.ts';` },
			{ 'backend/store.ts': `import { next } from '../engine/transition.ts';` },
			{ 'backend/store.ts': `import { open } from './sqlite/open.ts';` },
			{ 'backend/sqlite/a.ts': `import { b } from '../memory/b.ts';` },
			{ 'backend/memory/a.ts': `import { clock } from '../../engine/clock.ts';` },
			{ 'engine/runner.ts': `import { open } from '../backend/sqlite/open.ts';` },
			{ 'engine/runner.ts': `await import('../server/sdk.ts');` },
			{ 'engine/runner.ts': `export type { C } from '../client/sdk.ts';` },
			{ 'server/tool.ts': `import type { Store } from '../backend/memory/store.ts';` },
			{ 'server/tool.ts': `import { call } from '../client/call.ts';` },
			{ 'client/driver.ts': `import { Engine } from '../engine/engine.ts';` },
			{ 'client/driver.ts': `import type { TaskStore } from '../backend/store.ts';` },
			{ 'gateway/http.ts': `import { open } from '../backend/sqlite/open.ts';` },
			{ 'admin/api.ts': `import { tool } from '../server/tool.ts';` },
			{ 'cli/serve.ts': `import { open } from '../backend/sqlite/open.ts';` },
			{ 'cli/serve.ts': `await import('../testing/faults.ts');` },
			{ 'testing/faults.ts': `import { Engine } from '../engine/engine.ts';` },
			{ 'index.ts': `export { Engine } from './engine/engine.ts';` },
		],
		fine: {
			'index.ts': `export * from './errors.ts';`,
			'errors.ts': `import { codes } from './protocol/codes.ts';`,
			'protocol/codes.ts': `// import { x } from '../engine/clock.ts';\nimport './names.ts';`,
			'protocol/names.ts': '',
			'backend/store.ts': `import type { Code } from '../protocol/codes.ts';`,
			'backend/sqlite/open.ts': `import type { TaskStore } from '../store.ts';`,
			'engine/clock.ts': `import type { TaskStore } from '../backend/store.ts';`,
			'server/tool.ts': `import { clock } from '../engine/clock.ts';`,
			'gateway/http.ts': `import { tool } from '../server/tool.ts';`,
			'cli/serve.ts': `import type { X } from '../backend/sqlite/open.ts';\nawait import('../backend/sqlite/open.ts');`,
			'testing/fake-clock.ts': `import type { Clock } from '../engine/clock.ts';`,
		},
	},
	{
		forbids: 'a file outside the known rooms',
		find: (tree) =>
			Object.keys(tree)
				.filter((path) => !ROOMS[generic(roomOf(path))])
				.map((path) => `${path} is in no room of ROOMS; give the room its arrows there`),
		wrong: [{ 'utils/helpers.ts': '' }, { 'version.ts': '' }],
		fine: { 'index.ts': '', 'engine/parts/a.ts': '', 'backend/store.ts': '', 'backend/redis/store.ts': '' },
	},
	{
		forbids: 'reaching a source by another way than a relative path to it',
		find: (tree) => [
			...imports(tree).flatMap(({ from, specifier }) => {
				if (/^holdfast(\/|$)/.test(specifier)) return [`${from} imports ${specifier}: the package itself`];
				if (!specifier.startsWith('.')) return [];
				const to = resolve(from, specifier);
				const outside = to.startsWith('..') && to !== '../package.json';
				return outside ? [`${from} imports ${specifier}, outside src`] : [];
			}),
			...matches(tree, /\bimport\s*\((?!\s*['"])/g, 'imports a computed name, which no rule can check'),
		],
		wrong: [
			{ 'server/tool.ts': `import { x } from 'holdfast/client';` },
			{ 'server/tool.ts': `import { x } from '../../test/helper.ts';` },
			{ 'server/tool.ts': 'const driver = await import(name);' },
		],
		fine: {
			'cli/main.ts': `import manifest from '../../package.json' with { type: 'json' };\nawait import('pg');`,
		},
	},
	{
		forbids: 'files that import each other in a circle',
		find: (tree) => cycles(tree).map((cycle) => cycle.join(' → ')),
		wrong: [
			{ 'engine/a.ts': `import { b } from './b.ts';`, 'engine/b.ts': `import { a } from './a.ts';` },
			{
				'engine/a.ts': `export * from './b.ts';`,
				'engine/b.ts': `const c = await import('./c.ts');`,
				'engine/c.ts': `import './a.ts';`,
			},
		],
		fine: { 'engine/a.ts': `import { b } from './b.ts';`, 'engine/b.ts': `import type { A } from './a.ts';` },
	},
	{
		forbids: 'Node built-ins in the rooms that run anywhere',
		find: (tree) =>
			imports(tree)
				.filter(({ from, specifier }) => WITHOUT_NODE.includes(roomOf(from)) && isBuiltin(specifier))
				.map(({ from, specifier }) => `${from} imports ${specifier}`),
		wrong: [
			{ 'protocol/ids.ts': `import { randomUUID } from 'node:crypto';` },
			{ 'errors.ts': `import 'util';` },
		],
		fine: { 'protocol/schemas.ts': `import * as z from 'zod';`, 'engine/ids.ts': `import 'node:crypto';` },
	},
	{
		forbids: 'the SDK anywhere but in its one importer',
		find: (tree) =>
			imports(tree).flatMap(({ from, specifier }) => {
				const sdk = /^@modelcontextprotocol\/[^/]+/.exec(specifier)?.[0];
				if (!sdk) return [];
				const importer = SDK_IMPORTERS[sdk];
				if (importer && importer !== from) return [`${from} imports ${sdk}; only ${importer} may`];
				return WITHOUT_SDK.includes(generic(roomOf(from))) ? [`${from} imports ${sdk}`] : [];
			}),
		wrong: [
			{ 'server/tool.ts': `import type { McpServer } from '@modelcontextprotocol/server';` },
			{ 'gateway/http.ts': `import { x } from '@modelcontextprotocol/node/streams';` },
			{ 'server/sdk.ts': `import { Client } from '@modelcontextprotocol/client';` },
			{ 'engine/runner.ts': `import { x } from '@modelcontextprotocol/core';` },
			{ 'backend/sqlite/store.ts': `import { x } from '@modelcontextprotocol/ext-tasks';` },
		],
		fine: {
			'server/sdk.ts': `import { McpServer } from '@modelcontextprotocol/server';`,
			'client/sdk.ts': `import { Client } from '@modelcontextprotocol/client';`,
			'protocol/schemas.ts': `import { TaskSchema } from '@modelcontextprotocol/ext-tasks';`,
		},
	},
	{
		forbids: 'reading the time or setting a timer in the engine outside clock.ts',
		find: (tree) => {
			const engine = only(tree, (path) => path.startsWith('engine/') && path !== 'engine/clock.ts');
			const reads = /\bDate\.now\b|\bnew\s+Date\b\s*(?:\(\s*\)|(?!\s*\())|\bperformance\.now\b|\bhrtime\b/g;
			const timers = /(?<!(?<!\bglobalThis)\.|[\w$#])set(?:Timeout|Interval)\b|\bAbortSignal\.timeout\b/g;
			return [
				...matches(engine, reads, 'reads the time; ask the clock'),
				...matches(engine, timers, 'sets a timer; ask the clock'),
				...imports(engine)
					.filter(({ specifier }) => /^(node:)?timers(\/|$)/.test(specifier))
					.map(({ from }) => `${from} imports timers; ask the clock`),
			];
		},
		wrong: [
			{ 'engine/sweep.ts': 'const now = Date.now();' },
			{ 'engine/sweep.ts': 'const now = new Date().toISOString();' },
			{ 'engine/sweep.ts': 'const text = `${performance.now()} ms`;' },
			{ 'engine/sweep.ts': 'setTimeout(tick, 5);' },
			{ 'engine/sweep.ts': 'globalThis.setInterval(tick, 5);' },
			{ 'engine/sweep.ts': 'AbortSignal.timeout(5);' },
			{ 'engine/sweep.ts': `import { setTimeout as wait } from 'node:timers/promises';` },
		],
		fine: {
			'engine/clock.ts': 'const now = Date.now(); setTimeout(tick, 5);',
			'engine/sweep.ts':
				'// Date.now() would lie\nconst at = new Date(clock.now()); clock.setTimeout(tick, 5);',
			'server/http.ts': 'const now = Date.now();',
		},
	},
	{
		forbids: `a file of more than ${MAX_LINES} lines`,
		find: (tree) =>
			Object.entries(tree)
				.map(([path, text]) => ({ path, lines: text.replace(/\n$/, '').split('\n').length }))
				.filter(({ lines }) => lines > MAX_LINES)
				.map(({ path, lines }) => `${path} has ${lines} lines`),
		wrong: [{ 'engine/engine.ts': '\n'.repeat(MAX_LINES + 1) }],
		fine: { 'engine/engine.ts': '\n'.repeat(MAX_LINES) },
	},
	{
		forbids: 'names that are not kebab-case',
		find: (tree) =>
			Object.keys(tree)
				.filter((path) => !/^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*\.ts$/.test(path))
				.map((path) => `${path} is not kebab-case`),
		wrong: [
			{ 'engine/taskRunner.ts': '' },
			{ 'engine/Runner.ts': '' },
			{ 'engine/Parts/a.ts': '' },
			{ 'engine/a_b.ts': '' },
		],
		fine: { 'engine/task-runner.ts': '', 'protocol/legacy-2025.ts': '' },
	},
	{
		forbids: 'ways around the type checker',
		find: (tree) => [
			...matches(tree, /\bas\s+any\b|:\s*any\b|<\s*any\b|,\s*any\s*[,>\]]/g, 'uses any'),
			...matches(tree, /@ts-(?:ignore|expect-error|nocheck)/g, 'silences the type checker', (text) => text),
		],
		wrong: [
			{ 'engine/a.ts': 'const a = b as any;' },
			{ 'engine/a.ts': 'function f(a: any) {}' },
			{ 'engine/a.ts': 'const a = new Map<string, any>();' },
			{ 'engine/a.ts': 'const a: Array<any> = [];' },
			{ 'engine/a.ts': '// @ts-expect-error the types are wrong\nf();' },
			{ 'engine/a.ts': '/* @ts-ignore */ f();' },
		],
		fine: { 'engine/a.ts': `const a: unknown = 'as any'; // as any other\nconst s = AbortSignal.any([]);` },
	},
	{
		forbids: 'default exports',
		find: (tree) => matches(tree, /\bexport\s+default\b|\bas\s+default\b/g, 'exports a default'),
		wrong: [{ 'engine/a.ts': 'export default class A {}' }, { 'engine/a.ts': 'export { a as default };' }],
		fine: { 'engine/a.ts': `import pino from 'pino';\nexport const a = pino({ default: 1 });` },
	},
	{
		forbids: 'a duration whose name hides its unit',
		find: (tree) =>
			matches(
				only(tree, (path) => !LEGACY_PROTOCOL.test(path) && !(path in FOREIGN_NAMES)),
				BARE_DURATION,
				'names a number without its unit; say …Ms',
			),
		wrong: [
			{ 'engine/a.ts': 'interface A { timeout: number }' },
			{ 'engine/a.ts': 'interface A {\n\treadonly ttl?: number | null;\n}' },
			{ 'engine/a.ts': 'type A = { interval: undefined | number };' },
			{ 'engine/a.ts': 'const A = z.object({ delay: z.number() });' },
		],
		fine: {
			'engine/a.ts':
				'interface A { timeoutMs: number; ttlMs: number | null; timeout: Timer; retries: number }',
			'protocol/legacy.ts': 'interface A { ttl: number | null }',
		},
	},
	{
		forbids: 'index.ts and cross-room re-exports outside the public entries',
		find: (tree) => [
			...Object.keys(tree)
				.filter((path) => /(^|\/)index\.ts$/.test(path) && !PUBLIC_ENTRIES.includes(path))
				.map((path) => `${path} is no public entry; name it after what it holds, or list it in exports`),
			...localImports(tree)
				.filter(({ from, to, reexport }) => reexport && roomOf(from) !== roomOf(to))
				.filter(({ from }) => !PUBLIC_ENTRIES.includes(from))
				.map(({ from, to }) => `${from} passes on ${to}, which belongs to another room`),
		],
		wrong: [
			{ 'engine/index.ts': '' },
			{ 'engine/engine.ts': `export * from '../protocol/task.ts';` },
			{ 'engine/engine.ts': `export type { Task } from '../protocol/task.ts';` },
		],
		fine: {
			'index.ts': `export * from './protocol/task.ts';`,
			'server/index.ts': `export type { Task } from '../protocol/task.ts';\nexport { a } from './a.ts';`,
			'server/a.ts': `export { b } from './b.ts';`,
			'server/b.ts': '',
			'protocol/task.ts': '',
		},
	},
];

describe('src', () => {
	const src = readTree(join(import.meta.dirname, '../src'));

	it('is there to be checked', () => {
		expect(localImports(src).length).toBeGreaterThan(0);
	});

	for (const { forbids, find } of RULES) {
		it(`is free of ${forbids}`, () => {
			expect(find(src)).toEqual([]);
		});
	}

	it('still needs every exception that is made for it', () => {
		const stale = Object.keys(FOREIGN_NAMES).filter(
			(path) => matches({ [path]: src[path] ?? '' }, BARE_DURATION, 'excepted').length === 0,
		);
		expect(stale).toEqual([]);
	});
});

for (const { forbids, find, wrong, fine } of RULES) {
	describe(`the rule against ${forbids}`, () => {
		for (const tree of wrong) {
			it(`sees ${show(tree)}`, () => {
				expect(find(tree)).not.toEqual([]);
			});
		}

		it('lets through what is allowed', () => {
			expect(find(fine)).toEqual([]);
		});
	});
}

function readTree(folder: string): Tree {
	const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
		path.endsWith('.ts'),
	);
	return Object.fromEntries(
		paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(folder, path), 'utf8')]),
	);
}

/** The part of a tree whose paths are wanted. */
function only(tree: Tree, wanted: (path: string) => boolean): Tree {
	return Object.fromEntries(Object.entries(tree).filter(([path]) => wanted(path)));
}

/** The room of a file: its first folder, its backend's folder, or the file itself directly below src. */
function roomOf(path: string): string {
	const [first = '', second = '', ...deeper] = path.split('/');
	return first === 'backend' && deeper.length > 0 ? `${first}/${second}` : first;
}

/** The key of ROOMS that a room goes by. */
function generic(room: string): string {
	return room.replace(/^backend\/.*/, 'backend/*');
}

/** Every import and re-export. Types say `import type`, which the compiler settings insist on. */
function imports(tree: Tree): Import[] {
	return Object.entries(tree).flatMap(([from, text]) => {
		const source = withoutComments(text);
		const found: Import[] = [];
		for (const [, word, type, , specifier = ''] of source.matchAll(
			/^[ \t]*(import|export)\b\s*(type\b)?[\w$*{},\s]*?\bfrom\s*(['"])([^'"\n]+)\3/gm,
		)) {
			found.push({ from, specifier, kind: type ? 'type' : 'static', reexport: word === 'export' });
		}
		for (const [, , specifier = ''] of source.matchAll(/^[ \t]*import\s*(['"])([^'"\n]+)\1/gm)) {
			found.push({ from, specifier, kind: 'static', reexport: false });
		}
		for (const [, type, , specifier = ''] of source.matchAll(
			/(\btypeof\s+)?\bimport\s*\(\s*(['"])([^'"\n]+)\2/g,
		)) {
			found.push({ from, specifier, kind: type ? 'type' : 'dynamic', reexport: false });
		}
		return found;
	});
}

/** The imports that lead to another file of src, with the path of that file. */
function localImports(tree: Tree): (Import & { to: string })[] {
	return imports(tree)
		.filter(({ specifier }) => specifier.startsWith('.'))
		.map((found) => ({ ...found, to: resolve(found.from, found.specifier) }))
		.filter(({ to }) => !to.startsWith('..'));
}

function resolve(from: string, specifier: string): string {
	return posix.join(posix.dirname(from), specifier);
}

/** Circles of imports that exist when the program runs; a type import leaves nothing behind. */
function cycles(tree: Tree): string[][] {
	const next = Map.groupBy(
		localImports(tree).filter(({ kind }) => kind !== 'type'),
		({ from }) => from,
	);
	const done = new Set<string>();
	const found: string[][] = [];
	const visit = (path: string, trail: string[]): void => {
		if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path]);
		if (done.has(path) || trail.includes(path)) return;
		for (const { to } of next.get(path) ?? []) visit(to, [...trail, path]);
		done.add(path);
	};
	for (const path of Object.keys(tree)) visit(path, []);
	return found;
}

/** Where a pattern occurs, as `path:line message`. Looks at the code alone unless told to read all of the text. */
function matches(
	tree: Tree,
	pattern: RegExp,
	message: string,
	read: (text: string) => string = code,
): string[] {
	return Object.entries(tree).flatMap(([path, text]) => {
		const source = read(text);
		return Array.from(source.matchAll(pattern), (match) => {
			const line = source.slice(0, match.index).split('\n').length;
			return `${path}:${line} ${message}: ${match[0].trim()}`;
		});
	});
}

/** The source with its comments blanked; lines and columns stay. */
function withoutComments(text: string): string {
	return text.replace(TOKEN, (token) => (/^\/[/*]/.test(token) ? blank(token) : token));
}

/** The source with comments and the insides of plain strings blanked. Templates stay: they hold expressions. */
function code(text: string): string {
	return withoutComments(text).replace(TOKEN, (token) =>
		/^['"]/.test(token) ? token[0] + blank(token.slice(1, -1)) + token.at(-1) : token,
	);
}

function blank(text: string): string {
	return text.replace(/[^\n]/g, ' ');
}

function show(tree: Tree): string {
	return Object.entries(tree)
		.map(([path, text]) => `${path}${text ? `: ${text.replace(/\s+/g, ' ').trim().slice(0, 70)}` : ''}`)
		.join(' + ');
}
