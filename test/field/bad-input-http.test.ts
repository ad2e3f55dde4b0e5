/** Bad input over HTTP: a clear JSON-RPC error, the process alive, nothing stored, nothing told of the inside. */
import { connect } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/protocol/json.ts';
import { AGAINST_SCHEMA, badCases, deepArray, deepObject, INTERNALS } from './bad-input-cases.ts';
import { badInputTools } from './bad-input-tools.ts';
import { eventually, type HttpRig, type RigOptions, serveHttp } from './harness.ts';
import { envelope, headerValue, type Reply, textOf } from './wire.ts';

const LEVELS = 100_000;
const CALL = { 'mcp-method': 'tools/call', 'mcp-name': 'echo' };

let entered = 0;
let rig: HttpRig;
let waitingId = '';
let before = '';

const options: RigOptions = {
	tools: badInputTools(() => (entered += 1)),
};

/** Everything that is stored. */
async function store(): Promise<string> {
	return JSON.stringify(await rig.records());
}

async function expectUntouched(): Promise<void> {
	expect(await store()).toBe(before);
	expect(entered).toBe(0);
	const alive = await rig.wire.get(waitingId);
	expect(alive.status).toBe('input_required');
}

function expectClear(reply: Reply, codes: readonly number[], name: string): void {
	expect(reply.text, name).not.toMatch(INTERNALS);
	expect(reply.message['jsonrpc'], `${name}: ${reply.text.slice(0, 200)}`).toBe('2.0');
	expect(reply.message['error'], `${name}: ${reply.text.slice(0, 200)}`).toMatchObject({
		message: expect.stringMatching(/\w/),
	});
	expect(codes, `${name}: ${reply.text.slice(0, 200)}`).toContain(
		(reply.message['error'] as { code: number }).code,
	);
}

function rawCall(paramsText: string, tool = 'loose'): ReturnType<HttpRig['wire']['raw']> {
	return rig.wire.raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${paramsText}}`, {
		...{ 'mcp-method': 'tools/call', 'mcp-name': tool },
	});
}

beforeEach(async () => {
	entered = 0;
	rig = await serveHttp(options);
	waitingId = await rig.wire.start('ask');
	await eventually(async () => (await rig.wire.get(waitingId)).status === 'input_required');
	before = await store();
});

describe('bad input over HTTP', () => {
	it('answers wrong types, unknown names and bad keys each with a clear error, and stores nothing', async () => {
		const failures: string[] = [];
		for (const { name, method, params, codes } of badCases(waitingId)) {
			const reply = await rig.wire.send(method, params).reply;
			try {
				expectClear(reply, codes, name);
			} catch (error) {
				failures.push(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
			}
		}
		expect(failures).toEqual([]);
		await expectUntouched();
	});

	it('answers arguments against the schema with what is wrong, and makes no task of them', async () => {
		for (const args of AGAINST_SCHEMA) {
			const reply = await rig.wire.beginCall('echo', args).reply;
			const name = JSON.stringify(args);
			expect(reply.text, name).not.toMatch(INTERNALS);
			expect(reply.message['result'] ?? reply.message['error'], name).toBeDefined();
			expect(reply.message['result'] ?? { isError: true }, name).toMatchObject({ isError: true });
			expect(reply.text, name).not.toContain('"resultType":"task"');
		}
		await expectUntouched();
	});

	it('takes fields that it does not know for what they are: nothing', async () => {
		const unknown: JsonObject = { surprise: { deep: [1, 2, 3] }, task: { ttl: 1 } };
		const reply = await rig.wire.send('tasks/get', {
			taskId: waitingId,
			_meta: { ...envelope(), ...unknown },
			...unknown,
		}).reply;
		expect(reply.message['result']).toMatchObject({ taskId: waitingId, status: 'input_required' });
		expect(reply.text).not.toContain('surprise');
		await expectUntouched();
	});

	it.each([
		['nothing', ''],
		['no JSON', '{"jsonrpc":'],
		['a BOM and a brace', '\ufeff{'],
		['NUL bytes', '\0\0\0\0'],
		['bytes that are no UTF-8', Buffer.from([0xff, 0xfe, 0x7b, 0x7d])],
		['a string', '"tools/call"'],
		['null', 'null'],
		['an empty array', '[]'],
		[
			'a batch',
			`[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`,
		],
		['an object without jsonrpc', '{"id":1,"method":"tools/list"}'],
		['jsonrpc 1.0', '{"jsonrpc":"1.0","id":1,"method":"tools/list"}'],
		['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"tools/list"}'],
		['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"tools/list"}'],
		['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":7}'],
		['params that are an array', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}'],
		['params that are a string', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}'],
		['100,000 opening brackets', '['.repeat(LEVELS)],
	])('answers a body that is %s with a JSON-RPC error', async (name, body) => {
		for (const headers of [
			{ 'mcp-method': 'tools/list' },
			CALL,
			{ 'mcp-method': 'tasks/get', 'mcp-name': waitingId },
		]) {
			const reply = await rig.wire.raw(body, headers).reply;
			expect(reply.status, `${name}: ${reply.text}`).toBeGreaterThanOrEqual(400);
			expect(reply.status, `${name}: ${reply.text}`).toBeLessThan(500);
			expectClear(reply, [-32700, -32600, -32602, -32020, -32000, -32601, -32022], name);
		}
		await expectUntouched();
	});

	it.each([
		'text/plain',
		'application/x-www-form-urlencoded',
		'multipart/form-data',
		'application/jsonx',
		'',
		undefined,
	])('refuses the content type %j', async (contentType) => {
		const body = JSON.stringify({
			jsonrpc: '2.0',
			id: 1,
			method: 'tasks/get',
			params: { taskId: waitingId, _meta: envelope() },
		});
		const reply = await rig.wire.raw(body, {
			'content-type': contentType,
			'mcp-method': 'tasks/get',
			'mcp-name': waitingId,
		}).reply;
		expect(reply.status).toBe(415);
		expectClear(reply, [-32000, -32600, -32700], String(contentType));
		await expectUntouched();
	});

	it.each(['tools/call', 'tasks/get', 'tasks/update'])(
		'refuses a body of 64 MB for %s before it has read it all',
		async (method) => {
			const startedAtMs = performance.now();
			const heapBefore = process.memoryUsage().rss;
			const filler = Buffer.alloc(64 * 1024 * 1024, 'x');
			const reply = await rig.wire
				.raw(filler, { 'mcp-method': method, 'mcp-name': 'echo' })
				.reply.catch((error: unknown) => error);
			// A server may answer 413 or, while the client still sends, close: it must not take it in.
			if (reply instanceof Error) expect(reply.message).toMatch(/ECONNRESET|EPIPE|hang up/);
			else {
				expect((reply as Reply).status).toBe(413);
				expectClear(reply as Reply, [-32000, -32600], method);
			}
			expect(performance.now() - startedAtMs).toBeLessThan(5_000);
			expect(process.memoryUsage().rss - heapBefore).toBeLessThan(400 * 1024 * 1024);
			await expectUntouched();
		},
	);

	it('tells of a body that is announced as 64 MB that it is too large, without waiting for it', async () => {
		const { port } = new URL(rig.url);
		const socket = connect(Number(port), '127.0.0.1');
		let answer = '';
		socket.on('error', () => {});
		socket.on('data', (chunk: Buffer) => {
			answer += String(chunk);
		});
		socket.write(
			`POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tasks/get\r\nmcp-name: a\r\naccept: application/json, text/event-stream\r\ncontent-length: ${64 * 1024 * 1024}\r\n\r\n`,
		);
		const part = Buffer.alloc(1024 * 1024, 'x');
		for (let sent = 0; sent < 8; sent++) socket.write(part);
		await eventually(() => answer !== '' || undefined, 'the answer', 5_000);
		socket.destroy();
		expect(answer).toMatch(/^HTTP\/1\.1 413/);
		await expectUntouched();
	});

	it.each([
		['objects', deepObject(LEVELS)],
		['arrays', deepArray(LEVELS)],
	])('answers arguments of 100,000 nested %s with a clear error', async (name, deep) => {
		const meta = JSON.stringify(envelope());
		const reply = await rawCall(`{"name":"loose","arguments":{"deep":${deep}},"_meta":${meta}}`).reply;
		expectClear(reply, [-32602, -32600, -32700], name);
		await expectUntouched();
	});

	async function sendBrackets(method: string): Promise<void> {
		const reply = await rig.wire.raw(deepArray(LEVELS), { 'mcp-method': method, 'mcp-name': 'echo' }).reply;
		await expectUntouched();
		expect(reply.status, reply.text).toBe(400);
		expectClear(reply, [-32700, -32600, -32020], method);
	}

	it.each(['tools/list', 'tools/call', 'subscriptions/listen'])(
		'answers a body of 100,000 brackets for %s with a clear error',
		sendBrackets,
	);

	it('answers a body of 100,000 brackets for tasks/get with a clear error', () => sendBrackets('tasks/get'));

	it('does as if 100,000 levels in a field that it does not know were not there', async () => {
		const deep = deepObject(LEVELS);
		const meta = JSON.stringify(envelope()).slice(0, -1);
		const headers = { 'mcp-method': 'tasks/get', 'mcp-name': waitingId };
		for (const rest of [`,"x":${deep}}}}`, `},"x":${deep}}}`, `}},"x":${deep}}`]) {
			const body = `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"${waitingId}","_meta":${meta}${rest}`;
			const reply = await rig.wire.raw(body, headers).reply;
			expect(reply.text).not.toMatch(INTERNALS);
			expect(reply.message['result'] ?? reply.message['error'], reply.text).toBeDefined();
		}
		await expectUntouched();
	});

	it('answers an answer of 100,000 levels with a clear error', async () => {
		const meta = JSON.stringify(envelope());
		const body = `{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"${waitingId}","inputResponses":{"go":${deepObject(LEVELS)}},"_meta":${meta}}}`;
		const reply = await rig.wire.raw(body, { 'mcp-method': 'tasks/update', 'mcp-name': waitingId }).reply;
		await expectUntouched();
		expectClear(reply, [-32602, -32600], 'a deep answer');
	});

	it.each(['abc', 5, null, {}])(
		'answers a subscription to taskIds that are %j with an error',
		async (taskIds) => {
			const { reply } = rig.wire.send('subscriptions/listen', {
				notifications: { taskIds },
				_meta: envelope(),
			});
			expectClear(await reply, [-32602], JSON.stringify(taskIds));
		},
	);

	it('lets no argument reach a prototype', async () => {
		for (const name of ['echo', 'loose']) {
			const args = JSON.parse('{"text":"a","__proto__":{"polluted":true}}') as JsonObject;
			await rig.wire.beginCall(name, args).reply;
		}
		expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
	});

	it('keeps NUL and lone surrogates in arguments and answers as they are', async () => {
		const crooked = 'a\0b \ud800 c \udfff \u2028 é';
		const taskId = await rig.wire.start('echo', { text: crooked });
		await eventually(async () => (await rig.wire.get(taskId)).status === 'completed');
		expect(textOf((await rig.wire.get(taskId)).result)).toBe(crooked);
		await rig.wire.update(waitingId, { go: { action: 'accept', content: { value: crooked } } });
		await eventually(async () => (await rig.wire.get(waitingId)).status === 'completed');
	});

	it('takes an idempotency key with NUL and lone surrogates for that key and no other', async () => {
		const ids = new Set<string>();
		for (const key of ['a\0b', 'a\0c', '\ud800', '\udfff', '\ufffd'])
			ids.add(await rig.wire.start('echo', { text: key }, { key }));
		expect(ids.size).toBe(5);
	});

	it('answers headers that say something else than the body with -32020', async () => {
		const body = (method: string): string =>
			JSON.stringify({
				jsonrpc: '2.0',
				id: 1,
				method,
				params: { taskId: waitingId, name: 'echo', _meta: envelope() },
			});
		for (const [name, headers] of [
			['another task', { 'mcp-method': 'tasks/get', 'mcp-name': 'other' }],
			['another method', { 'mcp-method': 'tasks/cancel', 'mcp-name': waitingId }],
			['a lone surrogate', { 'mcp-method': 'tasks/get', 'mcp-name': headerValue('\ud800') }],
			['no name', { 'mcp-method': 'tasks/get' }],
			['no method', { 'mcp-name': waitingId }],
		] as const) {
			const reply = await rig.wire.raw(body('tasks/get'), headers).reply;
			expect(reply.status, name).toBe(400);
			expectClear(reply, [-32020], name);
		}
		await expectUntouched();
	});

	it('answers other HTTP methods, paths and versions with a clear error', async () => {
		for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD']) {
			const response = await fetch(rig.url, { method });
			expect(response.status, method).toBeGreaterThanOrEqual(400);
			expect(response.status, method).toBeLessThan(500);
			expect(await response.text(), method).not.toMatch(INTERNALS);
		}
		const elsewhere = await fetch(rig.url.replace('/mcp', '/../../etc/passwd'), { method: 'POST' });
		expect(elsewhere.status).toBe(404);
		const version = await rig.wire.raw('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {
			'mcp-protocol-version': '1999-01-01',
		}).reply;
		expectClear(version, [-32022, -32020, -32000, -32602], 'an old version');
		await expectUntouched();
	});

	it('survives a client that sends half a request and goes away', async () => {
		const { port } = new URL(rig.url);
		for (const half of [
			'POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{"json',
			'POST /m',
			'\0\0\0\0\r\n\r\n',
		]) {
			const socket = connect(Number(port), '127.0.0.1');
			socket.on('error', () => {});
			await new Promise<void>((resolve) => socket.write(half, () => resolve()));
			socket.destroy();
		}
		await expectUntouched();
	});
});
