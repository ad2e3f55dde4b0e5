/** F26: a server on stdio dies in the middle of a call, and its caller hangs. */
import { describe, expect, it } from 'vitest';
import { childUpstream, gatewayOverHttp } from '../gateway/rig.ts';
import { isAlive } from '../support/processes.ts';
import { eventually } from './harness.ts';
import { errorOf, textOf } from './wire.ts';

const DEATHS = [
	['die', 'is killed after it read the request'],
	['close_stdout', 'closes its stdout and lives on'],
	['exit', 'exits with 0 before it answers'],
	['half_line', 'exits in the middle of its answer'],
] as const;

describe('F26: a server on stdio dies in the middle of a call', () => {
	it.each(DEATHS)('F26: %s: one that %s fails its call within 1 s and is started again', async (how) => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child } });
		const host = rig.connect();
		const first = Number(textOf(await host.call('pid')));
		const beganAtMs = performance.now();
		const { code, message } = errorOf(await host.beginCall(how).reply);
		expect(performance.now() - beganAtMs).toBeLessThan(1_000);
		expect(code).toBe(-32603);
		expect(message).toMatch(/outcome of \w+ on the server "child" is unknown.*check before you repeat it/);
		expect(Number(textOf(await host.call('pid')))).not.toBe(first);
		expect(child.calls(how)).toBe(1);
		await eventually(() => !isAlive(first), 'the end of the first process');
	});

	it('F26: all calls that were in flight fail at once, tasks among them, and none is sent again', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child } });
		const host = rig.connect();
		const taskId = await host.start('hang');
		const plain = rig.connect({}).beginCall('hang');
		await eventually(() => child.calls('hang') === 2, 'both calls');
		await host.beginCall('die').reply;
		const task = await eventually(async () => {
			const found = await host.get(taskId);
			return found.status === 'failed' && found;
		}, 'the end of the task');
		expect(task.error).toMatchObject({ code: -32603, message: expect.stringContaining('is unknown') });
		expect(errorOf(await plain.reply).message).toContain('is unknown');
		expect(textOf(await host.call('pid'))).not.toBe('');
		expect(child.calls('hang')).toBe(2);
	});

	it('F26: one that dies whenever it is started is tried ever more seldom, and its callers are told', async () => {
		const rig = await gatewayOverHttp({
			upstreams: {
				broken: { target: { kind: 'command', command: process.execPath, args: ['-e', ''], env: {} } },
			},
		});
		const host = rig.connect();
		const messages: string[] = [];
		for (let call = 0; call < 6; call++) messages.push(errorOf(await host.beginCall('echo').reply).message);
		expect(messages.at(-1)).toMatch(/"broken" is not available: .+ The next attempt is due in \d+ s/);
	});
});
