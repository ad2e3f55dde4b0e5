/** Bad input over stdio: a clear JSON-RPC error, the connection alive, nothing stored, nothing told of the inside. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/protocol/json.ts';
import { AGAINST_SCHEMA, badCases, deepArray, deepObject, INTERNALS } from './bad-input-cases.ts';
import { badInputTools } from './bad-input-tools.ts';
import { eventually, field, serveStdio, type StdioRig } from './harness.ts';
import { envelope, textOf } from './wire.ts';

const LEVELS = 100_000;

let entered = 0;
let rig: StdioRig;
let waitingId = '';
let before = '';

async function store(): Promise<string> {
	return JSON.stringify(await rig.records());
}

async function get(taskId: string): Promise<unknown> {
	return (await rig.request('tasks/get', { taskId }))['result'];
}

async function expectUntouched(): Promise<void> {
	expect(rig.isClosed()).toBe(false);
	expect(await store()).toBe(before);
	expect(entered).toBe(0);
	expect(await get(waitingId)).toMatchObject({ status: 'input_required' });
}

/** Why a message is no clear error with one of these codes; undefined when it is one. */
function unclear(message: JsonObject, codes: readonly number[]): string | undefined {
	const shown = JSON.stringify(message).slice(0, 200);
	if (INTERNALS.test(JSON.stringify(message))) return `tells of the inside: ${shown}`;
	const code = field(message['error'], 'code');
	if (typeof code !== 'number' || !codes.includes(code)) return shown;
	return undefined;
}

beforeEach(async () => {
	entered = 0;
	rig = serveStdio({
		tools: badInputTools(() => (entered += 1)),
	});
	const created = await rig.request('tools/call', { name: 'ask', arguments: {} });
	waitingId = String(field(created['result'], 'taskId'));
	await eventually(async () => field(await get(waitingId), 'status') === 'input_required');
	before = await store();
});

describe('bad input over stdio', () => {
	it('answers wrong types, unknown names and bad keys each with a clear error, and stores nothing', async () => {
		const failures: string[] = [];
		for (const { name, method, params, codes } of badCases(waitingId)) {
			const why = unclear(await rig.request(method, params), codes);
			if (why !== undefined) failures.push(`${name}: ${why}`);
		}
		expect(failures).toEqual([]);
		await expectUntouched();
	});

	it('answers arguments against the schema with what is wrong, and makes no task of them', async () => {
		for (const args of AGAINST_SCHEMA) {
			const message = await rig.request('tools/call', { name: 'echo', arguments: args });
			const shown = JSON.stringify(message);
			expect(shown).not.toMatch(INTERNALS);
			expect(shown).not.toContain('"resultType":"task"');
			expect(message['result'] ?? { isError: message['error'] !== undefined }, shown).toMatchObject({
				isError: true,
			});
		}
		await expectUntouched();
	});

	it('goes on after lines that are no JSON-RPC message', async () => {
		for (const line of [
			'',
			'   ',
			'hello',
			'{"jsonrpc":',
			'\0\0',
			'"text"',
			'null',
			'[]',
			'7',
			'{"id":1}',
			'{"jsonrpc":"1.0","id":1,"method":"x"}',
		])
			rig.write(`${line}\n`);
		rig.write(Buffer.from([0xff, 0xfe, 0x0a]));
		rig.write(`${'['.repeat(LEVELS)}\n${deepArray(LEVELS)}\n`);
		await expectUntouched();
	});

	it.each([
		['objects', deepObject(LEVELS)],
		['arrays', deepArray(LEVELS)],
	])('answers arguments of 100,000 nested %s with a clear error', async (_name, deep) => {
		const meta = JSON.stringify(envelope());
		const params = `{"name":"loose","arguments":{"deep":${deep}},"_meta":${meta}}`;
		rig.write(`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":${params}}\n`);
		const answer = await eventually(() => rig.messages.find(({ id }) => id === 99), 'the answer', 2_000);
		expect(unclear(answer, [-32602, -32600])).toBeUndefined();
		await expectUntouched();
	});

	it('keeps NUL and lone surrogates in arguments and answers as they are', async () => {
		const crooked = 'a\0b \ud800 c \udfff \u2028 é';
		const created = await rig.request('tools/call', { name: 'echo', arguments: { text: crooked } });
		const taskId = String(field(created['result'], 'taskId'));
		await eventually(async () => field(await get(taskId), 'status') === 'completed');
		expect(textOf(field(await get(taskId), 'result'))).toBe(crooked);
	});

	it('answers requests and notes out of turn without losing the connection', async () => {
		rig.notify('notifications/cancelled', { requestId: 12_345 });
		rig.notify('notifications/cancelled', {});
		rig.notify('notifications/progress', { progressToken: 'nobody', progress: 1 });
		rig.notify('notifications/nothing', { x: 1 });
		rig.write(
			'{"jsonrpc":"2.0","id":777,"result":{}}\n{"jsonrpc":"2.0","id":778,"error":{"code":1,"message":"x"}}\n',
		);
		await expectUntouched();
	});
});
