/** One server behind the gateway over each transport that there is. */
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ChildServer, startChildServer } from '../client/child-server.ts';
import { gatewayOverHttp } from './rig.ts';

const SCRIPT = join(
	import.meta.dirname,
	'../../node_modules/@modelcontextprotocol/server-everything/dist/index.js',
);

async function everything(mode: 'sse' | 'streamableHttp'): Promise<ChildServer> {
	const server = await startChildServer(SCRIPT, [mode], 'PORT', 'on port');
	onTestFinished(() => server.kill());
	return server;
}

describe('the everything server behind the gateway', () => {
	it.each([
		['http', 'streamableHttp', '/mcp'],
		['sse', 'sse', '/sse'],
	] as const)('answers, reports progress and asks over %s', { timeout: 40_000 }, async (kind, mode, path) => {
		const server = await everything(mode);
		const target = { kind, url: new URL(path, server.url).href, headers: {} };
		const { url } = await gatewayOverHttp({ upstreams: { everything: { target } } });
		const client = new Client(
			{ name: 'host', version: '1' },
			{ versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
		);
		client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
		await client.connect(new StreamableHTTPClientTransport(new URL(url)));
		onTestFinished(() => client.close());
		const call = async (
			name: string,
			args: Record<string, unknown>,
			notes: unknown[] = [],
		): Promise<string> =>
			JSON.stringify(
				await client.callTool({ name, arguments: args }, { onprogress: (note) => notes.push(note) }),
			);
		expect(await call('echo', { message: 'hello' })).toContain('Echo: hello');
		const notes: unknown[] = [];
		expect(await call('trigger-long-running-operation', { duration: 1.5, steps: 3 }, notes)).toContain(
			'Steps: 3',
		);
		expect(notes.length).toBeGreaterThan(0);
		expect(await call('trigger-elicitation-request', {})).toContain('Ada');
	});
});
