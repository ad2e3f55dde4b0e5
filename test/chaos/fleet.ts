/** Request servers and workers on one store, clients that use them all, and everything that can go wrong between. */
import { setTimeout as pause } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import type { DetailedTask } from '../../src/protocol/task.ts';
import type { Wire } from '../field/wire.ts';
import { FleetLedger, type FleetTask } from './fleet-ledger.ts';
import { Member, type MemberFiles } from './member.ts';
import type { Random } from './random.ts';
import type { FleetStore } from './stores.ts';

export interface FleetOptions extends MemberFiles {
	readonly store: FleetStore;
	readonly random: Random;
	/** How many calls are made at least; they go on until every kind of blow has struck. */
	readonly tasks: number;
}

/** What is done to a fleet, in this order, again and again. */
const BLOWS = ['kill a worker', 'kill a server', 'pause a worker', 'restart', 'cut', 'kill both'] as const;
type Blow = (typeof BLOWS)[number];

const SERVERS = 3;
const WORKERS = 3;
const MOST_OPEN = 60;
/** Between two new calls: what two cores can bear, and so that every blow finds work under way. */
const CALL_EVERY_MS = 100;
const LOOK_MS = 700;
const CUT_MS = 5_000;
/** Longer than a lease (8 s) and its sweep. */
const PAUSED_MS = 10_000;
const END_WITHIN_MS = 90_000;

export class Fleet {
	readonly ledger: FleetLedger;
	readonly blows: Record<Blow, number> = {
		...{ 'kill a worker': 0, 'kill a server': 0, 'pause a worker': 0, restart: 0, cut: 0, 'kill both': 0 },
	};
	/** Tasks that were under way at each blow. */
	readonly openAtBlow: number[] = [];
	readonly #options: FleetOptions;
	readonly #servers: readonly Member[];
	readonly #workers: readonly Member[];
	readonly #running = new Set<Promise<void>>();
	/** Calls that were made. */
	begun = 0;
	#isOver = false;

	constructor(options: FleetOptions) {
		this.#options = options;
		const { store } = options;
		this.ledger = new FleetLedger(options.effectsFile);
		const members = (role: 'requests' | 'worker', count: number): Member[] =>
			Array.from({ length: count }, () => new Member(role, store.address, options));
		this.#servers = members('requests', SERVERS);
		this.#workers = members('worker', WORKERS);
	}

	async run(): Promise<void> {
		const ticking = setInterval(() => this.ledger.tick(), 500);
		try {
			await Promise.all([...this.#servers, ...this.#workers].map((member) => member.start()));
			await Promise.all([this.#traffic(), this.#trouble()]);
			const untilMs = performance.now() + END_WITHIN_MS;
			while (this.#running.size > 0 && performance.now() < untilMs) await pause(100);
		} finally {
			this.#isOver = true;
			clearInterval(ticking);
			await Promise.all([...this.#servers, ...this.#workers].map((member) => member.kill()));
			await Promise.all(this.#running);
		}
	}

	#goesOn(): boolean {
		return this.begun < this.#options.tasks || Math.min(...Object.values(this.blows)) === 0;
	}

	/** New calls, as long as there are not too many open ones. */
	async #traffic(): Promise<void> {
		while (this.#goesOn()) {
			if (this.#running.size < MOST_OPEN) this.#keep(this.#task(++this.begun));
			await pause(CALL_EVERY_MS);
		}
	}

	/** Every kind of blow, one after the other, until the last call was made. */
	async #trouble(): Promise<void> {
		for (let count = 0; this.#goesOn(); count++) {
			await pause(this.#options.random.between(500, 2_000));
			const blow = BLOWS[count % BLOWS.length] ?? 'restart';
			this.openAtBlow.push(this.ledger.open().length);
			await this.#strike(blow);
			this.blows[blow] += 1;
			await this.ledger.inspect(this.#options.store.direct);
		}
	}

	async #strike(blow: Blow): Promise<void> {
		const { random, store } = this.#options;
		const worker = this.#workers[random.between(0, WORKERS - 1)];
		const server = this.#servers[random.between(0, SERVERS - 1)];
		const replace = async (member?: Member): Promise<void> => {
			await member?.kill();
			await member?.start();
		};
		if (blow === 'restart') return store.restart();
		if (blow === 'kill a worker') return replace(worker);
		if (blow === 'kill a server') return replace(server);
		if (blow === 'kill both') return void (await Promise.all([replace(worker), replace(server)]));
		if (blow === 'cut') {
			store.cut();
			await pause(CUT_MS);
			return store.mend();
		}
		worker?.pause();
		await pause(PAUSED_MS);
		worker?.resume();
	}

	/** The life of one task, as its client sees it: begun, listened to on every server, answered, looked at. */
	async #task(number: number): Promise<void> {
		const { random } = this.#options;
		const stepMs = random.between(50, 400);
		const tool = random.pick(['build', 'build', 'release', 'order']);
		const steps = tool === 'build' ? random.between(3, 6) : 2;
		const args: JsonObject =
			tool === 'build' ? { steps, stepMs } : tool === 'order' ? { item: `${number}`, stepMs } : { stepMs };
		const known = await this.#begin(tool, args, `task-${number}`, steps);
		if (!known) return;
		const listening = this.#servers.map((server, index) => this.#listen(known, server, index));
		while (known.end === undefined && !this.#isOver) {
			await pause(LOOK_MS);
			await this.#ask((wire) => this.#look(known, wire));
		}
		await Promise.all(listening);
		// Whoever is asked now, the end is the same.
		await this.#ask(async (wire) => this.ledger.see(known, await wire.get(known.taskId), undefined, true));
	}

	/** Calls until somebody answers: always with the same key, so that it is one task. */
	async #begin(tool: string, args: JsonObject, key: string, steps: number): Promise<FleetTask | undefined> {
		const result = await this.#ask((wire) => wire.call(tool, args, { key }));
		if (!result) return undefined;
		// An answer that was cut off may have been the handle; the retry then waits for the task and gets its result.
		if (result['resultType'] !== 'task' || typeof result['taskId'] !== 'string') return undefined;
		return this.ledger.add(result['taskId'], tool, steps);
	}

	async #look(known: FleetTask, wire: Wire): Promise<void> {
		const task = await wire.get(known.taskId);
		this.ledger.see(known, task);
		if (known.isAnswered || !task.inputRequests) return;
		await wire.update(known.taskId, { version: { action: 'accept', content: { version: 'v1' } } });
		known.isAnswered = true;
	}

	/** Listens on one server until it tells of the end; again after each time that the stream broke. */
	async #listen(known: FleetTask, server: Member, index: number): Promise<void> {
		while (!known.heardFrom.has(index) && !this.#isOver) {
			const { wire } = server;
			if (!wire) {
				await pause(50);
				continue;
			}
			const stream = wire.listen([known.taskId]);
			const state = { isOpen: true };
			const closed = stream.reply.then(
				() => void (state.isOpen = false),
				() => void (state.isOpen = false),
			);
			let seen = 0;
			while (state.isOpen && !known.heardFrom.has(index) && !this.#isOver && server.wire === wire) {
				await Promise.race([pause(50), closed]);
				for (; seen < stream.messages.length; seen++) this.#told(known, stream.messages[seen], index);
			}
			stream.cut();
			if (!known.heardFrom.has(index)) await pause(50);
		}
	}

	#told(known: FleetTask, message: JsonObject | undefined, index: number): void {
		const params = message?.['params'];
		if (!isJsonObject(params) || params['taskId'] !== known.taskId) return;
		this.ledger.see(known, params as unknown as DetailedTask, index);
	}

	/** Asks one server after the other, at random, until one answers. */
	async #ask<T>(work: (wire: Wire) => Promise<T>): Promise<T | undefined> {
		while (!this.#isOver) {
			const { wire } = this.#options.random.pick(this.#servers as [Member, ...Member[]]);
			if (wire) {
				try {
					return await work(wire);
				} catch {
					// It died, or cannot reach the store: a client tries again, elsewhere.
				}
			}
			await pause(100);
		}
		return undefined;
	}

	#keep(life: Promise<void>): void {
		const kept = life.finally(() => this.#running.delete(kept));
		this.#running.add(kept);
	}
}
