// Compiles src into dist. Emits into a folder beside dist and swaps the two at the end, so that a reader never
// meets a half-written dist and nothing survives from a source that was deleted.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const stampFile = join(dist, '.built-from');

/** True when dist was built from exactly the sources and settings that are here now. */
export function isBuilt() {
	return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === fingerprint();
}

/** Builds dist; returns whether it succeeded. The compiler's complaints go to the terminal. */
export function build() {
	const builtFrom = fingerprint();
	const fresh = join(root, `.dist-${process.pid}`);
	try {
		const tsc = join(root, 'node_modules/typescript/bin/tsc');
		const run = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', fresh], {
			cwd: root,
			stdio: ['ignore', 'inherit', 'inherit'],
		});
		if (run.status !== 0) return false;
		const command = join(fresh, 'cli/holdfast.js');
		if (existsSync(command)) chmodSync(command, 0o755);
		writeFileSync(join(fresh, '.built-from'), builtFrom);
		replaceDist(fresh);
		return true;
	} finally {
		rmSync(fresh, { recursive: true, force: true });
	}
}

function fingerprint() {
	const hash = createHash('sha256');
	const inputs = ['tsconfig.json', 'tsconfig.build.json', 'node_modules/typescript/package.json'];
	for (const path of [...inputs, ...filesUnder('src')]) {
		const full = join(root, path);
		if (existsSync(full)) hash.update(`${path}\0`).update(readFileSync(full)).update('\0');
	}
	return hash.digest('hex');
}

function filesUnder(folder) {
	return readdirSync(join(root, folder), { withFileTypes: true })
		.sort((a, b) => (a.name < b.name ? -1 : 1))
		.flatMap((entry) => {
			const path = `${folder}/${entry.name}`;
			return entry.isDirectory() ? filesUnder(path) : [path];
		});
}

function replaceDist(fresh) {
	const old = `${fresh}-old`;
	// Another build may swap at the same moment; then its dist is moved away in turn and ours takes the place.
	for (let attempt = 1; ; attempt++) {
		try {
			if (existsSync(dist)) renameSync(dist, old);
			renameSync(fresh, dist);
			return;
		} catch (error) {
			if (attempt === 5) throw error;
		} finally {
			rmSync(old, { recursive: true, force: true });
		}
	}
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
	process.exitCode = build() ? 0 : 1;
}
