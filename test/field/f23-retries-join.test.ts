/** F23, F07 and F08: hosts that give up on a slow call, and call again. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
	childUpstream,
	complete,
	gatewayOverHttp,
	type RawRequest,
	rawServer,
	tool,
} from '../gateway/rig.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { eventually } from './harness.ts';
import { callParams, stringOf, textOf } from './wire.ts';

/** A server whose call is answered when the test says so. */
async function slowServer(annotations?: JsonObject) {
	const held: RawRequest[] = [];
	const server = await rawServer([tool('scan', annotations)], {
		'tools/call': (request) => void held.push(request),
	});
	return { target: server.target, held };
}

function taskIdIn(result: unknown): string {
	return stringOf(/task_id: (\S+)/.exec(textOf(result))?.[1]);
}

const READ_ONLY = { readOnlyHint: true };
const WAIT_MS = 1_200;

describe('F23: a call is repeated while it runs', () => {
	it('F23: five repetitions of a read-only call join it, and all have its result', async () => {
		const server = await slowServer(READ_ONLY);
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => WAIT_MS });
		const host = rig.connect({});
		const ids = new Set<string>();
		for (let attempt = 0; attempt < 6; attempt++)
			ids.add(taskIdIn(await host.call('scan', attempt % 2 ? { b: 1, a: 2 } : { a: 2, b: 1 })));
		expect(ids.size).toBe(1);
		expect(server.held).toHaveLength(1);
		const last = host.beginCall('scan', { a: 2, b: 1 });
		await last.begun;
		server.held[0]?.result(complete('scanned'));
		expect(textOf((await last.reply).message['result'])).toBe('scanned');
		const [taskId = ''] = ids;
		expect(textOf(await host.call('await_task', { task_id: taskId }))).toBe('scanned');
		expect(server.held).toHaveLength(1);
	});

	it('F23: with the same idempotency key any call is joined', async () => {
		const server = await slowServer();
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => WAIT_MS });
		const host = rig.connect({});
		const first = taskIdIn(await host.call('scan', {}, { key: 'k' }));
		expect(taskIdIn(await host.call('scan', {}, { key: 'k' }))).toBe(first);
		expect(server.held).toHaveLength(1);
	});

	it('F23: other arguments, and calls of which nobody says that they are safe, are calls of their own', async () => {
		const reading = await slowServer(READ_ONLY);
		const writing = await slowServer();
		const rig = await gatewayOverHttp({ upstreams: { reading, writing }, budgets: () => WAIT_MS });
		const host = rig.connect({});
		await Promise.all([host.call('reading_scan', { a: 1 }), host.call('reading_scan', { a: 2 })]);
		expect(reading.held).toHaveLength(2);
		await Promise.all([host.call('writing_scan'), host.call('writing_scan')]);
		expect(writing.held).toHaveLength(2);
	});

	it('F23: the operator may say that a call is safe', async () => {
		const server = await slowServer();
		const rig = await gatewayOverHttp({
			upstreams: { server: { ...server, tools: { scan: { idempotent: true } } } },
			budgets: () => WAIT_MS,
		});
		const host = rig.connect({});
		const first = taskIdIn(await host.call('scan'));
		expect(taskIdIn(await host.call('scan'))).toBe(first);
		expect(server.held).toHaveLength(1);
	});

	it('F23: one that was answered is run anew when it is called again', async () => {
		const server = await slowServer(READ_ONLY);
		const rig = await gatewayOverHttp({ upstreams: { server } });
		const host = rig.connect({});
		for (const round of [1, 2]) {
			const call = host.call('scan');
			const request = await eventually(() => server.held[round - 1], 'the call');
			request.result(complete(`round ${round}`));
			expect(textOf(await call)).toBe(`round ${round}`);
		}
	});
});

describe('F07: a host cuts a call at its own ceiling, though progress comes all the time', () => {
	it('F07: the run goes on, and the host that calls again gets its result without a second run', async () => {
		const server = await slowServer(READ_ONLY);
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => null });
		const host = rig.connect({});
		const cut = host.beginCall('scan', {}, { progressToken: 0 });
		const request = await eventually(() => server.held[0], 'the call');
		const stream = request.stream();
		await cut.begun;
		const progressToken = (request.params['_meta'] as JsonObject)['progressToken'] ?? null;
		stream.message({
			method: 'notifications/progress',
			params: { progressToken, progress: 1, message: 'row 1' },
		});
		await eventually(
			() => cut.messages.some((message) => JSON.stringify(message).includes('row 1')),
			'progress',
		);
		cut.cut();
		const again = host.beginCall('scan');
		await again.begun;
		stream.message({ id: request.id, result: complete('all rows') });
		stream.end();
		expect(textOf((await again.reply).message['result'])).toBe('all rows');
		expect(server.held).toHaveLength(1);
	});

	it('F07: of a call that is not safe to repeat the model got a handle before the ceiling', async () => {
		const server = await slowServer();
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => WAIT_MS });
		const host = rig.connect({});
		const taskId = taskIdIn(await host.call('scan'));
		server.held[0]?.result(complete('all rows'));
		expect(textOf(await host.call('await_task', { task_id: taskId }))).toBe('all rows');
		expect(server.held).toHaveLength(1);
	});
});

describe('F08: an answer is written to a connection that is dead', () => {
	it('F08: it can still be had, by the same call with its key', async () => {
		const server = await slowServer();
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => null });
		const host = rig.connect({});
		const lost = host.beginCall('scan', {}, { key: 'k8' });
		await lost.begun;
		lost.cut();
		server.held[0]?.result(complete('written in vain'));
		expect(textOf(await host.call('scan', {}, { key: 'k8' }))).toBe('written in vain');
		expect(server.held).toHaveLength(1);
	});
});

describe('F08: an answer is written to a connection whose other end has stopped reading', () => {
	it('F08: the call ends all the same, its slot is free, and its result can still be had', async () => {
		const server = await slowServer();
		const rig = await gatewayOverHttp({ upstreams: { server }, budgets: () => null });
		const { port } = new URL(rig.url);
		const socket = connect(Number(port), '127.0.0.1');
		onTestFinished(() => void socket.destroy());
		const body = JSON.stringify({
			...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
			params: callParams('scan', {}, {}, { key: 'half-open' }),
		});
		socket.write(
			[
				'POST /mcp HTTP/1.1',
				`Host: 127.0.0.1:${port}`,
				'Content-Type: application/json',
				'Accept: application/json, text/event-stream',
				'MCP-Protocol-Version: 2026-07-28',
				'Mcp-Method: tools/call',
				'Mcp-Name: scan',
				`Content-Length: ${Buffer.byteLength(body)}`,
				'',
				body,
			].join('\r\n'),
		);
		await once(socket, 'data');
		socket.pause();
		const request = await eventually(() => server.held[0], 'the call');
		request.result(complete('nobody reads this'));
		await eventually(() => rig.gateway.server.running === 0, 'a free slot');
		const again = await rig.connect({}).call('scan', {}, { key: 'half-open' });
		expect(textOf(again)).toBe('nobody reads this');
		expect(server.held).toHaveLength(1);
	});
});

describe('F09: slow calls of one server stand in the way of another', () => {
	it.each([3, 200])(
		'F09: with %i calls waiting for one server at its limit, twenty calls of another are not slower',
		async (waiting) => {
			const slow = childUpstream();
			const fast = childUpstream();
			const rig = await gatewayOverHttp({
				upstreams: { slow: { ...slow, maxConcurrentCalls: 1 }, fast },
				budgets: () => null,
			});
			const host = rig.connect({});
			const timed = async (): Promise<number> => {
				const times = await Promise.all(
					Array.from({ length: 20 }, async (_, number) => {
						const beganAtMs = performance.now();
						expect(textOf(await host.call('fast_echo', { number }))).toBe(JSON.stringify({ number }));
						return performance.now() - beganAtMs;
					}),
				);
				return Math.max(...times);
			};
			await timed();
			const aloneMs = await timed();
			const stuck = Array.from({ length: waiting }, (_, number) => host.beginCall('slow_hang', { number }));
			await eventually(() => rig.gateway.upstreams[0]?.limit.pendingCount === waiting - 1, 'the queue');
			expect(await timed()).toBeLessThan(aloneMs * 3 + 100);
			expect(slow.calls('hang')).toBe(1);
			for (const call of stuck) call.cut();
		},
	);

	it('F09: a call that is given up while it waits for its turn is never sent', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child: { ...child, maxConcurrentCalls: 1 } } });
		const host = rig.connect();
		const first = await host.start('hang', { number: 1 });
		const second = await host.start('hang', { number: 2 });
		await host.cancel(second);
		await eventually(async () => (await host.get(second)).status === 'cancelled', 'the end of the second');
		await host.cancel(first);
		await eventually(async () => (await host.get(first)).status === 'cancelled', 'the end of the first');
		expect(textOf(await host.call('echo'))).toBe('{}');
		expect(child.calls('hang')).toBe(1);
	});
});
