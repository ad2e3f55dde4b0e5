import { afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/protocol/json.ts';
import { type Fixture, overHttp, ROUTES } from '../support/fixture-server.ts';
import { eventually, type Wire } from '../support/wire.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

const ACK = { resultType: 'complete' };
const withoutMeta = ({ _meta, ...rest }: JsonObject): JsonObject => rest;

/** A task that has asked these questions. */
async function asked(wire: Wire, keys: readonly string[]): Promise<string> {
	const made = await wire.request('tools/call', { name: 'asking', arguments: { keys } });
	const taskId = made.result?.['taskId'] as string;
	await eventually(async () => expect(await openKeys(wire, taskId)).toHaveLength(keys.length));
	return taskId;
}

async function openKeys(wire: Wire, taskId: string): Promise<string[]> {
	const { result } = await wire.request('tasks/get', { taskId });
	return Object.keys(result?.['inputRequests'] ?? {});
}

async function answers(wire: Wire, taskId: string): Promise<unknown> {
	return eventually(async () => {
		const { result } = await wire.request('tasks/get', { taskId });
		expect(result?.['status']).toBe('completed');
		const inlined = result?.['result'] as { readonly content: readonly [{ readonly text: string }] };
		return JSON.parse(inlined.content[0].text) as unknown;
	});
}

describe.each(ROUTES)('tasks/update through %s', (_name, open) => {
	test('T30: is acknowledged with an empty complete result', async () => {
		fixture = await open();
		const taskId = await asked(fixture.wire, ['a']);
		const params = { taskId, inputResponses: { a: { action: 'accept', content: { ok: true } } } };
		const { result } = await fixture.wire.request('tasks/update', params);
		expect(withoutMeta(result ?? {})).toEqual(ACK);
		expect(await answers(fixture.wire, taskId)).toEqual([{ action: 'accept', content: { ok: true } }]);
	});

	test('T30: takes some of the answers, and the task asks on until all are in', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await asked(wire, ['a', 'b', 'c']);
		await wire.request('tasks/update', { taskId, inputResponses: { b: { action: 'decline' } } });
		const { result } = await wire.request('tasks/get', { taskId });
		expect(result?.['status']).toBe('input_required');
		expect(Object.keys(result?.['inputRequests'] ?? {})).toEqual(['a', 'c']);
		const rest = { a: { action: 'cancel' }, c: { action: 'accept' } };
		await wire.request('tasks/update', { taskId, inputResponses: rest });
		expect(await answers(wire, taskId)).toEqual([
			{ action: 'cancel' },
			{ action: 'decline' },
			{ action: 'accept' },
		]);
	});

	test('T32: ignores unknown and already answered keys, with success', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await asked(wire, ['a', 'b']);
		await wire.request('tasks/update', { taskId, inputResponses: { a: { action: 'accept' } } });
		const late = { a: { action: 'decline' }, nobody: { action: 'accept' } };
		const { result } = await wire.request('tasks/update', { taskId, inputResponses: late });
		expect(withoutMeta(result ?? {})).toEqual(ACK);
		await wire.request('tasks/update', { taskId, inputResponses: { b: { action: 'accept' } } });
		expect(await answers(wire, taskId)).toEqual([{ action: 'accept' }, { action: 'accept' }]);
		const after = await wire.request('tasks/update', { taskId, inputResponses: { a: { action: 'cancel' } } });
		expect(withoutMeta(after.result ?? {})).toEqual(ACK);
	});

	test('T33: answers -32602 for an unknown task', async () => {
		fixture = await open();
		const params = { taskId: 'nothing-of-the-kind', inputResponses: {} };
		expect((await fixture.wire.request('tasks/update', params)).error).toMatchObject({
			code: -32602,
			message: 'Task not found',
		});
	});

	test('T32: `constructor` and `toString` are keys like any other', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await asked(wire, ['constructor', 'toString']);
		const inputResponses = { constructor: { action: 'accept' }, toString: { action: 'decline' } };
		await wire.request('tasks/update', { taskId, inputResponses });
		expect(await answers(wire, taskId)).toEqual([{ action: 'accept' }, { action: 'decline' }]);
	});

	// `__proto__` and every entry with a `method` or `result` in it, and acknowledges all the same.
	const differs = open === overHttp ? test : test;

	differs(
		'T30: loses no answer that it acknowledges, whatever its key or its members are called',
		async () => {
			fixture = await open();
			const { wire } = fixture;
			const taskId = await asked(wire, ['__proto__', 'plain']);
			const inputResponses = JSON.parse(
				'{"__proto__":{"action":"accept"},"plain":{"action":"accept","method":"by hand"}}',
			) as JsonObject;
			await wire.request('tasks/update', { taskId, inputResponses });
			expect(await openKeys(wire, taskId)).toEqual([]);
		},
	);

	differs('T30: says what is wrong with responses that are none', async () => {
		fixture = await open();
		const { wire } = fixture;
		const taskId = await asked(wire, ['a']);
		for (const inputResponses of [[], 'yes', 1, null, { a: 'yes' }, { a: null }, { a: [] }]) {
			const answer = await wire.request('tasks/update', { taskId, inputResponses });
			expect(answer.error?.code).toBe(-32602);
		}
		expect(await openKeys(wire, taskId)).toEqual(['a']);
	});
});
