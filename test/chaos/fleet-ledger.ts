/** What a fleet's clients know for certain, and what they found to be broken. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { Backend } from '../../src/backend/backend.ts';
import { isTerminal } from '../../src/protocol/status.ts';
import type { DetailedTask } from '../../src/protocol/task.ts';

const STUCK_AFTER_MS = 15_000;

/** A task whose handle was given. */
export interface FleetTask {
	readonly taskId: string;
	readonly tool: string;
	readonly steps: number;
	/** Status and result or error of the end, once seen by anybody. */
	end: string | undefined;
	task: DetailedTask | undefined;
	/** Request servers whose listeners were told of the end. */
	readonly heardFrom: Set<number>;
	isAnswered: boolean;
	/** What it looked like when it last moved, and when that was. */
	look: string;
	movedAtMs: number;
}

export class FleetLedger {
	readonly tasks = new Map<string, FleetTask>();
	readonly violations: string[] = [];
	/** Longest time that each task stood still, in milliseconds. */
	readonly stillMs = new Map<string, number>();
	readonly #effectsFile: string;
	/** Steps on record, with the moment at which they were known to be. */
	readonly #recorded = new Map<string, number>();

	constructor(effectsFile: string) {
		this.#effectsFile = effectsFile;
	}

	add(taskId: string, tool: string, steps: number): FleetTask {
		const before = this.tasks.get(taskId);
		if (before) return before;
		const task: FleetTask = {
			...{ taskId, tool, steps, end: undefined, task: undefined, heardFrom: new Set() },
			...{ isAnswered: false, look: '', movedAtMs: performance.now() },
		};
		this.tasks.set(taskId, task);
		return task;
	}

	open(): FleetTask[] {
		return [...this.tasks.values()].filter(({ end }) => end === undefined);
	}

	/**
	 * Notes what a request server said of a task.
	 *
	 * @param heardFrom - the server that told it without being asked.
	 * @param askedAfterEnd - whether it was asked when the end was known already.
	 */
	see(known: FleetTask, task: DetailedTask, heardFrom?: number, askedAfterEnd = false): void {
		const end = isTerminal(task.status) ? digest(task) : undefined;
		if (known.end !== undefined && end !== undefined && known.end !== end)
			this.violations.push(`${known.taskId} ended twice: ${JSON.stringify([known.task, task])}`);
		// What was on its way when the end became known may still tell of the time before.
		if (askedAfterEnd && end === undefined)
			this.violations.push(`${known.taskId} had ended and is ${task.status}`);
		if (end !== undefined && heardFrom !== undefined) known.heardFrom.add(heardFrom);
		if (known.end !== undefined) return;
		this.#moved(known, `${task.status} ${task.statusMessage ?? ''}`);
		known.end = end;
		if (end !== undefined) known.task = task;
	}

	/** Looks at the lines that steps left, and at who has not moved for too long. */
	tick(): void {
		const perTask = Map.groupBy(this.#effects(), ({ taskId }) => taskId);
		for (const known of this.open()) {
			const effects = perTask.get(known.taskId)?.length ?? 0;
			if (effects > 0) this.#moved(known, `${effects} effects`);
			const stillMs = performance.now() - known.movedAtMs;
			const before = this.stillMs.get(known.taskId) ?? 0;
			this.stillMs.set(known.taskId, Math.max(before, stillMs));
			if (stillMs > STUCK_AFTER_MS && before <= STUCK_AFTER_MS)
				this.violations.push(`${known.tool} ${known.taskId} has not moved for 15 s: ${known.look}`);
		}
	}

	/** Reads the journals of the tasks that are under way: what is on record must never be begun again. */
	async inspect({ store }: Backend): Promise<void> {
		for (const known of this.open()) {
			const details = await store.load(known.taskId);
			if (!details) this.violations.push(`${known.tool} ${known.taskId} is lost: its handle was given`);
			const readAtMs = Date.now();
			for (const { name } of details?.steps ?? []) {
				const step = `${known.taskId} ${name}`;
				if (!name.startsWith('holdfast/') && !this.#recorded.has(step)) this.#recorded.set(step, readAtMs);
			}
		}
	}

	/** At the end of it all. Answers how often a step ran again, having been cut off before it was on record. */
	close(servers: number): { readonly repeated: number; readonly inspected: number } {
		const effects = this.#effects();
		for (const { taskId, step, begunAtMs } of effects) {
			const recordedAtMs = this.#recorded.get(`${taskId} ${step}`);
			if (recordedAtMs !== undefined && begunAtMs > recordedAtMs)
				this.violations.push(`step ${step} of ${taskId} was on record and was begun again`);
		}
		const runs = Map.groupBy(effects, ({ taskId, step }) => `${taskId} ${step}`);
		const perTask = Map.groupBy([...runs.keys()], (run) => run.split(' ')[0]);
		for (const known of this.tasks.values()) {
			const { taskId, tool, task } = known;
			if (!task) this.violations.push(`${tool} ${taskId} did not end: ${known.look}`);
			else if (task.status !== 'completed' && !isHonest(known))
				this.violations.push(`${tool} ${taskId} is ${task.status}: ${JSON.stringify(task)}`);
			else if (task.status === 'completed' && (perTask.get(taskId)?.length ?? 0) < known.steps)
				this.violations.push(`${tool} ${taskId} is completed without all of its ${known.steps} steps`);
			if (task && known.heardFrom.size < servers)
				this.violations.push(
					`of ${servers} listeners, ${known.heardFrom.size} were told of the end of ${taskId}`,
				);
		}
		return { repeated: effects.length - runs.size, inspected: this.#recorded.size };
	}

	#moved(known: FleetTask, look: string): void {
		if (known.look.includes(look)) return;
		// Statuses and effects are seen separately, so that each is news only once.
		known.look = `${known.look.slice(-400)} | ${look}`;
		known.movedAtMs = performance.now();
	}

	#effects(): { taskId: string; step: string; begunAtMs: number }[] {
		if (!existsSync(this.#effectsFile)) return [];
		const lines = readFileSync(this.#effectsFile, 'utf8').split('\n').slice(0, -1);
		return lines.map((line) => {
			const [taskId = '', step = '', , begunAtMs] = line.split(' ');
			return { taskId, step, begunAtMs: Number(begunAtMs) };
		});
	}
}

/** A write that was entered, and cut off before it journalled anything, has no known outcome. */
function isHonest({ tool, task }: FleetTask): boolean {
	return (
		tool === 'order' && JSON.stringify(task?.status === 'failed' && task.error).includes('outcome_unknown')
	);
}

function digest(task: DetailedTask): string {
	const { status } = task;
	const result = 'result' in task ? task.result : null;
	const error = 'error' in task ? task.error : null;
	return createHash('sha256').update(JSON.stringify({ status, result, error })).digest('base64url');
}
