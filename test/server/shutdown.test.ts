import { afterEach, describe, expect, it } from 'vitest';
import { type Fixture, overHttp, overStdio } from '../support/fixture-server.ts';
import { eventually } from '../support/wire.ts';

let fixture: Fixture | undefined;

afterEach(async () => {
	await fixture?.close();
	fixture = undefined;
});

describe.each([
	['HTTP', overHttp],
	['stdio', overStdio],
])('a shutdown over %s', (_name, open) => {
	it('gives the handle of a call that was in its sync window', async () => {
		fixture = await open();
		const { wire, server, control } = fixture;
		const answer = wire.request('tools/call', { name: 'window', arguments: { gate: 'w' } });
		await eventually(() => expect(control.log).toContain('window w'));
		const stopped = server.stop(3_000);
		const { result } = await answer;
		control.open('w');
		await stopped;
		expect(result).toMatchObject({ resultType: 'task', status: 'working' });
	});

	it('answers for its tasks while it drains', async () => {
		fixture = await open();
		const { wire, server, control } = fixture;
		const { result } = await wire.request('tools/call', { name: 'slow', arguments: { gate: 'a' } });
		const stopped = server.stop(3_000);
		const answer = await wire.request('tasks/get', { taskId: result?.['taskId'] ?? '' });
		control.open('a');
		await stopped;
		expect(answer.result).toMatchObject({ status: 'working' });
	});
});
