import { afterEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/protocol/json.ts';
import { type Fixture, ROUTES } from '../support/fixture-server.ts';
import { eventually, type Wire } from '../support/wire.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

async function begin(wire: Wire, name: string, args: JsonObject = {}): Promise<string> {
	const made = await wire.request('tools/call', { name, arguments: args });
	expect(made.result?.['resultType']).toBe('task');
	return made.result?.['taskId'] as string;
}

function inStatus(wire: Wire, taskId: string, status: string): Promise<JsonObject> {
	return eventually(async () => {
		const { result } = await wire.request('tasks/get', { taskId });
		expect(result?.['status']).toBe(status);
		return result ?? {};
	});
}

describe.each(ROUTES)('tasks/get through %s', (_name, open) => {
	// FAULT: what the engine makes of a thrown error has no resultType.
	test('T21: a result that came from a thrown error is whole', async () => {
		fixture = await open();
		const task = await inStatus(fixture.wire, await begin(fixture.wire, 'throwing'), 'completed');
		expect(task['result']).toEqual({
			resultType: 'complete',
			content: [{ type: 'text', text: 'no such branch' }],
			isError: true,
		});
	});
});
