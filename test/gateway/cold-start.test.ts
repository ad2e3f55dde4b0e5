/** A host that starts the proxy decides within a second or two which protocol version it speaks. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { textOf } from '../field/wire.ts';
import { ProxyProcess } from './process-rig.ts';
import { childUpstream, scratch } from './rig.ts';

/** What a process has computed so far, in milliseconds; Linux counts in hundredths of a second. */
function computedMs(pid: number): number {
	const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
	return (Number(fields[11]) + Number(fields[12])) * 10;
}

function commandOf({ target }: ReturnType<typeof childUpstream>): readonly string[] {
	return target.kind === 'command' ? ['--', target.command, ...target.args] : [];
}

describe('holdfast proxy, just started', () => {
	it.runIf(process.platform === 'linux')(
		'answers server/discover after less than half a second of work, and starts no server for it',
		async () => {
			const child = childUpstream();
			const state = scratch();
			const times: number[] = [];
			for (let start = 0; start < 3; start++) {
				const proxy = new ProxyProcess(commandOf(child), { state });
				await proxy.request('server/discover');
				times.push(computedMs(proxy.child.pid ?? 0));
				await proxy.kill();
			}
			expect(Math.min(...times)).toBeLessThan(500);
			expect(child.log()).toEqual([]);
		},
	);

	it('takes two discovers', async () => {
		const child = childUpstream();
		const proxy = new ProxyProcess(commandOf(child), { state: scratch() });
		expect(await proxy.request('server/discover')).toEqual(await proxy.request('server/discover'));
		expect(textOf(await proxy.call('echo'))).toBe('{}');
	});

	it('takes a call as its first message, from a host that discovered in another process', async () => {
		const child = childUpstream();
		const state = scratch();
		const first = new ProxyProcess(commandOf(child), { state });
		await first.request('server/discover');
		first.child.stdin?.end();
		const second = new ProxyProcess(commandOf(child), { state });
		expect(textOf(await second.call('echo', { first: true }))).toBe('{"first":true}');
	});
});
