/** Servers that cannot be started or reached: who calls is told at once, and what is wrong. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { UpstreamTarget } from '../../src/gateway/upstream-options.ts';
import { errorOf, stringOf, textOf, type Wire } from '../field/wire.ts';
import { childUpstream, gatewayOverHttp, rawServer, scratch, tool } from './rig.ts';

async function complaintAbout(target: UpstreamTarget): Promise<string> {
	const rig = await gatewayOverHttp({ upstreams: { reports: { target, startTimeoutMs: 60_000 } } });
	return errorOf(await rig.connect().beginCall('build').reply).message;
}

const command = (name: string, ...args: readonly string[]): UpstreamTarget & { kind: 'command' } => ({
	kind: 'command',
	command: name,
	args,
	env: { PATH: process.env['PATH'] ?? '' },
});

describe('a call of a server that cannot be started', () => {
	it('says that there is no such command', async () => {
		expect(await complaintAbout(command('no-such-command'))).toContain(
			'"reports" is not available: "no-such-command" was not found',
		);
	});

	it('says with which code it ended', async () => {
		const message = await complaintAbout(command(process.execPath, '-e', 'process.exit(3)'));
		expect(message).toMatch(/"reports" is not available: ".+" ended with code 3/);
	});

	it('says by which signal it ended', async () => {
		const message = await complaintAbout(
			command(process.execPath, '-e', 'process.kill(process.pid, "SIGKILL")'),
		);
		expect(message).toMatch(/"reports" is not available: ".+" ended by SIGKILL/);
	});

	it('is answered where its folder is not there, with that reason', async () => {
		const cwd = join(scratch(), 'gone');
		expect(await complaintAbout({ ...command(process.execPath), cwd })).toContain(
			`there is no folder ${cwd}`,
		);
	});

	it('leaves the tools of the other servers as they are', async () => {
		const folderless = { ...command(process.execPath), cwd: join(scratch(), 'gone') };
		const { target } = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { broken: { target: folderless }, child: { target } } });
		const { message } = await rig.connect().request('tools/list');
		expect(JSON.stringify(message['result'])).toContain('"child_echo"');
	});
});

describe('a call of a server that cannot be reached', () => {
	it('says that nobody listens there', async () => {
		const server = await rawServer([], {});
		await server.stop();
		expect(await complaintAbout(server.target)).toMatch(/"reports" is not available: connect ECONNREFUSED/);
	});
});

describe('a call whose server dies', () => {
	it('is told once, in whole sentences, that its outcome is unknown', async () => {
		const rig = await gatewayOverHttp({ upstreams: { child: { target: childUpstream().target } } });
		expect(errorOf(await rig.connect().beginCall('die').reply).message).toBe(
			'The outcome of die on the server "child" is unknown: the connection broke while it ran. It may have been done; check before you repeat it.',
		);
	});
});

describe('with one server that cannot be reached', () => {
	async function besideAnUnreachableOne(): Promise<Wire> {
		const gone = await rawServer([], {});
		await gone.stop();
		const upstreams = { gone: { target: gone.target }, child: { target: childUpstream().target } };
		const rig = await gatewayOverHttp({ upstreams, budgets: () => 1_200 });
		return rig.connect({});
	}

	it('a handed over call of another one is waited for, and stopped', async () => {
		const host = await besideAnUnreachableOne();
		const task_id = stringOf(/task_id: (\S+)/.exec(textOf(await host.call('child_hang')))?.[1]);
		expect(textOf(await host.call('await_task', { task_id }))).toContain(task_id);
		expect(textOf(await host.call('cancel_task', { task_id }))).toBe('The tool call is being stopped.');
	});

	it('a tool that no server has is unknown where its name is not one of that server', async () => {
		const host = await besideAnUnreachableOne();
		expect(errorOf(await host.beginCall('child_nothing').reply).message).toBe('Unknown tool: child_nothing');
		expect(errorOf(await host.beginCall('gone_build').reply).message).toContain('"gone" is not available');
	});
});

describe("a server with a tool that is called like one of the gateway's own", () => {
	it("hides nothing of the gateway's, and the operator is told", async () => {
		const server = await rawServer([tool('await_task'), tool('build')], {});
		const rig = await gatewayOverHttp({ upstreams: { server } });
		const { message } = await rig.connect({}).request('tools/list');
		expect(JSON.stringify(message['result']).match(/"name":"await_task"/g)).toHaveLength(1);
		expect(textOf(await rig.connect({}).call('await_task', { task_id: 'x' }))).toContain('no such task');
		expect(rig.complaints.map(({ facts }) => facts['name'])).toContain('await_task');
	});
});
