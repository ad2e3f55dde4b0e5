/** What a gateway that was killed finds again, and F10: nobody survives it. */
import { describe, expect, it } from 'vitest';
import { TASKS_EXTENSION } from '../../src/protocol/names.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { eventually } from '../field/harness.ts';
import { stringOf, textOf } from '../field/wire.ts';
import { isAlive } from '../support/processes.ts';
import { ProxyProcess } from './process-rig.ts';
import { childUpstream, complete, rawServer, scratch, tool } from './rig.ts';

const KILLS = 10;

/** How a misbehaving child is named on the command line. */
function commandOf({ target }: ReturnType<typeof childUpstream>): readonly string[] {
	return target.kind === 'command' ? ['--', target.command, ...target.args] : [];
}

async function startTask(proxy: ProxyProcess, name: string): Promise<string> {
	return stringOf((await proxy.call(name))['taskId']);
}

async function ended(proxy: ProxyProcess, taskId: string): Promise<JsonObject> {
	return eventually(async () => {
		const task = await proxy.get(taskId);
		return ['completed', 'failed', 'cancelled'].includes(stringOf(task['status'])) && task;
	}, 'the end of the task');
}

/** The result of a call, at once or as a task. */
async function resultOfCall(proxy: ProxyProcess, name: string): Promise<unknown> {
	const answer = await proxy.call(name);
	if (answer['resultType'] !== 'task') return answer;
	return (await ended(proxy, stringOf(answer['taskId'])))['result'];
}

describe('a gateway that is killed with SIGKILL', () => {
	it('says within 10 s of its restart that the outcome of an adopted call is unknown, and does not repeat it', async () => {
		const child = childUpstream();
		const state = scratch();
		const first = new ProxyProcess(commandOf(child), { state });
		const taskId = await startTask(first, 'hang');
		await first.kill();
		const restartedAtMs = performance.now();
		const second = new ProxyProcess(commandOf(child), { state });
		const task = await ended(second, taskId);
		expect(performance.now() - restartedAtMs).toBeLessThan(10_000);
		expect(task).toMatchObject({
			status: 'failed',
			error: { code: -32603, message: expect.stringContaining('is unknown: the gateway was restarted') },
		});
		expect(child.calls('hang')).toBe(1);
	});

	it('makes an adopted call again that does no harm twice, and its handle leads to the result', async () => {
		const child = childUpstream();
		const state = scratch();
		const first = new ProxyProcess(commandOf(child), { state });
		const taskId = await startTask(first, 'hang_safely');
		await first.kill();
		const second = new ProxyProcess(commandOf(child), { state });
		await second.request('server/discover');
		await eventually(() => child.calls('hang_safely') === 2, 'the second call', 10_000);
		expect(await second.get(taskId)).toMatchObject({ status: 'working' });
		await second.call('release');
		expect(textOf((await ended(second, taskId))['result'])).toBe('{}');
	});

	it('goes on with a task of the server, which is not started again', async () => {
		let status = 'working';
		let starts = 0;
		const now = new Date().toISOString();
		const task = (): JsonObject => ({
			...{ taskId: '1', status, createdAt: now, lastUpdatedAt: now, ttlMs: 600_000, pollIntervalMs: 1_000 },
			...(status === 'completed' && { result: complete('built') }),
		});
		const { target } = await rawServer(
			[tool('build')],
			{
				'tools/call': ({ result }) => {
					starts += 1;
					result({ resultType: 'task', ...task() });
				},
				'tasks/get': ({ result }) => result({ resultType: 'complete', ...task() }),
			},
			{ extensions: { [TASKS_EXTENSION]: {} } },
		);
		const state = scratch();
		const first = new ProxyProcess([target.url], { state });
		const taskId = await startTask(first, 'build');
		await first.kill();
		status = 'completed';
		const second = new ProxyProcess([target.url], { state });
		expect(textOf((await ended(second, taskId))['result'])).toBe('built');
		expect(starts).toBe(1);
	});

	it('says once, in plain words, that the server lost the task while the gateway was away', async () => {
		const now = new Date().toISOString();
		const times = { createdAt: now, lastUpdatedAt: now, ttlMs: 600_000, pollIntervalMs: 1_000 };
		const task = { taskId: '1', status: 'working', ...times };
		let isLost = false;
		const { target } = await rawServer(
			[tool('build')],
			{
				'tools/call': (request) => request.result({ resultType: 'task', ...task }),
				'tasks/get': (request) =>
					isLost
						? request.error(-32602, 'Task not found')
						: request.result({ resultType: 'complete', ...task }),
			},
			{ extensions: { [TASKS_EXTENSION]: {} } },
		);
		const state = scratch();
		const first = new ProxyProcess([target.url], { state });
		const taskId = await startTask(first, 'build');
		await first.kill();
		isLost = true;
		const second = new ProxyProcess([target.url], { state });
		expect(await ended(second, taskId)).toMatchObject({
			status: 'failed',
			error: {
				message:
					'The outcome of build on the server "server" is unknown: the server does not know its task any more. It may have been done; check before you repeat it.',
			},
		});
	});

	it('does not find the tasks of another server', async () => {
		const one = childUpstream();
		const other = childUpstream();
		const state = scratch();
		const first = new ProxyProcess(commandOf(one), { state });
		const taskId = await startTask(first, 'hang');
		const second = new ProxyProcess(commandOf(other), { state });
		await expect(second.get(taskId)).rejects.toThrow('-32602');
	});
});

describe('F10: processes pile up when a host or the gateway is killed', () => {
	for (const [who, inHost] of [
		['the host', true],
		['the gateway', false],
	] as const)
		it(`F10: ${KILLS} times ${who} is killed in the middle of a call, and nothing survives, grandchildren included`, {
			timeout: 120_000,
		}, async () => {
			const child = childUpstream();
			const state = scratch();
			const pids: number[] = [];
			for (let kill = 0; kill < KILLS; kill++) {
				const proxy = new ProxyProcess(commandOf(child), { state, inHost });
				pids.push(
					...textOf(await resultOfCall(proxy, 'family'))
						.split(' ')
						.map(Number),
				);
				await startTask(proxy, 'hang');
				await proxy.kill();
			}
			expect(pids).toHaveLength(KILLS * 3);
			await eventually(() => pids.filter(isAlive).length === 0, 'the end of all', 15_000);
			const last = new ProxyProcess(commandOf(child), { state });
			expect(textOf(await last.call('echo'))).toBe('{}');
		});
});
