import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isTerminal } from '../protocol/status.ts';
import type { DetailedTask } from '../protocol/task.ts';
import { DemoClient } from './demo-client.ts';
import { type DemoPlace, DemoProcess } from './demo-process.ts';
import { askYesOrNo } from './demo-question.ts';
import { DemoScreen } from './demo-screen.ts';
import { DEMO_STEPS, DEMO_TOOL, readStepLines, STEP_MS } from './demo-steps.ts';
import { claimsOf, type DemoFacts } from './demo-claims.ts';
import { EXIT_CODES, Failure } from './failure.ts';
import { type EndSignal, onEndSignal, signalExitCode } from './shutdown.ts';
import { plain } from './terminal.ts';

const LIMIT_MS = 90_000;

/** How long a step must have run, and may have, when the process is killed: well inside it, so nothing is a tie. */
const KILL_FROM_MS = 400;
const KILL_TO_MS = STEP_MS - 500;

/** How many steps are finished before the process is killed. */
const KILL_AFTER_STEPS = 2;

const NOBODY = 'nobody answers; the client keeps the task id and asks again';

/** Shows a task survive the death of its server. Answers 0 only when everything that it says was true. */
export async function demo(): Promise<number> {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'));
	const children: ChildProcess[] = [];
	const cleanUp = (): void => {
		for (const child of children) child.kill('SIGKILL');
		rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
	};
	// Also for a second Ctrl-C, which exits at once.
	process.once('exit', cleanUp);
	const stop = new AbortController();
	let endedBy: EndSignal | undefined;
	const forget = onEndSignal((signal) => {
		endedBy = signal;
		stop.abort();
		cleanUp();
	});
	const screen = new DemoScreen(process.stdout);
	const limit = setTimeout(
		() => stop.abort(new Failure(`The demo took more than ${LIMIT_MS / 1_000} s.`)),
		LIMIT_MS,
	);
	try {
		const run = new DemoRun(folder, screen, (child) => children.push(child), stop.signal);
		return report(screen, await run.play());
	} catch (error) {
		screen.live(undefined);
		if (endedBy === undefined) throw stop.signal.aborted ? stop.signal.reason : error;
		screen.line('Stopped; everything is cleaned up.');
		return signalExitCode(endedBy);
	} finally {
		screen.live(undefined);
		clearTimeout(limit);
		forget();
		cleanUp();
		process.off('exit', cleanUp);
	}
}

/** One showing, from the first start to the result. */
class DemoRun {
	readonly #screen: DemoScreen;
	readonly #onSpawn: (child: ChildProcess) => void;
	readonly #signal: AbortSignal;
	readonly #place: DemoPlace;
	/** The last words about the task. */
	#shown = '';

	constructor(
		folder: string,
		screen: DemoScreen,
		onSpawn: (child: ChildProcess) => void,
		signal: AbortSignal,
	) {
		this.#screen = screen;
		this.#onSpawn = onSpawn;
		this.#signal = signal;
		this.#place = { db: join(folder, 'tasks.db'), journal: join(folder, 'steps.jsonl'), port: 0 };
	}

	async play(): Promise<DemoFacts> {
		const screen = this.#screen;
		const { paint } = screen;
		screen.line(paint('bold', 'A slow tool call that survives kill -9 (about 20 seconds)'));
		screen.line();
		screen.say('starting a server: holdfast serve demo-server --db tasks.db');
		const first = await this.#start(0);
		const client = new DemoClient(first.url);
		if (!(await client.discover())) throw new Failure('The server does not say that it speaks Tasks.');
		screen.say(`process ${first.pid} listens on ${first.url} and speaks MCP Tasks`);
		const { taskId } = await client.call({ month: 'October' });
		screen.say(`tools/call ${DEMO_TOOL} is answered at once, with a task: ${paint('bold', plain(taskId))}`);

		await this.#follow(client, taskId, () => this.#isTimeToKill());
		const killedAtMs = Date.now();
		await first.kill();
		const before = readStepLines(this.#place.journal);
		screen.say(paint('red', `kill -9 ${first.pid}`) + `, in the middle of "${before.at(-1)?.step}"`);
		const restarted = this.#start(Number(new URL(first.url).port)).then((second) => {
			screen.say(`started again: process ${second.pid}, with the same file`);
			return second;
		});
		const [{ pid }] = await Promise.all([restarted, this.#follow(client, taskId, () => true)]);

		const resumed = (): boolean => readStepLines(this.#place.journal).some((line) => line.pid === pid);
		await this.#follow(client, taskId, resumed);
		const goesOn = readStepLines(this.#place.journal).find((line) => line.pid === pid);
		screen.say(
			paint('green', `process ${pid} goes on with "${goesOn?.step}"`) + '; finished steps are not repeated',
		);

		const asking = await this.#follow(client, taskId, (task) => task.status === 'input_required');
		const wasAnswered = await this.#answer(client, asking);
		const last = await this.#follow(client, taskId, () => false);
		screen.live(undefined);
		return {
			taskId,
			last,
			wasAnswered,
			killedAtMs,
			pids: [first.pid, pid],
			before,
			after: readStepLines(this.#place.journal),
			sent: client.sent,
			unanswered: client.unanswered,
		};
	}

	#start(port: number): Promise<DemoProcess> {
		return DemoProcess.start({ ...this.#place, port }, this.#onSpawn);
	}

	/** Asks for the task as often as the server wants it, until `isEnough` or its end, and shows what changes. */
	async #follow(
		client: DemoClient,
		taskId: string,
		isEnough: (task: DetailedTask) => boolean,
	): Promise<DetailedTask> {
		let pollIntervalMs = 500;
		for (;;) {
			this.#signal.throwIfAborted();
			const task = await client.get(taskId);
			this.#show(task ? `${task.status}: ${plain(task.statusMessage ?? '')}` : NOBODY);
			if (task && (isTerminal(task.status) || isEnough(task))) return task;
			pollIntervalMs = task?.pollIntervalMs ?? pollIntervalMs;
			await wait(pollIntervalMs, undefined, { signal: this.#signal });
		}
	}

	/** Shows where the task stands, where that is new. */
	#show(words: string): void {
		if (words === this.#shown) return;
		this.#shown = words;
		this.#screen.say(words);
		this.#screen.live(words);
	}

	#isTimeToKill(): boolean {
		const lines = readStepLines(this.#place.journal);
		const last = lines.at(-1);
		const finished = lines.filter(({ what }) => what === 'ended').length;
		if (finished === DEMO_STEPS.length)
			throw new Failure('This machine is too busy: the tool ended before it was killed.');
		if (last?.what !== 'began' || finished < KILL_AFTER_STEPS) return false;
		const runsForMs = Date.now() - last.atMs;
		return runsForMs >= KILL_FROM_MS && runsForMs <= KILL_TO_MS;
	}

	/** Whether there was a question to answer. */
	async #answer(client: DemoClient, task: DetailedTask): Promise<boolean> {
		const [key, request] = Object.entries(task.inputRequests ?? {})[0] ?? [];
		if (key === undefined) return false;
		this.#screen.live(undefined);
		const message = request?.params?.['message'];
		const question = typeof message === 'string' ? plain(message) : 'Yes?';
		const publish = await askYesOrNo(this.#screen, question, this.#signal);
		await client.update(task.taskId, {
			[key]: publish ? { action: 'accept', content: { publish } } : { action: 'decline' },
		});
		return true;
	}
}

function report(screen: DemoScreen, facts: DemoFacts): number {
	const { paint } = screen;
	const claims = claimsOf(facts);
	const content = facts.last.result?.['content'];
	const [first] = Array.isArray(content) ? content : [];
	const text: unknown = typeof first === 'object' && first !== null ? Reflect.get(first, 'text') : undefined;
	screen.line();
	screen.line(`${paint('bold', 'Result')}  ${plain(typeof text === 'string' ? text : 'none')}`);
	screen.line();
	screen.line(paint('bold', 'What this proved'));
	for (const { says, holds } of claims)
		screen.line(`  ${holds ? paint('green', 'ok') : paint('red', 'NOT TRUE')}  ${plain(says)}`);
	const isTrue = claims.every(({ holds }) => holds);
	if (!isTrue)
		screen.line('Something that this demo says is not true on this machine. That is a fault of holdfast.');
	return isTrue ? EXIT_CODES.ok : EXIT_CODES.failed;
}
