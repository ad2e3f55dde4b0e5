/** What a SIGKILL of the serving process leaves, and what the next process makes of it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { endGroup, groupOf, membersOf, signalAll } from '../process-group.ts';
import { PipelineServer } from './pipeline-server.ts';
import { until } from './until.ts';
import { Scratch } from './scratch.ts';
import { isRunning, stateOf } from './process-probe.ts';

/** The second stage writes its number down, and which of those before it still run. It waits in its first run. */
const PIPELINE = `
stages:
  - { name: one, run: echo ran >> one }
  - name: two
    run: |
      for pid in $(cat two 2>/dev/null); do
        if ps -o stat= -p $pid | grep -qv Z; then echo $pid >> overlap; fi
      done
      trap "" TERM
      echo $$ >> two
      until [ -e go ]; do sleep 0.05; done
    killGraceMs: 300
  - { name: three, run: echo ran >> three }
`;

/** The same, but its second stage ends when it is told to. */
const OBEDIENT = PIPELINE.replace('trap "" TERM', ':');

const LONG = { timeout: 60_000 };

function place({ onTestFinished }: TestContext): Scratch {
	const scratch = new Scratch();
	onTestFinished(() => scratch.remove());
	return scratch;
}

async function serve(scratch: Scratch, { onTestFinished }: TestContext): Promise<PipelineServer> {
	const server = await PipelineServer.start(scratch.database, scratch.folder);
	onTestFinished(() => server.end('SIGKILL'));
	return server;
}

describe.concurrent('after a SIGKILL in the middle of stage 2', () => {
	it('goes on with stage 2, does not repeat stage 1, and leaves no orphan', LONG, async (test) => {
		const scratch = place(test);
		const before = await serve(scratch, test);
		const checkout = scratch.checkout(OBEDIENT);
		const taskId = await before.run(checkout);
		const [orphan = 0] = await checkout.pids('two');
		await before.end('SIGKILL');
		// With no server at all: the guard sees the end of its server by itself.
		await until('the end of the orphan', () => (isRunning(orphan) ? undefined : true));

		const server = await serve(scratch, test);
		const pids = await checkout.pids('two', 2);
		checkout.touch('go');
		const { structuredContent } = await server.result(taskId);
		expect(structuredContent?.status).toBe('passed');
		expect(checkout.lines('one')).toHaveLength(1);
		expect(checkout.lines('two')).toHaveLength(2);
		expect(checkout.lines('three')).toHaveLength(1);
		expect(checkout.lines('overlap')).toEqual([]);
		expect(pids.filter(isRunning)).toEqual([]);
		const log = readFileSync(structuredContent?.stages[1]?.logFile ?? '', 'utf8');
		expect(log).toContain('[pipeline] The server went away; the stage begins again.');
	});

	it('ends what survived both the server and its guard before the stage runs again', LONG, async (test) => {
		const scratch = place(test);
		const before = await serve(scratch, test);
		const checkout = scratch.checkout(PIPELINE);
		const taskId = await before.run(checkout);
		const [orphan = 0] = await checkout.pids('two');
		const record: unknown = JSON.parse(
			readFileSync(join(`${scratch.database}.logs`, taskId, 'running.json'), 'utf8'),
		);
		test.onTestFinished(() => signalAll(orphan, 'SIGKILL'));
		const guard = Number(Reflect.get(Object(record), 'groupId'));
		// The guard first would be noticed by its server; frozen, the server notices nothing until it is dead.
		process.kill(before.pid, 'SIGSTOP');
		await until('the server to stand still', () => (stateOf(before.pid) === 'T' ? true : undefined));
		process.kill(guard, 'SIGKILL');
		await before.end('SIGKILL');
		await until('the end of the guard', () => (isRunning(guard) ? undefined : true));
		expect(isRunning(orphan)).toBe(true);

		const server = await serve(scratch, test);
		await checkout.pids('two', 2);
		expect(isRunning(orphan)).toBe(false);
		checkout.touch('go');
		expect((await server.result(taskId)).structuredContent?.status).toBe('passed');
		expect(checkout.lines('one')).toHaveLength(1);
		expect(checkout.lines('overlap')).toEqual([]);
	});
});

describe.concurrent('an orderly end of the server', () => {
	it('ends the running stage and lets the next server begin it again', LONG, async (test) => {
		const scratch = place(test);
		const before = await serve(scratch, test);
		const checkout = scratch.checkout(OBEDIENT);
		const taskId = await before.run(checkout);
		const [first = 0] = await checkout.pids('two');
		await before.end('SIGTERM');
		await until('the end of the stage', () => (isRunning(first) ? undefined : true));
		const server = await serve(scratch, test);
		await checkout.pids('two', 2);
		checkout.touch('go');
		expect((await server.result(taskId)).structuredContent?.status).toBe('passed');
		expect(checkout.lines('one')).toHaveLength(1);
	});
});

describe('a process group', () => {
	let stranger: ChildProcess;

	beforeEach(() => {
		stranger = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
	});

	afterEach(() => {
		stranger.kill('SIGKILL');
	});

	it('is left alone when its number belongs to somebody else by now', async () => {
		const { pid = 0 } = stranger;
		const group = groupOf(pid, 'mark');
		if (!group) throw new Error('The process has ended');
		expect(membersOf(group)).toEqual([pid]);
		await endGroup({ ...group, leaderStartedAt: 'another time' }, 0);
		expect(isRunning(pid)).toBe(true);
		await endGroup(group, 0);
		expect(isRunning(pid)).toBe(false);
	});
});
