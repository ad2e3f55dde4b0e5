/** What a campaign knows for certain, and what it found to be broken. */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import type { TaskDetails } from '../../src/backend/record.ts';
import { isTerminal, type TaskStatus } from '../../src/protocol/status.ts';
import type { DetailedTask } from '../../src/protocol/task.ts';

/** A task whose handle was given. */
export interface Known {
	readonly taskId: string;
	readonly tool: string;
	/** How many steps it has in all. */
	readonly steps: number;
	status: TaskStatus;
	statusMessage: string;
	/** Lines in the effects file, when last looked. */
	effects: number;
	/** Status and result or error of the end, once seen. */
	end: string | undefined;
	task: DetailedTask | undefined;
	/** Every answer that was sent, in order. */
	readonly answers: string[];
	/** Whether the server has said that it took the last one. */
	isAnswered: boolean;
	isCancelled: boolean;
	/** Whether a look at it is under way, so that answers about it cannot overtake each other. */
	isLookedAt: boolean;
	/** How long the server has been up since the task last moved, and whether it was killed meanwhile. */
	idleMs: number;
	isOrphan: boolean;
}

/** Recoveries in milliseconds of server up-time: from the restart to the task's next sign of life. */
export interface Findings {
	readonly violations: string[];
	readonly recoveriesMs: number[];
	/** Steps whose line was on the disk and whose record was not, when the process was killed. */
	unrecordedSteps: number;
	/** Steps that ran again because of that. */
	repeatedSteps: number;
	/** Open tasks at each kill. */
	readonly openAtKill: number[];
	readonly requestsAtKill: number[];
	/** Tasks that ended as "outcome unknown", by policy. */
	unknownOutcomes: number;
}

export class Ledger {
	readonly known = new Map<string, Known>();
	readonly findings: Findings = {
		violations: [],
		recoveriesMs: [],
		unrecordedSteps: 0,
		repeatedSteps: 0,
		openAtKill: [],
		requestsAtKill: [],
		unknownOutcomes: 0,
	};
	readonly #dbFile: string;
	readonly #effectsFile: string;
	/** How often each step that is on record had run when its record was first seen. */
	readonly #recorded = new Map<string, number>();
	readonly #unrecorded = new Set<string>();

	constructor(dbFile: string, effectsFile: string) {
		this.#dbFile = dbFile;
		this.#effectsFile = effectsFile;
	}

	violation(text: string): void {
		this.findings.violations.push(text);
	}

	add(taskId: string, tool: string, steps: number): Known {
		const before = this.known.get(taskId);
		if (before) return before;
		const known: Known = {
			...{
				taskId,
				tool,
				steps,
				status: 'working',
				statusMessage: '',
				effects: 0,
				end: undefined,
				task: undefined,
			},
			...{ answers: [], isAnswered: false, isCancelled: false, isLookedAt: false, idleMs: 0 },
			isOrphan: false,
		};
		this.known.set(taskId, known);
		return known;
	}

	open(): Known[] {
		return [...this.known.values()].filter((known) => known.end === undefined);
	}

	/** Notes what a `tasks/get` answered. */
	see(known: Known, task: DetailedTask): void {
		const end = isTerminal(task.status) ? digest(task) : undefined;
		if (known.end !== undefined && known.end !== end)
			this.violation(
				`${known.tool} ${known.taskId} had ended as ${known.status} and changed to ${task.status}`,
			);
		const message = task.statusMessage ?? '';
		const isMoved =
			known.status !== task.status || (known.statusMessage !== message && !message.includes('died'));
		if (isMoved) this.#moved(known);
		Object.assign(known, { status: task.status, statusMessage: message, end, task });
		if (known.isAnswered && task.inputRequests && 'version' in task.inputRequests)
			this.violation(`${known.taskId} asks again what it was answered`);
	}

	/** Notes the lines that steps left. */
	readEffects(): Map<string, number> {
		const runs = new Map<string, number>();
		const perTask = new Map<string, number>();
		const text = existsSync(this.#effectsFile) ? readFileSync(this.#effectsFile, 'utf8') : '';
		for (const line of text.split('\n').slice(0, -1)) {
			const [taskId = '', step = ''] = line.split(' ');
			runs.set(`${taskId} ${step}`, (runs.get(`${taskId} ${step}`) ?? 0) + 1);
			perTask.set(taskId, (perTask.get(taskId) ?? 0) + 1);
		}
		for (const [taskId, effects] of perTask) {
			const known = this.known.get(taskId);
			if (!known || known.effects === effects) continue;
			known.effects = effects;
			this.#moved(known);
		}
		return runs;
	}

	/** Time in which the server was up passed. */
	tick(elapsedMs: number): void {
		for (const known of this.open()) {
			known.idleMs += elapsedMs;
			if (known.idleMs > 10_000 && known.idleMs - elapsedMs <= 10_000)
				this.violation(
					`${known.tool} ${known.taskId} has not moved for 10 s: ${known.status} ${known.statusMessage}`,
				);
		}
	}

	/** The process was killed: what it left on the disk must hold, read from a copy. */
	async inspectAfterKill(requestsInFlight: number): Promise<void> {
		const copy = `${this.#dbFile}.copy`;
		for (const suffix of ['', '-wal'])
			if (existsSync(this.#dbFile + suffix)) copyFileSync(this.#dbFile + suffix, copy + suffix);
		const runs = this.readEffects();
		this.findings.openAtKill.push(this.open().length);
		this.findings.requestsAtKill.push(requestsInFlight);
		const stored = await readStore(copy);
		for (const { record, steps } of stored.values())
			for (const { name } of steps) this.#checkRecorded(`${record.taskId} ${name}`, runs);
		for (const known of this.known.values()) {
			const record = stored.get(known.taskId)?.record;
			if (!record) {
				this.violation(`${known.tool} ${known.taskId} is lost: its handle was given`);
				continue;
			}
			if (known.end !== undefined && record.status !== known.status)
				this.violation(`${known.taskId} had ended as ${known.status} and is stored as ${record.status}`);
			if (known.isAnswered && !Object.hasOwn(record.inputResponses, 'version'))
				this.violation(`${known.taskId} lost an answer that was taken`);
			if (known.end === undefined) known.isOrphan = true;
		}
		for (const [step, count] of runs) if (!this.#recorded.has(step)) this.#unrecorded.add(`${step} ${count}`);
		this.findings.unrecordedSteps = this.#unrecorded.size;
	}

	/** At the end of it all. */
	close(): void {
		const runs = this.readEffects();
		for (const step of this.#recorded.keys()) this.#checkRecorded(step, runs);
		for (const count of runs.values()) this.findings.repeatedSteps += count - 1;
		for (const known of this.known.values()) this.#checkEnd(known);
	}

	/** A step on record has run, and never runs again. */
	#checkRecorded(step: string, runs: ReadonlyMap<string, number>): void {
		if (step.includes('holdfast/')) return;
		const count = runs.get(step) ?? 0;
		const before = this.#recorded.get(step) ?? count;
		this.#recorded.set(step, before);
		if (count === 0) this.violation(`step ${step} is on record and did not run`);
		if (count > before) this.violation(`step ${step} was on record and ran ${count - before} times more`);
	}

	#checkEnd(known: Known): void {
		const { taskId, task, tool, steps, effects } = known;
		if (task?.status === 'completed') {
			const text = JSON.stringify(task.result);
			if (tool === 'release' && !text.includes(`"${known.answers.at(-1)}"`))
				this.violation(`${taskId} was answered ${known.answers.join(', ')} and made ${text} of it`);
			if (effects < steps)
				this.violation(`${tool} ${taskId} is completed after ${effects} of ${steps} steps`);
		} else if (task?.status === 'cancelled') {
			if (!known.isCancelled) this.violation(`${taskId} is cancelled and nobody asked for it`);
		} else if (task?.status === 'failed') {
			const reason = JSON.stringify(task.error);
			this.findings.unknownOutcomes += 1;
			const isAllowed = tool === 'lookup' || (tool === 'order' && !this.#recorded.has(`${taskId} charge`));
			if (!isAllowed || !reason.includes('outcome_unknown'))
				this.violation(`${tool} ${taskId} failed: ${reason}`);
		} else this.violation(`${tool} ${taskId} did not end: ${JSON.stringify(task)}`);
	}

	#moved(known: Known): void {
		if (known.isOrphan) this.findings.recoveriesMs.push(known.idleMs);
		known.isOrphan = false;
		known.idleMs = 0;
	}
}

/** Every task of a store with its journal. */
async function readStore(file: string): Promise<Map<string, TaskDetails>> {
	const backend = sqlite({ file });
	await backend.open();
	const found = new Map<string, TaskDetails>();
	try {
		for (let cursor: string | null | undefined; cursor !== null; ) {
			const page = await backend.store.list({
				principal: null,
				statuses: null,
				limit: 500,
				cursor: cursor ?? null,
			});
			for (const { taskId } of page.records) {
				const details = await backend.store.load(taskId);
				if (details) found.set(taskId, details);
			}
			cursor = page.nextCursor;
		}
		return found;
	} finally {
		await backend.close();
	}
}

function digest({ status, result, error }: DetailedTask): string {
	return createHash('sha256').update(JSON.stringify({ status, result, error })).digest('base64url');
}
