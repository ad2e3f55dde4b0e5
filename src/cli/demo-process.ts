import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { isJsonObject } from '../protocol/json.ts';
import { DEMO_JOURNAL_ENV } from './demo-steps.ts';
import { Failure } from './failure.ts';

const START_LIMIT_MS = 20_000;

/** Where a served demo keeps its things. */
export interface DemoPlace {
	readonly db: string;
	readonly journal: string;
	/** 0 takes a free one. */
	readonly port: number;
}

/** `holdfast serve` in a process of its own. */
export class DemoProcess {
	readonly #child: ChildProcess;
	readonly url: string;

	private constructor(child: ChildProcess, url: string) {
		this.#child = child;
		this.url = url;
	}

	/** Starts a process; resolves when it listens. `onSpawn` gets it before that, so that it can be killed at any time. */
	static async start(place: DemoPlace, onSpawn: (child: ChildProcess) => void): Promise<DemoProcess> {
		const child = spawn(
			process.execPath,
			[
				...[beside('holdfast'), 'serve', beside('demo-server'), '--json'],
				...['--db', place.db, '--port', String(place.port)],
			],
			{ stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, [DEMO_JOURNAL_ENV]: place.journal } },
		);
		onSpawn(child);
		return new DemoProcess(child, await urlOf(child));
	}

	get pid(): number {
		return this.#child.pid ?? 0;
	}

	/** Kills it without any warning. */
	async kill(): Promise<void> {
		if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
		const exited = once(this.#child, 'exit');
		this.#child.kill('SIGKILL');
		await exited;
	}
}

/** The file of a neighbour: source beside source, compiled beside compiled. */
function beside(name: string): string {
	return import.meta.filename.replace(/demo-process(\.[jt]s)$/, `${name}$1`);
}

/** Reads the log until it says where the server listens. */
async function urlOf(child: ChildProcess): Promise<string> {
	const { stderr } = child;
	if (!stderr) throw new Failure('The server was started without a log');
	const said: string[] = [];
	return new Promise((resolve, reject) => {
		const fail = (why: string): void =>
			reject(
				new Failure(`The server did not start: ${why}${said.length === 0 ? '' : `\n${said.join('\n')}`}`),
			);
		const limit = setTimeout(() => fail(`it was silent for ${START_LIMIT_MS / 1_000} s`), START_LIMIT_MS);
		child.once('error', (error) => fail(error.message));
		child.once('close', (code) => fail(`it ended with exit code ${code}`));
		// Reading goes on afterwards: a full pipe would stop the server.
		createInterface({ input: stderr }).on('line', (line) => {
			const entry = parse(line);
			if (typeof entry['url'] === 'string') {
				clearTimeout(limit);
				resolve(entry['url']);
			} else said.push(line);
		});
		child.once('close', () => clearTimeout(limit));
	});
}

function parse(line: string): Record<string, unknown> {
	try {
		const entry: unknown = JSON.parse(line);
		return isJsonObject(entry) ? entry : {};
	} catch {
		return {};
	}
}
