/** F37: a tool answers with more than hosts, gateways or memory can bear. */
import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '../../src/protocol/json.ts';
import { childUpstream, gatewayOverHttp, type RawRequest, rawServer, tool } from '../gateway/rig.ts';
import { heapBytes } from '../support/memory.ts';
import { errorOf, textOf, type Wire } from './wire.ts';

const KB = 1_024;
const MIB = 1_048_576;

/** A call's result, at once or as a task. */
async function resultOf(host: Wire, name: string, args: JsonObject): Promise<JsonObject> {
	return host.call(name, args);
}

describe('F37: giant results', () => {
	it.each([
		['64 kB less one', 64 * KB - 1],
		['64 kB', 64 * KB],
		['1 MB', 1_000_000],
	])('F37: %s passes whole, also twice in one result', async (_name, bytes) => {
		const rig = await gatewayOverHttp({ upstreams: { child: childUpstream() } });
		const result = await resultOf(rig.connect({}), 'big', { bytes, structured: true });
		expect(textOf(result)).toHaveLength(bytes);
		expect(isJsonObject(result['structuredContent']) && result['structuredContent']['words']).toHaveLength(
			bytes,
		);
	});

	it.each([
		['10 MiB and one byte', 10 * MIB + 1],
		['50 MB', 50_000_000],
	])(
		'F37: %s is an error that says so and shows how it begins; the session lives on',
		async (_name, bytes) => {
			const rig = await gatewayOverHttp({ upstreams: { child: childUpstream() } });
			const host = rig.connect({});
			const pid = textOf(await host.call('pid'));
			const result = await resultOf(host, 'big', { bytes });
			expect(result['isError']).toBe(true);
			expect(textOf(result)).toMatch(
				/^The result of big has \d+ bytes, and the gateway passes on 10485760 at most/,
			);
			expect(textOf(result)).toContain('is cut after 16384 characters');
			expect(textOf(result).length).toBeLessThan(20_000);
			expect(textOf(await host.call('pid'))).toBe(pid);
		},
	);

	it('F37: a cut never divides a character', async () => {
		const rig = await gatewayOverHttp({
			upstreams: { child: { ...childUpstream(), maxResultBytes: 50_000 } },
		});
		// With one unit in front, the cut falls into the middle of one of these.
		const result = await resultOf(rig.connect({}), 'big', { bytes: 100_000, letter: '🐢' });
		expect(textOf(result).isWellFormed()).toBe(true);
		expect(textOf(result)).toContain('🐢'.repeat(8_000));
	});

	it('F37: an answer that is longer than any that is read fails its own call only', {
		timeout: 60_000,
	}, async () => {
		const child = childUpstream();
		const rig = await gatewayOverHttp({ upstreams: { child } });
		const host = rig.connect({});
		const pid = textOf(await host.call('pid'));
		const other = host.beginCall('hang', { number: 1 });
		const { code, message } = errorOf(await host.beginCall('big', { bytes: 70 * MIB }).reply);
		expect(code).toBe(-32603);
		expect(message).toMatch(/has \d+ bytes, and 67108864 are read at most/);
		expect(textOf(await host.call('pid'))).toBe(pid);
		await host.call('release');
		expect(textOf((await other.reply).message['result'])).toBe('{"number":1}');
	});

	it('F37: over HTTP as well', { timeout: 60_000 }, async () => {
		const huge = (request: RawRequest): void => {
			const { response, id } = request;
			response.writeHead(200, { 'content-type': 'application/json' });
			response.write(
				`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"`,
			);
			for (let written = 0; written < 70; written++) response.write('x'.repeat(MIB));
			response.end('"}]}}');
		};
		const { target } = await rawServer([tool('huge'), tool('small')], {
			'tools/call': (request) =>
				request.params['name'] === 'huge'
					? huge(request)
					: request.result({ resultType: 'complete', content: [{ type: 'text', text: 'small' }] }),
		});
		const rig = await gatewayOverHttp({ upstreams: { server: { target } } });
		const host = rig.connect({});
		expect(errorOf(await host.beginCall('huge').reply).message).toContain('more than 67108864 bytes');
		expect(textOf(await host.call('small'))).toBe('small');
	});

	it('F37: 10,000 blocks of content pass in their order', async () => {
		const content = Array.from({ length: 10_000 }, (_, number) => ({
			type: 'text',
			text: `block ${number}`,
		}));
		const { target } = await rawServer([tool('blocks')], {
			'tools/call': ({ result }) => result({ resultType: 'complete', content }),
		});
		const rig = await gatewayOverHttp({ upstreams: { server: { target } } });
		expect((await rig.connect({}).call('blocks'))['content']).toEqual(content);
	});

	it('F37: nothing of ten results of 50 MB is held afterwards', { timeout: 120_000 }, async () => {
		const rig = await gatewayOverHttp({ upstreams: { child: childUpstream() } });
		const host = rig.connect({});
		await resultOf(host, 'big', { bytes: 50_000_000 });
		const before = heapBytes();
		for (let call = 0; call < 10; call++) await resultOf(host, 'big', { bytes: 50_000_000 });
		expect(heapBytes() - before).toBeLessThan(10_000_000);
	});
});
