/** Where `holdfast proxy` keeps the tasks of a server. */
import { expect, it } from 'vitest';
import { scratch } from '../gateway/rig.ts';
import { run } from './harness.ts';

it('holdfast proxy keeps the tasks of each server in a file of its own, the same one each time', async () => {
	const XDG_STATE_HOME = scratch();
	const storeOf = async (url: string): Promise<string> => {
		const { stderr } = await run(['proxy', url, '--json'], { env: { XDG_STATE_HOME }, input: '' });
		return /"store":"([^"]+)"/.exec(stderr)?.[1] ?? stderr;
	};
	const urls = ['/mcp', '/mcp?team=a', '/mcp?team=b&key=a-secret', '/m/cp', '/m_cp', `/${'x'.repeat(120)}`];
	const servers = urls.map((path) => `http://127.0.0.1:1${path}`);
	const stores = new Set<string>();
	for (const server of servers) stores.add(await storeOf(server));
	expect(stores.size).toBe(servers.length);
	expect(stores).toContain(await storeOf(servers[1] ?? ''));
	expect([...stores].join()).not.toContain('a-secret');
});
