/** F21: a proxy drops what servers with Tasks answer, or mixes up two servers that mint the same ids. */
import { describe, expect, it } from 'vitest';
import { TASKS_EXTENSION } from '../../src/protocol/names.ts';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import {
	complete,
	gatewayOverHttp,
	type RawRequest,
	rawServer,
	type RawServer,
	tool,
} from '../gateway/rig.ts';
import { eventually } from './harness.ts';
import { errorOf, stringOf, textOf } from './wire.ts';

/** A server whose only task has the id "1", until the test ends it. */
async function countingServer(words: string) {
	let status = 'working';
	const seen: string[] = [];
	const now = new Date().toISOString();
	const task = (): JsonObject => ({
		...{ taskId: '1', status, createdAt: now, lastUpdatedAt: now, ttlMs: 600_000, pollIntervalMs: 1_000 },
		statusMessage: `${words} is at work`,
	});
	const own = (request: RawRequest, answer: () => JsonObject): void => {
		seen.push(`${request.method} ${stringOf(request.params['taskId'])}`);
		request.result({ resultType: 'complete', ...answer() });
	};
	const server: RawServer = await rawServer(
		[tool('build')],
		{
			'tools/call': ({ result }) =>
				result({ resultType: 'task', ...task(), _meta: { 'example.com/own': words } }),
			'tasks/get': (request) =>
				own(request, () => ({ ...task(), ...(status === 'completed' && { result: complete(words) }) })),
			'tasks/update': (request) => own(request, () => ({})),
			'tasks/cancel': (request) =>
				own(request, () => {
					status = 'cancelled';
					return {};
				}),
		},
		{ extensions: { [TASKS_EXTENSION]: {} } },
	);
	return {
		target: server.target,
		seen,
		end: () => {
			status = 'completed';
		},
	};
}

describe('F21: servers with Tasks behind one gateway', () => {
	it('F21: two that mint the same task id are told apart, and hosts see neither of their ids', async () => {
		const red = await countingServer('red');
		const blue = await countingServer('blue');
		const rig = await gatewayOverHttp({ upstreams: { red, blue } });
		const host = rig.connect();
		const redTask = await host.start('red_build');
		const blueTask = await host.start('blue_build');
		expect(new Set([redTask, blueTask, '1']).size).toBe(3);
		await eventually(async () => (await host.get(redTask)).statusMessage === 'red is at work', 'red words');
		await eventually(
			async () => (await host.get(blueTask)).statusMessage === 'blue is at work',
			'blue words',
		);
		await host.cancel(redTask);
		await eventually(() => red.seen.includes('tasks/cancel 1'), 'the cancel');
		blue.end();
		await eventually(async () => (await host.get(blueTask)).status === 'completed', 'the end of blue');
		const done = await host.get(blueTask);
		expect(textOf(done.result)).toBe('blue');
		expect(JSON.stringify(done)).not.toContain('"taskId":"1"');
		await eventually(async () => (await host.get(redTask)).status === 'cancelled', 'the end of red');
		expect(blue.seen.filter((request) => request.startsWith('tasks/cancel'))).toEqual([]);
	});

	it("F21: a task's handle is useless to others, and the server's own id opens nothing", async () => {
		const red = await countingServer('red');
		const rig = await gatewayOverHttp({ upstreams: { red } });
		const host = rig.connect();
		await host.start('build');
		expect(errorOf(await host.request('tasks/get', { taskId: '1' })).code).toBe(-32602);
	});

	it('F21: notifications name the handle that the host was given', async () => {
		const red = await countingServer('red');
		const rig = await gatewayOverHttp({ upstreams: { red } });
		const host = rig.connect();
		const taskId = await host.start('build');
		const stream = host.listen([taskId]);
		await stream.begun;
		red.end();
		const note = await eventually(
			() => stream.messages.find((message) => JSON.stringify(message).includes('"completed"')),
			'the notification',
		);
		expect(isJsonObject(note['params']) && note['params']['taskId']).toBe(taskId);
		stream.cut();
	});

	it('F21: an unknown kind of result is an error that says so, never an empty success', async () => {
		const { target } = await rawServer([tool('odd')], {
			'tools/call': ({ result }) => result({ resultType: 'future', hologram: 'x' }),
		});
		const rig = await gatewayOverHttp({ upstreams: { odd: { target } } });
		const error = errorOf(await rig.connect().beginCall('odd').reply);
		expect(error.message).toMatch(/future/);
	});
});
