/** F03 and F06: clocks of sockets and broken chains of progress between a host and a slow server. */
import { Agent, fetch as undiciFetch, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
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
import { textOf } from './wire.ts';

/** `fetch` with this limit ends a silent request after about a second, since undici looks once a second. */
const LIMIT_MS = 100;
/** Longer than that. */
const SILENCE_MS = 2_500;

function limitGlobalFetch(): void {
	const before = getGlobalDispatcher();
	setGlobalDispatcher(new Agent({ headersTimeout: LIMIT_MS, bodyTimeout: LIMIT_MS }));
	onTestFinished(() => setGlobalDispatcher(before));
}

const later = (work: () => void): void => {
	const timer = setTimeout(work, SILENCE_MS);
	onTestFinished(() => clearTimeout(timer));
};

describe('F03: a server over HTTP is silent for longer than a socket is patient', () => {
	it.each([
		['holds its headers back', (request: RawRequest) => later(() => request.result(complete('late')))],
		[
			'sends headers and then nothing',
			(request: RawRequest) => {
				const stream = request.stream();
				later(() => {
					stream.message({ id: request.id, result: complete('late') });
					stream.end();
				});
			},
		],
	] as const)('F03: one that %s: nothing between it and the host gives up', async (_what, answer) => {
		limitGlobalFetch();
		const { target } = await rawServer([tool('slow')], { 'tools/call': answer });
		const rig = await gatewayOverHttp({ upstreams: { slow: { target } } });
		const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call' });
		const impatient = undiciFetch(target.url, { method: 'POST', body }).then((response) => response.text());
		// It rejects before anybody waits for it.
		impatient.catch(() => {});
		const reply = await rig.connect({}).beginCall('slow').reply;
		expect(textOf(reply.message['result'])).toBe('late');
		expect(reply.headersAfterMs).toBeLessThan(1_000);
		// The silence is one that ends a request without the gateway's own settings.
		await expect(impatient).rejects.toThrow();
		expect(reply.headers['content-type']).toContain('text/event-stream');
	});

	it('F03: a host that waits is sent a byte at least every 15 s', { timeout: 60_000 }, async () => {
		const held: RawRequest[] = [];
		const { target } = await rawServer([tool('slow')], {
			'tools/call': (request) => void held.push(request),
		});
		const rig = await gatewayOverHttp({ upstreams: { slow: { target } }, budgets: () => null });
		const pending = rig.connect({}).beginCall('slow');
		await pending.begun;
		const timer = setTimeout(() => held[0]?.result(complete('late')), 16_000);
		onTestFinished(() => clearTimeout(timer));
		const reply = await pending.reply;
		expect(textOf(reply.message['result'])).toBe('late');
		expect(reply.longestSilenceMs).toBeLessThan(15_000);
	});
});

describe('F06: progress whose chain is broken at one end', () => {
	it('F06: a host without a token gets no progress, also not what the server made up, and still gets bytes', async () => {
		const held: RawRequest[] = [];
		const { target } = await rawServer([tool('slow')], {
			'tools/call': (request) => void held.push(request),
		});
		const rig = await gatewayOverHttp({ upstreams: { slow: { target } } });
		const pending = rig.connect({}).beginCall('slow');
		const request = await eventually(() => held[0], 'the call');
		const stream = request.stream();
		const params = { progressToken: 'made-up', progress: 1, message: 'for nobody' };
		stream.message({ method: 'notifications/progress', params });
		await pending.begun;
		stream.message({ id: request.id, result: complete('done') });
		stream.end();
		const reply = await pending.reply;
		expect(textOf(reply.message['result'])).toBe('done');
		expect(reply.notes).toEqual([]);
		expect(reply.text).toContain(': keepalive');
	});

	it.each([0, '', 'abc'])('F06: progress reaches the host under its own token %j', async (progressToken) => {
		const held: RawRequest[] = [];
		const { target } = await rawServer([tool('slow')], {
			'tools/call': (request) => void held.push(request),
		});
		const rig = await gatewayOverHttp({ upstreams: { slow: { target } } });
		const pending = rig.connect({}).beginCall('slow', {}, { progressToken });
		const request = await eventually(() => held[0], 'the call');
		const stream = request.stream();
		await pending.begun;
		const own = (request.params['_meta'] as JsonObject)['progressToken'] ?? null;
		const params = { progressToken: own, progress: 1, total: 2, message: 'half' };
		stream.message({ method: 'notifications/progress', params });
		await eventually(
			() => pending.messages.some((message) => JSON.stringify(message).includes('half')),
			'the note',
		);
		stream.message({ id: request.id, result: complete('done') });
		stream.end();
		const reply = await pending.reply;
		const notes = reply.notes.map(({ params: note }) => note as JsonObject);
		expect(notes.every((note) => note['progressToken'] === progressToken)).toBe(true);
		expect(notes.some((note) => note['message'] === 'half' && note['total'] === 2)).toBe(true);
	});

	it('F06: a child that makes a token up harms nothing', async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child } });
		expect(textOf(await rig.connect().call('note'))).toBe('noted');
	});
});
