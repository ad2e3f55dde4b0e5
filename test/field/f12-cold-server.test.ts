/** F12: a host gives up on a server that takes long to start, and shows it as connected but empty. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileCatalogue } from '../../src/gateway/file-catalogue.ts';
import { NO_LISTS, type UpstreamLists } from '../../src/gateway/upstream-lists.ts';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import {
	childUpstream,
	gatewayOverHttp,
	gatewayOverStdio,
	memoryCatalogue,
	scratch,
	tool,
} from '../gateway/rig.ts';
import { StdioConnection } from '../support/legacy-wire.ts';
import { eventually } from './harness.ts';
import { stringOf, textOf } from './wire.ts';

const LISTS: UpstreamLists = {
	...NO_LISTS,
	tools: [tool('echo'), tool('gone')],
	capabilities: { tools: {} },
};

function namesIn(result: JsonObject): readonly string[] {
	const tools = Array.isArray(result['tools']) ? result['tools'] : [];
	return tools.filter(isJsonObject).map(({ name }) => stringOf(name));
}

async function within<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
	const beganAtMs = performance.now();
	const result = await work();
	expect(performance.now() - beganAtMs).toBeLessThan(limitMs);
	return result;
}

describe('F12: a server that is cold', () => {
	it('F12: the handshake and the lists are answered from what was kept, and the host hears what is different', async () => {
		const child = childUpstream({ startMs: 3_000 });
		const catalogue = memoryCatalogue();
		await catalogue.write('child', LISTS);
		const rig = gatewayOverStdio({ upstreams: { child }, catalogue });
		const host = await within(1_000, () => StdioConnection.open(rig));
		expect(child.log()).toEqual([]);
		const { result } = await within(1_000, () => host.request('tools/list'));
		expect(namesIn(result)).toEqual(['echo', 'gone', 'await_task', 'answer_task', 'cancel_task']);
		await eventually(() => host.notes('notifications/tools/list_changed').length > 0, 'the change');
		const after = namesIn((await within(1_000, () => host.request('tools/list'))).result);
		expect(after).toContain('hang');
		expect(after).not.toContain('gone');
	});

	it('F12: a call of it waits until it has started', async () => {
		const child = childUpstream({ startMs: 1_500 });
		const catalogue = memoryCatalogue();
		await catalogue.write('child', LISTS);
		const rig = gatewayOverStdio({ upstreams: { child }, catalogue });
		const host = await StdioConnection.open(rig);
		expect(textOf((await host.call('echo', { early: true })).result)).toBe('{"early":true}');
	});

	it('F12: one that was never seen is waited for, though not long, and does not hold up the others', async () => {
		const slow = childUpstream({ startMs: 7_000 });
		const quick = childUpstream();
		const rig = gatewayOverStdio({ upstreams: { slow, quick } });
		const host = await StdioConnection.open(rig);
		const first = namesIn((await within(6_500, () => host.request('tools/list'))).result);
		expect(first).toContain('quick_echo');
		expect(first).not.toContain('slow_echo');
		expect(textOf((await within(1_000, () => host.call('quick_echo'))).result)).toBe('{}');
		await eventually(() => host.notes('notifications/tools/list_changed').length > 0, 'the change');
		await eventually(
			async () => namesIn((await host.request('tools/list')).result).includes('slow_echo'),
			'its tools',
		);
	});

	it('F12: over HTTP discovery starts no server, and asking twice changes nothing', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child } });
		const host = rig.connect();
		for (let time = 0; time < 2; time++) {
			const reply = await within(1_000, () => host.request('server/discover'));
			expect(reply.status).toBe(200);
		}
		expect(child.log()).toEqual([]);
		// A host may also begin with a call, in a process or connection that never discovered anything.
		expect(textOf(await rig.connect().call('echo'))).toBe('{}');
	});

	it('F12: what was kept of a server that is configured anew is not used', async () => {
		const folder = join(scratch(), 'catalogue');
		const { target } = childUpstream();
		const upstream = { name: 'child', prefix: '', maxConcurrentCalls: 1, maxResultBytes: 1_024 };
		const options = { ...upstream, startTimeoutMs: 1_000, tools: {}, folds: [], target };
		await fileCatalogue(folder, [options]).write('child', LISTS);
		expect(await fileCatalogue(folder, [options]).read('child')).toEqual(LISTS);
		if (target.kind !== 'command') throw new Error('a child is a command');
		const other = { ...options, target: { ...target, args: ['other.js'] } };
		expect(await fileCatalogue(folder, [other]).read('child')).toBeUndefined();
	});
});
