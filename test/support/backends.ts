/**
 * The one switch of the tests: `HOLDFAST_TEST_BACKEND` says which backend the servers under test keep their tasks in.
 * Default: `memory`. A backend that is another process has one entry in CHOICES.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend, TimeSource } from '../../src/backend/backend.ts';
import { memory } from '../../src/backend/memory/index.ts';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { awaited } from '../../src/testing/index.ts';
import { postgresService } from './postgres.ts';
import { redisService } from './redis.ts';

/** Makes backends on stores of their own. */
interface Choice {
	/** A store that nobody else has; each call of what it answers is a backend on it, to be opened. */
	newStore(time: TimeSource | undefined): () => Promise<Backend>;
	/** Removes all stores. */
	close(): Promise<void>;
}

const CHOICES: Readonly<Record<string, () => Promise<Choice>>> = {
	memory: async () => ({
		newStore: (time) => {
			const backend = memory(time && { time });
			return async () => backend;
		},
		close: async () => {},
	}),
	sqlite: async () => {
		const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
		let files = 0;
		return {
			newStore: (time) => {
				const file = join(folder, `${++files}.db`);
				return async () => sqlite({ file, ...(time && { time }) });
			},
			close: async () => rmSync(folder, { recursive: true, force: true }),
		};
	},
	postgres: async () => {
		const service = await postgresService();
		if (typeof service === 'string') throw new Error(service);
		return {
			newStore: (time) => {
				const schema = service.newSchema();
				return () => service.newBackend({ schema, connections: 4, ...(time && { time }) });
			},
			close: () => service.close(),
		};
	},
	redis: async () => {
		const service = await redisService();
		if (typeof service === 'string') throw new Error(service);
		return {
			newStore: (time) => {
				const prefix = service.newPrefix();
				return async () => service.newBackend({ prefix, ...(time && { time }) });
			},
			close: () => service.close(),
		};
	},
};

/** Which backend was chosen. */
export const BACKEND: string = process.env['HOLDFAST_TEST_BACKEND'] || 'memory';

const choose = CHOICES[BACKEND];
if (!choose)
	throw new Error(
		`HOLDFAST_TEST_BACKEND is ${BACKEND}; it must be one of ${Object.keys(CHOICES).join(', ')}`,
	);
const choice = await choose();
const used = new Set<KeptBackend>();

/** Closes and removes all that was made. Test files need not call it. */
export async function closeBackends(): Promise<void> {
	await Promise.all([...used].map((backend) => backend.release()));
	await choice.close();
}
if (process.env['VITEST']) (await import('vitest')).afterAll(closeBackends);

/** An empty backend of the chosen kind, not open yet. */
export function newBackend(time?: TimeSource): Backend {
	const make = choice.newStore(time);
	const backend = new KeptBackend(make);
	used.add(backend);
	return backend;
}

/**
 * A backend as the tests use one: it can be read before it was opened and after it was closed, be closed by one
 * server while another has it open, be opened again, and have its methods replaced. The fake clock waits for it.
 */
class KeptBackend implements Backend {
	readonly name = BACKEND;
	readonly store: Backend['store'];
	readonly dispatcher: Backend['dispatcher'];
	readonly signals: Backend['signals'];
	readonly #make: () => Promise<Backend>;
	#opening: Promise<Backend> | undefined;
	#opened: Backend | undefined;
	#users = 0;

	constructor(make: () => Promise<Backend>) {
		this.#make = make;
		this.store = this.#following((backend) => backend.store);
		this.dispatcher = this.#following((backend) => backend.dispatcher);
		this.signals = {
			publish: (change) => this.#opened?.signals.publish(change),
			subscribe: (listener) => {
				if (!this.#opened) throw new Error('the backend is not open');
				return this.#opened.signals.subscribe(listener);
			},
		};
	}

	readonly open = async (): Promise<void> => {
		this.#users += 1;
		await this.#needed();
	};

	readonly close = async (): Promise<void> => {
		this.#users -= 1;
		if (this.#users <= 0) await this.release();
	};

	async release(): Promise<void> {
		const opening = this.#opening;
		this.#opening = this.#opened = undefined;
		const backend = await opening?.catch(() => undefined);
		await backend?.close();
	}

	#needed(): Promise<Backend> {
		this.#opening ??= awaited(
			(async () => {
				const backend = await this.#make();
				await backend.open();
				this.#opened = backend;
				return backend;
			})(),
		);
		return this.#opening;
	}

	/** A part of whichever backend is open. A property that a test sets hides the backend's own. */
	#following<Part extends object>(partOf: (backend: Backend) => Part): Part {
		return new Proxy({} as Part, {
			get: (own, name) => {
				const replaced: unknown = Reflect.get(own, name);
				if (replaced !== undefined) return replaced;
				return (...args: unknown[]) => {
					const call = (backend: Backend): Promise<unknown> => {
						const part = partOf(backend);
						const method = Reflect.get(part, name) as (...args: unknown[]) => Promise<unknown>;
						return Reflect.apply(method, part, args);
					};
					return awaited(this.#opened ? call(this.#opened) : this.#needed().then(call));
				};
			},
		});
	}
}
