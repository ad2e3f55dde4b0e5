/** Hosts whose connection breaks while a call of theirs is held: what is of no use to anybody any more is stopped. */
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../src/testing/index.ts';
import { TASKS_EXTENSION } from '../../src/protocol/names.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { advanceUntil, eventually } from '../field/harness.ts';
import { stringOf, textOf } from '../field/wire.ts';
import { HttpSession } from '../support/legacy-wire.ts';
import { childUpstream, complete, gatewayOverHttp, rawServer, tool } from './rig.ts';

const cancels = (child: ReturnType<typeof childUpstream>): number =>
	child.log().filter(({ method }) => method === 'notifications/cancelled').length;

describe('a host of 2026-07-28 that closes the socket of a held call', () => {
	it('has the plain call of the server cancelled, and that one only', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child }, budgets: () => null });
		const host = rig.connect({});
		const other = rig.connect({}).beginCall('hang');
		const dropped = host.beginCall('hang');
		await dropped.begun;
		await eventually(() => child.calls('hang') === 2, 'both calls');
		dropped.cut();
		await eventually(() => cancels(child) === 1, 'the cancel');
		await host.call('release');
		expect(textOf((await other.reply).message['result'])).toBe('{}');
		expect(cancels(child)).toBe(1);
	});

	it('finds the call going on that it made with a key', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child }, budgets: () => null });
		const host = rig.connect({});
		const dropped = host.beginCall('hang', {}, { key: 'k' });
		await dropped.begun;
		await eventually(() => child.calls('hang') === 1, 'the call');
		dropped.cut();
		const again = host.beginCall('hang', {}, { key: 'k' });
		await again.begun;
		await host.call('release');
		expect(textOf((await again.reply).message['result'])).toBe('{}');
		expect(child.calls('hang')).toBe(1);
		expect(cancels(child)).toBe(0);
	});

	it('leaves a task of the server alone', async () => {
		let status = 'working';
		const now = new Date().toISOString();
		const task = (): JsonObject => ({
			...{ taskId: '1', status, createdAt: now, lastUpdatedAt: now, ttlMs: 600_000, pollIntervalMs: 100 },
			...(status === 'completed' && { result: complete('built') }),
		});
		const server = await rawServer(
			[tool('build')],
			{
				'tools/call': ({ result }) => result({ resultType: 'task', ...task() }),
				'tasks/get': ({ result }) => result({ resultType: 'complete', ...task() }),
				'tasks/cancel': ({ result }) => result({ resultType: 'complete' }),
			},
			{ extensions: { [TASKS_EXTENSION]: {} } },
		);
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => null });
		const dropped = rig.connect({}).beginCall('build');
		await dropped.begun;
		const asked = (method: string): number =>
			server.requests.filter((request) => request.method === method).length;
		await eventually(() => asked('tasks/get') > 1, 'polls');
		dropped.cut();
		const before = asked('tasks/get');
		await eventually(() => asked('tasks/get') > before + 3, 'further polls', 10_000);
		status = 'completed';
		await eventually(async () => {
			const query = { principal: null, statuses: null, limit: 9, cursor: null };
			return (await rig.backend.store.list(query)).records[0]?.status === 'completed';
		}, 'the end of the task');
		expect(asked('tasks/cancel')).toBe(0);
	});

	it('leaves a call alone that it was given the task_id of, also while it waits for it', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child }, budgets: () => 1_200 });
		const host = rig.connect({});
		const task_id = stringOf(/task_id: (\S+)/.exec(textOf(await host.call('hang')))?.[1]);
		const waiting = host.beginCall('await_task', { task_id });
		await waiting.begun;
		waiting.cut();
		await host.call('release');
		expect(textOf(await host.call('await_task', { task_id }))).toBe('{}');
		expect(cancels(child)).toBe(0);
	});
});

describe('a host with a session whose stream breaks in the middle of a held call', () => {
	it('has a minute to come back, and then the plain call of the server is cancelled', async () => {
		const clock = new FakeClock();
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child }, budgets: () => null, clock });
		const session = await HttpSession.open(rig.url);
		const params = { name: 'hang', arguments: {} };
		const stream = await session.open({ jsonrpc: '2.0', id: 'held', method: 'tools/call', params });
		await eventually(() => child.calls('hang') === 1, 'the call');
		await clock.advance(2_000);
		stream.cut();
		await stream.ended;
		await clock.advance(50_000);
		expect(cancels(child)).toBe(0);
		await advanceUntil(clock, () => cancels(child) === 1, { withinMs: 120_000 });
	});
});
