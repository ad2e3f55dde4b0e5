/** F27 and F28: a call to a server on stdio is cancelled, and the server or the gateway does not get over it. */
import { describe, expect, it } from 'vitest';
import { childUpstream, gatewayOverHttp, gatewayOverStdio } from '../gateway/rig.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { StdioConnection } from '../support/legacy-wire.ts';
import { heapBytes } from '../support/memory.ts';
import { eventually } from './harness.ts';
import { textOf } from './wire.ts';

describe('F27: one of several calls on one server on stdio is cancelled', () => {
	it('F27: the others finish, the process lives, and it is told once which call is meant', async () => {
		const child = childUpstream();
		const host = await StdioConnection.open(gatewayOverStdio({ upstreams: { child } }));
		const pid = textOf((await host.call('pid')).result);
		const calls = [1, 2, 3].map((number) =>
			host.request('tools/call', call('hang', { number }), `c${number}`),
		);
		await eventually(() => child.calls('hang') === 3, 'three calls');
		await host.notify('notifications/cancelled', { requestId: 'c2', reason: 'the user changed their mind' });
		const cancelled = await eventually(() => notes(child.log())[0], 'the note');
		const second = child.log().filter(({ name }) => name === 'hang')[1];
		expect(cancelled['requestId']).toBe(second?.['id']);
		await host.call('release');
		expect(textOf((await calls[0])?.result)).toBe('{"number":1}');
		expect(textOf((await calls[2])?.result)).toBe('{"number":3}');
		expect(notes(child.log())).toHaveLength(1);
		expect(textOf((await host.call('pid')).result)).toBe(pid);
	});

	it('F27: a task is cancelled twice, and the server is told once', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child } });
		const host = rig.connect();
		const taskId = await host.start('hang');
		await host.cancel(taskId);
		await host.cancel(taskId);
		await eventually(async () => (await host.get(taskId)).status === 'cancelled', 'the end of the task');
		await host.call('pid');
		expect(notes(child.log())).toHaveLength(1);
	});
});

describe('F28: a server stops a cancelled call and never answers it', () => {
	it('F28: the task ends at once, its slot is free, and a late answer is dropped', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child: { ...child, maxConcurrentCalls: 2 } } });
		const host = rig.connect();
		const taskId = await host.start('hang');
		await host.cancel(taskId);
		await eventually(
			async () => (await host.get(taskId)).status === 'cancelled',
			'the end of the task',
			1_000,
		);
		expect(rig.gateway.upstreams[0]?.limit.activeCount).toBe(0);
		// The child answers the cancelled call now.
		expect(textOf(await host.call('release'))).toBe('released');
		expect(textOf(await host.call('echo', { still: 'here' }))).toBe('{"still":"here"}');
		expect((await host.get(taskId)).status).toBe('cancelled');
	});

	it('F28: 10,000 calls that are cancelled and never answered leave nothing behind', {
		timeout: 120_000,
	}, async () => {
		const child = childUpstream();
		const pair = gatewayOverStdio({ upstreams: { child } });
		const host = await StdioConnection.open(pair);
		await host.call('echo');
		const round = async (first: number, count: number): Promise<void> => {
			const ids = Array.from({ length: count }, (_, index) => `h${first + index}`);
			for (const id of ids)
				await host.write({ jsonrpc: '2.0', id, method: 'tools/call', params: call('hang', {}) });
			await eventually(() => pair.gateway.server.running === count, 'the calls', 30_000);
			const upstream = pair.gateway.upstreams[0];
			await eventually(() => upstream?.limit.activeCount === count, 'the calls upstream', 30_000);
			for (const requestId of ids) await host.notify('notifications/cancelled', { requestId });
			await eventually(() => pair.gateway.server.running === 0, 'the ends', 30_000);
		};
		const batch = 50;
		for (let done = 0; done < 1_000; done += batch) await round(done, batch);
		const before = heapBytes();
		for (let done = 1_000; done < 11_000; done += batch) await round(done, batch);
		const grownBytes = heapBytes() - before;
		expect(pair.gateway.upstreams[0]?.limit.activeCount).toBe(0);
		expect(pair.gateway.upstreams[0]?.limit.pendingCount).toBe(0);
		// Less than 300 bytes a call: what is left of a call would be more.
		expect(grownBytes).toBeLessThan(3_000_000);
		expect((await host.call('echo')).error).toBeUndefined();
		await eventually(() => notes(child.log()).length === 11_000, 'the notes');
	});
});

function call(name: string, args: JsonObject): JsonObject {
	return { name, arguments: args };
}

function notes(log: readonly JsonObject[]): readonly JsonObject[] {
	return log.filter(({ method }) => method === 'notifications/cancelled');
}
