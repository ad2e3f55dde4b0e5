// Packs the package as npm would publish it, unpacks it into an empty project that holds only its declared
// dependencies, and imports every public entry and runs the command there. Finds what a source tree hides: files
// left out of the tarball, an export without a target, an import of something only development installs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const project = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
const failures = [];

try {
	const installed = unpack();
	link(manifest.dependencies);
	const importing = (name) => node(['--input-type=module', '--eval', `await import('${name}')`]);
	const withPeers = [];
	for (const entry of Object.keys(manifest.exports)) {
		if (entry.endsWith('.json')) continue;
		const name = entry.replace('.', manifest.name);
		const run = importing(name);
		// A backend may need a driver that its users install; nothing else may.
		if (run.status !== 0 && lacksPeer(run)) withPeers.push(name);
		else report(`import '${name}'`, run);
	}
	link(manifest.peerDependencies ?? {});
	for (const name of withPeers) report(`import '${name}' beside its driver`, importing(name));
	for (const [name, target] of Object.entries(manifest.bin)) {
		report(`${name} --help`, node([join(installed, target), '--help']));
	}
} finally {
	rmSync(project, { recursive: true, force: true });
}
if (failures.length > 0) {
	console.error(`${failures.length} failed: ${failures.join(', ')}`);
	process.exitCode = 1;
}

function unpack() {
	const npm = spawnSync('npm', ['pack', '--pack-destination', project], {
		cwd: root,
		encoding: 'utf8',
		shell: process.platform === 'win32',
	});
	if (npm.status !== 0) throw new Error(`npm pack failed\n${npm.stdout}\n${npm.stderr}`);
	const tarball = readdirSync(project).find((name) => name.endsWith('.tgz'));
	const target = join(project, 'node_modules', manifest.name);
	mkdirSync(target, { recursive: true });
	const tar = spawnSync('tar', ['-xzf', join(project, tarball), '-C', target, '--strip-components=1']);
	if (tar.status !== 0) throw new Error(`cannot unpack ${tarball}`);
	return target;
}

function lacksPeer({ stderr }) {
	const missing = /Cannot find package '([^']+)'/.exec(stderr)?.[1];
	return manifest.peerDependenciesMeta?.[missing]?.optional === true;
}

function link(dependencies) {
	for (const name of Object.keys(dependencies)) {
		const source = join(root, 'node_modules', name);
		const target = join(project, 'node_modules', name);
		if (!existsSync(source)) continue;
		mkdirSync(dirname(target), { recursive: true });
		symlinkSync(source, target, 'junction');
	}
}

function node(args) {
	return spawnSync(process.execPath, args, {
		cwd: project,
		encoding: 'utf8',
		timeout: 30_000,
		stdio: 'pipe',
	});
}

function report(what, run) {
	if (run.status === 0) return console.log(`ok      ${what}`);
	failures.push(what);
	console.error(`FAILED  ${what}\n${run.stderr}`);
}
