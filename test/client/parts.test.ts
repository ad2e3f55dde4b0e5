import { describe, expect, it } from 'vitest';
import { backoffMs, firstPollMs, nextPollMs } from '../../src/client/cadence.ts';
import { problemOf } from '../../src/client/problem.ts';
import { readReference, toReference } from '../../src/client/reference.ts';
import { ProtocolError, SdkErrorCode, SdkHttpError } from '../../src/client/sdk.ts';
import { checkClientOptions } from '../../src/client/task-client-options.ts';
import { parseRetryAfter, taskFetch } from '../../src/client/task-fetch.ts';

describe('the cadence', () => {
	it('keeps every interval of a server as a floor, and its bounds (T70)', () => {
		for (const random of [() => 0, () => 0.5, () => 0.999]) {
			expect(firstPollMs(random)).toBeLessThan(500);
			for (const intervalMs of [0, 50, 250, 1_000, 3_600_000]) {
				const waitMs = nextPollMs(intervalMs, 0, random);
				expect(waitMs).toBeGreaterThanOrEqual(Math.max(250, intervalMs));
				expect(waitMs).toBeLessThanOrEqual(Math.max(250, intervalMs) * 1.1);
			}
			expect(backoffMs(1, undefined, random)).toBeGreaterThanOrEqual(250);
			expect(backoffMs(1_000, undefined, random)).toBeLessThanOrEqual(10_000);
			expect(backoffMs(1, 60_000, random)).toBe(60_000);
		}
	});
});

describe('a failed request', () => {
	const http = (status: number, text: string) =>
		new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, 'x', { status, text });
	const rpc = (code: number) => JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message: 'x' } });

	it.each([
		[http(404, rpc(-32601)), 'refused'],
		[http(200, rpc(-32602)), 'forgotten'],
		[http(500, rpc(-32603)), 'trouble'],
		[http(404, '<html>nginx</html>'), 'outage'],
		[http(503, ''), 'outage'],
		[http(401, '{"error":"token"}'), 'outage'],
		[new ProtocolError(-32602, 'x'), 'forgotten'],
		[new ProtocolError(-32021, 'x'), 'refused'],
		[new ProtocolError(-32603, 'x'), 'trouble'],
		[new ProtocolError(-31999, 'x'), 'trouble'],
		[new TypeError('fetch failed'), 'outage'],
		['anything', 'outage'],
	] as const)('is sorted by what it says about the task: %o', (error, kind) => {
		expect(problemOf(error).kind).toBe(kind);
	});
});

describe('Retry-After', () => {
	it('is read as seconds or a date, and capped at an hour', () => {
		const nowMs = Date.UTC(2026, 6, 28);
		expect(parseRetryAfter('7', nowMs)).toBe(7_000);
		expect(parseRetryAfter('Tue, 28 Jul 2026 00:00:30 GMT', nowMs)).toBe(30_000);
		expect(parseRetryAfter('Mon, 27 Jul 2026 00:00:00 GMT', nowMs)).toBe(0);
		expect(parseRetryAfter('999999999', nowMs)).toBe(3_600_000);
		for (const header of [null, '', 'soon', '-5 s']) expect(parseRetryAfter(header, nowMs)).toBeUndefined();
	});

	it('reaches the caller in the error of the SDK; other answers pass through', async () => {
		const answers = [
			new Response('busy', { status: 429, headers: { 'retry-after': '2' } }),
			new Response('busy', { status: 429 }),
			new Response('fine'),
		];
		const fetch = taskFetch(async () => answers.shift() ?? new Response());
		await expect(fetch('http://x.test/')).rejects.toMatchObject({
			code: 'CLIENT_HTTP_NOT_IMPLEMENTED',
			data: { status: 429, text: 'busy', retryAfterMs: 2_000 },
		});
		expect((await fetch('http://x.test/')).status).toBe(429);
		expect((await fetch('http://x.test/')).status).toBe(200);
	});
});

describe('a reference', () => {
	it('is one word and comes back as it was', () => {
		const pointer = {
			...{ server: 'a "b" ü', taskId: 'å/?#\n', tool: 't', protocolVersion: '2026-07-28' },
			...{ firstSeenAtMs: 1.5, ttlMs: null },
		};
		expect(toReference(pointer)).toMatch(/^[\w:-]+$/);
		expect(readReference(toReference(pointer))).toEqual(pointer);
	});

	it('is refused when it is anything else, however long', () => {
		const bad = [
			...['[]', '{}', '["s","t","t","v","soon",null]', '["s","","t","v",1,null]', 'null'],
			'x'.repeat(1_000_000),
		];
		for (const text of bad)
			expect(() => readReference(`holdfast-task:${Buffer.from(text).toString('base64url')}`)).toThrow(
				expect.objectContaining({ code: 'INVALID_REFERENCE' }),
			);
	});
});

describe('the options', () => {
	it('are refused by name when a number is out of range', () => {
		for (const rpcTimeoutMs of [0, -1, 0.5, Number.NaN, 1e12])
			expect(() => checkClientOptions({ rpcTimeoutMs })).toThrow(/rpcTimeoutMs is .* from 100 to 600000/);
		expect(checkClientOptions({})).toMatchObject({ rpcTimeoutMs: 30_000, maxConcurrentRequests: 16 });
	});
});
