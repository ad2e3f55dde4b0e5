/** A Redis of our own, in a folder of its own: to be killed and started again, or where there is no other. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';

const START_WITHIN_MS = 20_000;

export class OwnRedis {
	readonly url: string;
	readonly port: number;
	readonly #folder: string;
	readonly #settings: readonly string[];
	#child: ChildProcess | undefined;

	private constructor(folder: string, port: number, settings: Readonly<Record<string, string>>) {
		this.#folder = folder;
		this.port = port;
		this.url = `redis://127.0.0.1:${port}/0`;
		this.#settings = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
	}

	/**
	 * Makes and starts one, which waits for the disk with every write unless it is set up otherwise. Rejects, saying why,
	 * where there is no `redis-server` in the PATH.
	 */
	static async create(settings: Readonly<Record<string, string>> = {}): Promise<OwnRedis> {
		const folder = mkdtempSync(join(tmpdir(), 'holdfast-redis-'));
		const durable = { appendonly: 'yes', appendfsync: 'always', save: '' };
		const redis = new OwnRedis(folder, await freePort(), { ...durable, ...settings });
		try {
			await redis.start();
		} catch (error) {
			await redis.remove();
			throw error;
		}
		return redis;
	}

	/** Resolves when it has read what it kept and answers. */
	async start(): Promise<void> {
		const options = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#folder];
		const child = spawn('redis-server', [...options, ...this.#settings], { stdio: 'ignore' });
		this.#child = child;
		const failed = new Promise<never>((_, reject) => {
			child.once('error', reject);
			child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
		});
		failed.catch(() => {});
		const untilMs = performance.now() + START_WITHIN_MS;
		while (!(await Promise.race([answers(this.url), failed]))) {
			if (performance.now() > untilMs) throw new Error('redis-server did not start');
			await pause(20);
		}
	}

	/** Ends it as a crash would. */
	async kill(): Promise<void> {
		const child = this.#child;
		this.#child = undefined;
		if (!child || child.pid === undefined || child.exitCode !== null) return;
		const gone = once(child, 'exit');
		child.kill('SIGKILL');
		await gone;
	}

	async remove(): Promise<void> {
		await this.kill();
		rmSync(this.#folder, { recursive: true, force: true });
	}
}

/** Whether there is a Redis that is ready. */
export async function answers(url: string): Promise<boolean> {
	const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 2_000 });
	client.on('error', () => {});
	try {
		await client.connect();
		return (await client.ping()) === 'PONG';
	} catch {
		return false;
	} finally {
		client.disconnect();
	}
}

async function freePort(): Promise<number> {
	const server = createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const address = server.address();
	server.close();
	await once(server, 'close');
	if (address === null || typeof address === 'string') throw new Error('no port');
	return address.port;
}
