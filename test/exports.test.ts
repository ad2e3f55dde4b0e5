/** What the published package is: its entries, its dependencies and its files. Reads dist, which `npm test` builds. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');
const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

type Manifest = {
	name: string;
	bin: Record<string, string>;
	exports: Record<string, string | { types: string; default: string }>;
	dependencies: Record<string, string>;
	peerDependencies?: Record<string, string>;
	peerDependenciesMeta?: Record<string, { optional?: boolean }>;
};

/** Adding an entry is a promise to users, so it is written here a second time, on purpose. */
const EXPORTS = {
	'.': entry('index'),
	'./server': entry('server/index'),
	'./client': entry('client/index'),
	'./gateway': entry('gateway/index'),
	'./sqlite': entry('backend/sqlite/index'),
	'./postgres': entry('backend/postgres/index'),
	'./redis': entry('backend/redis/index'),
	'./memory': entry('backend/memory/index'),
	'./testing': entry('testing/index'),
	'./package.json': './package.json',
};

/** Dependencies that no source imports yet. An entry that is no longer true fails the test below. */
const NOT_YET_IMPORTED: readonly string[] = [];

const PACKED_BESIDE_DIST = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'];

describe('the exports map', () => {
	it('is exactly what was promised', () => {
		expect(manifest.exports).toEqual(EXPORTS);
		expect(manifest.bin).toEqual({ holdfast: 'dist/cli/holdfast.js' });
	});

	it('names only files that the build makes', () => {
		const targets = Object.values(manifest.exports)
			.flatMap((target) => (typeof target === 'string' ? [target] : [target.types, target.default]))
			.concat(Object.values(manifest.bin));
		expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([]);
	});

	it('makes the command a program that the system can start', () => {
		for (const target of Object.values(manifest.bin)) {
			expect(readFileSync(join(root, target), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
		}
	});
});

describe('the dependencies', () => {
	const imported = importedPackages();
	const required = Object.keys(manifest.dependencies);

	it('cover every package that the sources import', () => {
		const optional = Object.keys(manifest.peerDependencies ?? {}).filter(
			(name) => manifest.peerDependenciesMeta?.[name]?.optional,
		);
		const missing = [...imported.keys()].filter(
			(name) => !required.includes(name) && !optional.includes(name),
		);
		expect(missing.map((name) => `${name}, imported by ${imported.get(name)}`)).toEqual([]);
	});

	it('are all imported somewhere', () => {
		const idle = required.filter((name) => !imported.has(name) && !NOT_YET_IMPORTED.includes(name));
		expect(idle).toEqual([]);
	});

	it('need every exception that is made for them', () => {
		const stale = NOT_YET_IMPORTED.filter((name) => imported.has(name) || !required.includes(name));
		expect(stale).toEqual([]);
	});
});

describe('the tarball', () => {
	it('holds dist, the manifest, the licence, the readme and the changelog, and nothing else', () => {
		const packed = packedFiles();
		expect(packed.filter((path) => !path.startsWith('dist/')).sort()).toEqual(PACKED_BESIDE_DIST);
		const inDist = packed.filter((path) => path.startsWith('dist/'));
		expect(inDist.filter((path) => !/\.(js|js\.map|d\.ts)$/.test(path))).toEqual([]);
		expect(inDist.length).toBeGreaterThan(0);
	});
});

function entry(path: string): { types: string; default: string } {
	return { types: `./dist/${path}.d.ts`, default: `./dist/${path}.js` };
}

/** Packages that the built files import, types included, each with one file that does. */
function importedPackages(): Map<string, string> {
	const found = new Map<string, string>();
	const files = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' });
	for (const file of files.filter((path) => /\.(js|d\.ts)$/.test(path))) {
		const lines = readFileSync(join(root, 'dist', file), 'utf8').split('\n');
		const source = lines.filter((line) => !/^\s*(\*|\/\/|\/\*)/.test(line)).join('\n');
		for (const [, specifier = ''] of source.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"\n]+)['"]/g)) {
			const name = /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier;
			if (!specifier.startsWith('.') && !isBuiltin(specifier)) found.set(name, file);
		}
	}
	return found;
}

function packedFiles(): string[] {
	const npm = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
		cwd: root,
		encoding: 'utf8',
		shell: process.platform === 'win32',
	});
	expect(npm.stderr + npm.stdout).toContain('"files"');
	const answer: unknown = JSON.parse(npm.stdout);
	// One npm answers with a list, another with an object by package name.
	const [pack] = Object.values(answer as Record<string, { files: { path: string }[] }>);
	return pack?.files.map(({ path }) => path) ?? [];
}
