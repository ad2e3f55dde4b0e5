// Makes a fresh clone ready: installs what is missing or out of date, then builds what changed. Runs before
// `npm start` and `npm test`, so it may use nothing but Node itself, 18 or newer. Silent when all is in place.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, isBuilt, root } from './build.mjs';

if (!isInstalled()) {
	say('installing dependencies with npm ci');
	// Looked at again afterwards: npm has ended with success without having installed anything.
	if (!install() || !isInstalled()) {
		stop('npm ci failed, so nothing can be built or run. Its output is above.');
	}
}
const node = localNode();
if (!node && !isRecent(process.versions.node)) {
	stop(
		`Node 22.19 or newer is needed; this is ${process.version}, and the package "node" that brings one was ` +
			'not installed. Are install scripts switched off (ignore-scripts)?',
	);
}
if (!isBuilt()) {
	say('building dist');
	if (!build()) stop('the build failed. The compiler says why above.');
}

/** npm records what it installed; that record must hold every package the lockfile asks for, at its version. */
function isInstalled() {
	const wanted = packagesIn('package-lock.json');
	const present = packagesIn('node_modules/.package-lock.json');
	if (!wanted || !present) return false;
	return Object.entries(wanted).every(([path, entry]) => {
		if (path === '' || !path.startsWith('node_modules/')) return true;
		const installed = present[path];
		if (!installed) return entry.optional === true || entry.peer === true;
		return installed.version === entry.version && installed.integrity === entry.integrity;
	});
}

function packagesIn(file) {
	try {
		return JSON.parse(readFileSync(join(root, file), 'utf8')).packages;
	} catch {
		return undefined;
	}
}

function install() {
	const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
	const options = { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] };
	const npm = process.env.npm_execpath;
	// npm's own Node, not ours: ours may be the one inside node_modules that npm ci is about to remove.
	const run =
		npm && /\.c?js$/.test(npm)
			? spawnSync(process.env.npm_node_execpath ?? process.execPath, [npm, ...args], options)
			: spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
	return run.status === 0;
}

function localNode() {
	return ['node', 'node.exe'].map((name) => join(root, 'node_modules/node/bin', name)).find(existsSync);
}

function isRecent(version) {
	const [major = 0, minor = 0] = version.split('.').map(Number);
	return major > 22 || (major === 22 && minor >= 19);
}

function say(what) {
	console.error(`holdfast: ${what}`);
}

function stop(why) {
	say(why);
	process.exit(1);
}
