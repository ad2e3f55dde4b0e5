#!/usr/bin/env node
const NEEDED = [22, 19] as const;
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

/** How long what a tool left open may keep the process alive once the command is done. */
const LINGER_MS = 250;

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
	process.stderr.write(
		`holdfast needs Node.js ${NEEDED.join('.')} or later; this is ${process.versions.node}. ` +
			'Install a current version from https://nodejs.org, or run it with: npx -p node@24 -p holdfast holdfast\n',
	);
	process.exitCode = 1;
} else {
	// Halves the time from start to the first answer. Not imported above: an old Node has no such function.
	const { enableCompileCache } = await import('node:module');
	enableCompileCache();
	const { main } = await import('./main.ts');
	process.exitCode = await main(process.argv.slice(2));
	setTimeout(() => process.exit(), LINGER_MS).unref();
}
