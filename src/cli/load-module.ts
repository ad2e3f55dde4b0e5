import { existsSync, statSync } from 'node:fs';
import { basename, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../errors.ts';
import type { TaskServerOptions } from '../server/task-server.ts';
import { Failure, placeOf } from './failure.ts';

const EXTENSIONS = ['.ts', '.mts', '.js', '.mjs'];

const WANTED = 'export const server = (tasks) => { …; return mcpServer; }';

/** What the module of a server author exports. */
export type ServerModule = Pick<TaskServerOptions, 'server' | 'open' | 'close'>;

/**
 * Loads the module of a server author: its server function, and what opens and closes what that needs.
 *
 * @throws Failure that says what the module lacks.
 */
export async function loadServerModule(path: string): Promise<ServerModule> {
	const file = findFile(path);
	const exports = await load(file);
	const server = exports['server'] ?? exports['default'];
	if (typeof server !== 'function')
		throw new Failure(`${shown(file)} ${whatIsThere(exports, server)}. It must have: ${WANTED}`);
	const hooks: Record<string, unknown> = {};
	for (const name of ['open', 'close'] as const) {
		if (exports[name] === undefined) continue;
		if (typeof exports[name] !== 'function')
			throw new Failure(`${shown(file)} exports ${name}, which must be a function without arguments.`);
		hooks[name] = exports[name];
	}
	return { server, ...hooks } as ServerModule;
}

function findFile(path: string): string {
	const file = resolve(path);
	const isFolder = existsSync(file) && statSync(file).isDirectory();
	if (existsSync(file) && !isFolder) return file;
	const near = EXTENSIONS.flatMap((extension) => [
		...(isFolder ? ['server', 'index'].map((name) => resolve(file, name + extension)) : [file + extension]),
		file.replace(/\.[cm]?[jt]s$/, '') + extension,
	]).find((candidate) => candidate !== file && existsSync(candidate));
	const hint = near === undefined ? '' : ` Did you mean ${shown(near)}?`;
	throw new Failure(
		isFolder
			? `${shown(file)} is a folder; name the module file itself.${hint}`
			: `There is no file ${file}.${hint || ' Name the module that exports your server, such as ./server.ts.'}`,
	);
}

async function load(file: string): Promise<Record<string, unknown>> {
	const { host, pathname } = pathToFileURL(file);
	try {
		return (await import('file://' + host + pathname)) as Record<string, unknown>;
	} catch (error) {
		const place = placeOf(error);
		const where = place === undefined ? '' : ` (${place})`;
		throw new Failure(`${shown(file)} could not be loaded: ${messageOf(error)}${where}${adviceFor(error)}`, {
			cause: error,
		});
	}
}

function adviceFor(error: unknown): string {
	const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
	switch (code) {
		case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
			return '. Node runs TypeScript by leaving the types out; enums, namespaces and the like must be compiled first.';
		case 'ERR_UNKNOWN_FILE_EXTENSION':
			return `. This Node (${process.version}) cannot load such a file; give compiled JavaScript.`;
		default:
			return '';
	}
}

function whatIsThere(exports: Record<string, unknown>, found: unknown): string {
	if (found !== undefined) {
		const isServer = typeof found === 'object' && found !== null && 'registerTool' in found;
		return isServer
			? 'exports a server; export a function that builds one, since each request and each run gets its own'
			: `exports a ${'server' in exports ? '`server`' : 'default'} that is not a function`;
	}
	const names = Object.keys(exports);
	return `has no export \`server\`${names.length === 0 ? '' : ` (it has ${names.slice(0, 10).join(', ')})`}`;
}

function shown(file: string): string {
	const path = relative(process.cwd(), file);
	return path === '' ? basename(file) : path.startsWith('..') ? file : path;
}
