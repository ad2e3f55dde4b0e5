/** One victim after the other on one database: traffic, SIGKILL, restart, until the kills are used up. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import type { DetailedTask } from '../../src/protocol/task.ts';
import { stringOf, Wire } from '../field/wire.ts';
import { type Findings, type Known, Ledger } from './ledger.ts';
import type { Random } from './random.ts';
import { type VictimFiles, VictimProcess } from './victim-process.ts';

export interface CampaignOptions {
	readonly folder: string;
	readonly cacheFolder: string;
	readonly random: Random;
	readonly kills: number;
	/** The engine's beat; the defaults where empty. */
	readonly timing: Readonly<Record<string, number>>;
	/**
	 * After how many answers, at least and at most, the process is killed: a measure of work that is the same on a
	 * busy machine and on an idle one.
	 */
	readonly repliesPerLife: readonly [number, number];
	/** Whether every orphan must show a sign of life before the next kill. */
	readonly awaitRecovery: boolean;
}

const MOST_OPEN = 30;
const MOST_IN_FLIGHT = 16;
const BEAT_MS = 20;
const LIFE_AT_MOST_MS = 3_000;
const END_WITHIN_MS = 30_000;

export class Campaign {
	readonly #options: CampaignOptions;
	readonly #files: VictimFiles;
	readonly #ledger: Ledger;
	#next: VictimProcess;
	#wire: Wire | undefined;
	#isKilled = false;
	#inFlight = 0;
	#replies = 0;
	#serial = 0;
	/** Idempotency keys that were used, with the task that the first answer named. */
	readonly #orders = new Map<string, string | undefined>();

	constructor(options: CampaignOptions) {
		mkdirSync(options.folder, { recursive: true });
		this.#options = options;
		this.#files = {
			dbFile: join(options.folder, 'tasks.db'),
			effectsFile: join(options.folder, 'effects.txt'),
			cacheFolder: options.cacheFolder,
			timing: options.timing,
		};
		this.#ledger = new Ledger(this.#files.dbFile, this.#files.effectsFile);
		this.#next = new VictimProcess(this.#files);
	}

	async run(): Promise<Findings & { readonly tasks: number }> {
		for (let kill = 1; kill <= this.#options.kills; kill++) await this.#live(kill);
		const last = this.#next;
		try {
			this.#serve(await last.serve());
			await this.#untilEnded();
			for (const known of this.#ledger.known.values()) await this.#look(known);
			this.#ledger.close();
		} finally {
			this.#isKilled = true;
			await last.kill();
			this.#wire?.close();
			await this.#settled();
		}
		return { ...this.#ledger.findings, tasks: this.#ledger.known.size };
	}

	/** From one start to the next kill. */
	async #live(kill: number): Promise<void> {
		const { random, repliesPerLife, awaitRecovery } = this.#options;
		const victim = this.#next;
		this.#next = new VictimProcess(this.#files);
		const isKilledEarly = kill > 1 && !awaitRecovery && random.isOneIn(10);
		const serving = victim.serve();
		if (isKilledEarly) {
			await victim.loaded();
			await pause(random.between(0, 60));
		} else {
			this.#serve(await serving);
			if (awaitRecovery) await this.#untilRecovered();
			await this.#traffic(random.between(...repliesPerLife));
		}
		this.#isKilled = true;
		const requestsInFlight = this.#inFlight;
		await victim.kill();
		await serving;
		this.#wire?.close();
		this.#wire = undefined;
		await this.#settled();
		await this.#ledger.inspectAfterKill(requestsInFlight);
	}

	#serve(url: string | undefined): void {
		if (url === undefined) throw new Error('The victim did not serve');
		this.#isKilled = false;
		this.#wire = new Wire(url);
		// The first look after a restart finds every open task, and those that were begun without an answer.
		for (const known of this.#ledger.open()) void this.#attempt(() => this.#look(known));
		for (const [key, taskId] of this.#orders) if (taskId === undefined) void this.#order(key);
	}

	/** New calls, polls, answers and cancels until so many were answered. */
	async #traffic(replies: number): Promise<void> {
		const { random } = this.#options;
		for (let burst = random.between(2, 4); burst > 0; burst--) this.#begin();
		const until = this.#replies + replies;
		await this.#beat(performance.now() + LIFE_AT_MOST_MS, () => {
			if (random.isOneIn(3) && this.#ledger.open().length < MOST_OPEN) this.#begin();
			return this.#replies >= until;
		});
		await pause(random.between(0, BEAT_MS));
	}

	async #untilRecovered(): Promise<void> {
		await this.#beat(
			performance.now() + END_WITHIN_MS,
			() => !this.#ledger.open().some(({ isOrphan }) => isOrphan),
		);
	}

	async #untilEnded(): Promise<void> {
		await this.#beat(performance.now() + END_WITHIN_MS, () => this.#ledger.open().length === 0);
	}

	/** Polls a part of the open tasks on each beat until the deadline, or until `isDone`. */
	async #beat(deadlineMs: number, isDone: () => boolean): Promise<void> {
		let lastMs = performance.now();
		for (let turn = 0; lastMs < deadlineMs; turn++) {
			await pause(Math.min(BEAT_MS, deadlineMs - lastMs));
			const nowMs = performance.now();
			this.#ledger.tick(nowMs - lastMs);
			lastMs = nowMs;
			if (turn % 5 === 0) this.#ledger.readEffects();
			for (const [index, known] of this.#ledger.open().entries())
				if (index % 4 === turn % 4 && this.#inFlight < MOST_IN_FLIGHT)
					void this.#attempt(() => this.#look(known));
			if (isDone()) return;
		}
	}

	#begin(): void {
		const { random } = this.#options;
		const stepMs = random.between(4, 30);
		switch (random.pick(['build', 'build', 'release', 'release', 'lookup', 'order'])) {
			case 'build': {
				const steps = random.between(3, 6);
				void this.#attempt(async () => {
					const known = await this.#call('build', { steps, stepMs }, steps);
					if (known && random.isOneIn(8)) await this.#cancel(known);
				});
				break;
			}
			case 'release':
				void this.#attempt(() => this.#call('release', { stepMs }, 2));
				break;
			case 'lookup':
				void this.#attempt(() => this.#call('lookup', { takesMs: random.between(0, 90) }, 0));
				break;
			case 'order': {
				const key = `order-${++this.#serial}`;
				this.#orders.set(key, undefined);
				void this.#order(key);
				break;
			}
		}
	}

	async #call(tool: string, args: JsonObject, steps: number): Promise<Known | undefined> {
		const result = await this.#needed().call(tool, args);
		return result['resultType'] === 'task'
			? this.#ledger.add(stringOf(result['taskId']), tool, steps)
			: undefined;
	}

	/** The retried write: however often it is called, it is one task. */
	#order(key: string): Promise<void> {
		return this.#attempt(async () => {
			const reply = await this.#needed().beginCall('order', { item: key, stepMs: 10 }, { key }).reply;
			const result = reply.message['result'];
			if (!isJsonObject(result) || result['resultType'] !== 'task') {
				// It had ended before anybody heard of it: the retry gets what became of it.
				if (result === undefined && !reply.text.includes('outcome_unknown')) throw new Error(reply.text);
				this.#orders.delete(key);
				return;
			}
			const taskId = stringOf(result['taskId']);
			const before = this.#orders.get(key);
			if (before !== undefined && before !== taskId)
				this.#ledger.violation(`the key ${key} began ${before} and then ${taskId}`);
			this.#orders.set(key, taskId);
			this.#ledger.add(taskId, 'order', 2);
			if (this.#options.random.isOneIn(2)) await this.#order(key);
		});
	}

	async #look(known: Known): Promise<void> {
		if (known.isLookedAt) return;
		known.isLookedAt = true;
		try {
			const task = await this.#needed().get(known.taskId);
			this.#ledger.see(known, task);
			if (task.inputRequests && !known.isAnswered) await this.#answer(known, task);
		} finally {
			known.isLookedAt = false;
		}
	}

	/** An answer whose acknowledgement was cut off was taken or not; as long as the task asks, it was not. */
	async #answer(known: Known, { inputRequests }: DetailedTask): Promise<void> {
		if (inputRequests?.['version']?.method !== 'elicitation/create')
			return this.#ledger.violation(`${known.taskId} asks ${JSON.stringify(inputRequests)}`);
		const version = `v${++this.#serial}`;
		known.answers.push(version);
		await this.#needed().update(known.taskId, { version: { action: 'accept', content: { version } } });
		known.isAnswered = true;
	}

	async #cancel(known: Known): Promise<void> {
		known.isCancelled = true;
		await this.#needed().cancel(known.taskId);
	}

	#needed(): Wire {
		if (!this.#wire) throw new Error('No server');
		return this.#wire;
	}

	/** What fails because of a kill is the point of it; any other failure is a finding. */
	async #attempt(work: () => Promise<unknown>): Promise<void> {
		this.#inFlight += 1;
		const wire = this.#wire;
		try {
			await work();
			this.#replies += 1;
		} catch (error) {
			if (!this.#isKilled && this.#wire === wire)
				this.#ledger.violation(`a request failed: ${String(error)}`);
		} finally {
			this.#inFlight -= 1;
		}
	}

	/** Requests to a dead process have failed. */
	async #settled(): Promise<void> {
		while (this.#inFlight > 0) await pause(1);
	}
}
