/** What `taskFetch` leaves alone when it watches over the sessions of older servers. */
import { describe, expect, it } from 'vitest';
import { taskFetch } from '../../src/client/index.ts';

const JSON_HEADERS = { 'content-type': 'application/json' };
const INITIALIZED = { jsonrpc: '2.0', id: 0, result: { protocolVersion: '2025-11-25' } };

interface Sent {
	readonly method: string | undefined;
	readonly body: string;
	readonly session: string | null;
}

/** A fetch to a server that makes sessions `s1`, `s2`, and knows the latest only. */
function sessions(options: { readonly version?: string; readonly asStream?: boolean } = {}) {
	const sent: Sent[] = [];
	let made = 0;
	let lost = false;
	const inner = async (_url: string | URL, init: RequestInit = {}): Promise<Response> => {
		const session = new Headers(init.headers).get('mcp-session-id');
		const body = typeof init.body === 'string' ? init.body : '';
		sent.push({ method: init.method, body, session });
		if (body.includes('"initialize"')) {
			made += 1;
			lost = false;
			const version = made === 1 ? '2025-11-25' : (options.version ?? '2025-11-25');
			const answer = JSON.stringify({ ...INITIALIZED, result: { protocolVersion: version } });
			const headers = { 'mcp-session-id': `s${made}` };
			return options.asStream
				? new Response(`event: message\nid: 1\ndata: ${answer}\n\n`, {
						headers: { ...headers, 'content-type': 'text/event-stream' },
					})
				: new Response(answer, { headers: { ...headers, ...JSON_HEADERS } });
		}
		const isKnown = !lost && session === `s${made}`;
		return new Response(isKnown ? '{}' : 'gone', { status: isKnown ? 200 : 404 });
	};
	const fetch = taskFetch(inner);
	const post = (message: unknown, session?: string) =>
		fetch('http://server/mcp', {
			method: 'POST',
			headers: {
				...JSON_HEADERS,
				'mcp-protocol-version': '2025-11-25',
				...(session !== undefined && { 'mcp-session-id': session }),
			},
			body: JSON.stringify(message),
		});
	const lose = (): void => void (lost = true);
	return { fetch, post, sent, lose, begin: () => post({ jsonrpc: '2.0', id: 0, method: 'initialize' }) };
}

const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call' };

describe('taskFetch, when a session is lost', () => {
	it.each([[false], [true]])('renews it from an answer as JSON or as a stream (%s)', async (asStream) => {
		const { post, begin, lose, sent } = sessions({ asStream });
		await begin();
		lose();
		expect((await post(CALL, 's1')).status).toBe(200);
		expect(sent.map(({ session }) => session)).toEqual([null, 's1', null, 's2', 's2']);
	});

	it('does not send an answer, a cancellation or the rest of a stream to another session', async () => {
		const { fetch, post, begin, lose, sent } = sessions();
		await begin();
		lose();
		expect((await post({ jsonrpc: '2.0', id: 7, result: {} }, 's1')).status).toBe(404);
		expect((await post({ jsonrpc: '2.0', method: 'notifications/cancelled' }, 's1')).status).toBe(404);
		const headers = { 'mcp-session-id': 's1', 'last-event-id': '3' };
		expect((await fetch('http://server/mcp', { method: 'GET', headers })).status).toBe(404);
		expect(sent.filter(({ body }) => body.includes('"initialize"'))).toHaveLength(1);
	});

	it('gives the 404 to the SDK when the server now speaks another version', async () => {
		const { post, begin, lose } = sessions({ version: '2025-06-18' });
		await begin();
		lose();
		expect((await post(CALL, 's1')).status).toBe(404);
	});

	it('leaves sessions alone that it did not see begin', async () => {
		const { post, sent } = sessions();
		expect((await post(CALL, 'somebody-else')).status).toBe(404);
		expect(sent).toHaveLength(1);
	});

	it('passes on what is no message, as the forms of an authorization', async () => {
		const { fetch, sent } = sessions();
		await fetch('http://server/token', { method: 'POST', body: 'grant_type="initialize"' });
		expect(sent.map(({ body }) => body)).toEqual(['grant_type="initialize"']);
	});
});
