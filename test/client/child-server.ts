/** A server of somebody else, started as a process of its own that listens on a free port. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A running process. */
export interface ChildServer {
	readonly url: URL;
	kill(): Promise<void>;
}

/**
 * Starts a script with Node.
 *
 * @param portVariable - the environment variable in which the script looks for its port.
 * @param ready - words that it prints when it listens.
 */
export async function startChildServer(
	script: string,
	args: readonly string[],
	portVariable: string,
	ready: string,
): Promise<ChildServer> {
	const port = await freePort();
	const child = spawn(process.execPath, [script, ...args], {
		env: { ...process.env, [portVariable]: `${port}` },
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
	let said = '';
	const listening = new Promise<void>((resolve) => {
		for (const output of [child.stdout, child.stderr])
			output.on('data', (chunk) => {
				said += String(chunk);
				if (said.includes(ready)) resolve();
			});
	});
	const failed = ended.then((code) => {
		throw new Error(`${script} ended with ${code}: ${said}`);
	});
	failed.catch(() => {});
	await Promise.race([listening, failed]);
	return {
		url: new URL(`http://127.0.0.1:${port}/mcp`),
		kill: async () => {
			child.kill('SIGKILL');
			await ended;
		},
	};
}

/** A port that nobody listens on now. */
export async function freePort(): Promise<number> {
	const server = createServer();
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	const { port } = server.address() as AddressInfo;
	await new Promise<void>((resolve) => server.close(() => resolve()));
	return port;
}
