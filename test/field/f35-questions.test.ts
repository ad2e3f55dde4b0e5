/** F35: a question in the background shows only after the call timed out, and human time is charged to the tool. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { InputRequest } from '../../src/protocol/task.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { eventually, field, type HttpRig, serveHttp, text } from './harness.ts';
import { stringOf, textOf } from './wire.ts';

const HOUR_MS = 3_600_000;
const form = (message: string): { mode: 'form'; message: string; requestedSchema: JsonObject } => ({
	...{ mode: 'form', message },
	requestedSchema: { type: 'object', properties: { value: { type: 'string' } } },
});
const SAMPLING: InputRequest = {
	method: 'sampling/createMessage',
	params: { messages: [{ role: 'user', content: { type: 'text', text: 'Sum it up' } }], maxTokens: 10 },
};
const accept = (value: string): JsonObject => ({ action: 'accept', content: { value } });

interface Asking {
	readonly rig: HttpRig;
	/** What the handlers did, in order. */
	readonly log: string[];
}

async function asking(): Promise<Asking> {
	const log: string[] = [];
	const rig = await serveHttp({
		tools: (server, tasks) => {
			server.registerTool(
				'deploy',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0, estimateMs: 60_000 }, async (_args, task) => {
					task.signal.addEventListener('abort', () => log.push('signalled'));
					await task.sleep('prepare', 1_000);
					const { content } = await task.requireInput('environment', form('Where to?'));
					await task.step('deploy', () => void log.push(`deploy to ${stringOf(content?.['value'])}`));
					return text(stringOf(content?.['value']));
				}),
			);
			server.registerTool(
				'long_deploy',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
					await task.requireInput('environment', form('Where to?'));
					await task.sleep('first half', 10_000);
					task.progress({ progress: 1, total: 2, message: 'half' });
					await task.sleep('second half', 10_000);
					return text('deployed');
				}),
			);
			server.registerTool(
				'ask_three',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0 }, async (_args, task) => {
					const answers = await Promise.all([
						task.requireInput('name', form('Your name?')),
						task.requireInput('summary', SAMPLING),
						task.requireInput('colour', form('Your colour?')),
					]);
					return text(JSON.stringify(answers));
				}),
			);
		},
	});
	return { rig, log };
}

async function untilAsked(rig: HttpRig, taskId: string): Promise<void> {
	await eventually(async () => (await rig.wire.get(taskId)).status === 'input_required', 'the question');
}

async function ended(rig: HttpRig, taskId: string): Promise<string> {
	const task = await eventually(async () => {
		const seen = await rig.wire.get(taskId);
		return (seen.status === 'completed' && seen) || undefined;
	}, 'the end');
	return textOf(task.result);
}

describe('F35: a question of a task', () => {
	it('F35: asked at 1 s, it is there on the very next poll and not before', async () => {
		const { rig } = await asking();
		const taskId = await rig.wire.start('deploy');
		await eventually(() => rig.server.engine.running > 0 || undefined);
		expect((await rig.wire.get(taskId)).status).toBe('working');
		await rig.clock.advance(1_000);
		const task = await rig.wire.get(taskId);
		expect(task).toMatchObject({
			status: 'input_required',
			statusMessage: expect.stringContaining('Where to?'),
			inputRequests: { environment: { method: 'elicitation/create', params: { message: 'Where to?' } } },
		});
		expect(task).not.toHaveProperty('result');
	});

	it.each([
		['90 s', 90_000],
		['3 h', 3 * HOUR_MS],
	])('F35: a person who answers after %s is not charged to the tool', async (_name, waitMs) => {
		const { rig, log } = await asking();
		const taskId = await rig.wire.start('deploy');
		await rig.clock.advance(1_000);
		await untilAsked(rig, taskId);
		await rig.clock.advance(waitMs - 1_000);
		expect((await rig.wire.get(taskId)).status).toBe('input_required');
		// It is parked by then, and holds no slot; nobody has signalled or failed anything.
		expect(rig.server.engine.running).toBe(0);
		await rig.wire.update(taskId, { environment: accept('staging') });
		await rig.clock.advance(1_000);
		expect(await ended(rig, taskId)).toBe('staging');
		expect(log.filter((line) => line.startsWith('deploy'))).toEqual(['deploy to staging']);
	});

	it('F35: the time in which a task waited does not count in what is said to be left of it', async () => {
		const { rig } = await asking();
		const taskId = await rig.wire.start('long_deploy');
		await untilAsked(rig, taskId);
		await rig.clock.advance(3 * HOUR_MS);
		await rig.wire.update(taskId, { environment: accept('staging') });
		await eventually(() => rig.server.engine.running > 0 || undefined);
		await rig.clock.advance(10_000);
		// Half of it took 10 s, so 10 s are left.
		expect((await rig.wire.get(taskId)).statusMessage).toMatch(/half \(50%, about 1\d s left\)/);
	});

	it('F35: a cancel while the question is open takes it back at once, and the handler is signalled', async () => {
		const { rig, log } = await asking();
		const taskId = await rig.wire.start('deploy');
		await rig.clock.advance(1_000);
		await untilAsked(rig, taskId);
		const watching = rig.wire.listen([taskId]);
		await eventually(() => watching.messages.length >= 2 || undefined, 'the subscription');
		await rig.wire.cancel(taskId);
		const task = await eventually(async () => {
			const seen = await rig.wire.get(taskId);
			return (seen.status === 'cancelled' && seen) || undefined;
		});
		expect(task).not.toHaveProperty('inputRequests');
		expect(log).toEqual(['signalled']);
		const told = await eventually(() => {
			const params = field(watching.messages.at(-1), 'params');
			return field(params, 'status') === 'cancelled' && params;
		});
		expect(told).not.toHaveProperty('inputRequests');
		// The dialog may still be open somewhere: what comes from it is taken without an error, and ignored.
		await rig.wire.update(taskId, { environment: accept('production') });
		await rig.clock.advance(10_000);
		expect(await rig.wire.get(taskId)).toEqual(task);
	});

	it('F35: a cancel of a parked question ends it as well', async () => {
		const { rig } = await asking();
		const taskId = await rig.wire.start('deploy');
		await rig.clock.advance(1_000);
		await untilAsked(rig, taskId);
		await rig.clock.advance(HOUR_MS);
		expect(rig.server.engine.running).toBe(0);
		await rig.wire.cancel(taskId);
		const task = await rig.wire.get(taskId);
		expect(task.status).toBe('cancelled');
		expect(task).not.toHaveProperty('inputRequests');
	});

	it('F35: two polls and a notification show the same question under the same key, and an answered one no more', async () => {
		const { rig } = await asking();
		const taskId = await rig.wire.start('deploy');
		await rig.clock.advance(1_000);
		await untilAsked(rig, taskId);
		const first = await rig.wire.get(taskId);
		await rig.clock.advance(5_000);
		const second = await rig.connect().get(taskId);
		expect(second.inputRequests).toEqual(first.inputRequests);
		const watching = rig.wire.listen([taskId]);
		const noted = await eventually(() => field(watching.messages[1], 'params'));
		expect(field(noted, 'inputRequests')).toEqual(first.inputRequests);
		await rig.wire.update(taskId, { environment: accept('staging') });
		await eventually(async () => (await rig.wire.get(taskId)).status === 'completed');
		const later = watching.messages.slice(2).map((message) => field(message, 'params'));
		expect(later.filter((params) => field(params, 'inputRequests') !== undefined)).toEqual([]);
	});

	it('F35: of an answer that is sent twice the first counts, and both are acknowledged', async () => {
		const { rig, log } = await asking();
		const taskId = await rig.wire.start('deploy');
		await rig.clock.advance(1_000);
		await untilAsked(rig, taskId);
		const sent = ['staging', 'production'].map((value) =>
			rig.wire.update(taskId, { environment: accept(value) }),
		);
		for (const answer of await Promise.all(sent)) expect(answer).toMatchObject({ resultType: 'complete' });
		await ended(rig, taskId);
		const late = await rig.wire.update(taskId, { environment: accept('production') });
		expect(late).toMatchObject({ resultType: 'complete' });
		expect(log.filter((line) => line.startsWith('deploy'))).toHaveLength(1);
		expect((await rig.wire.get(taskId)).status).toBe('completed');
	});

	it('F35: an answer to a key that was never asked is acknowledged and changes nothing', async () => {
		const { rig } = await asking();
		const taskId = await rig.wire.start('deploy');
		await rig.clock.advance(1_000);
		await untilAsked(rig, taskId);
		const before = await rig.wire.get(taskId);
		for (const key of [
			'region',
			'Environment',
			'',
			'__proto__',
			'constructor',
			'toString',
			'x'.repeat(10_000),
		]) {
			const acknowledged = await rig.wire.update(
				taskId,
				JSON.parse(`{${JSON.stringify(key)}:{"action":"accept"}}`) as JsonObject,
			);
			expect(acknowledged).toMatchObject({ resultType: 'complete' });
		}
		expect(await rig.wire.get(taskId)).toEqual(before);
	});

	it('F35: sampling and forms are open together, and partial answers leave the rest open', async () => {
		const { rig } = await asking();
		const taskId = await rig.wire.start('ask_three');
		await eventually(async () => Object.keys((await rig.wire.get(taskId)).inputRequests ?? {}).length === 3);
		const { inputRequests } = await rig.wire.get(taskId);
		expect(inputRequests).toMatchObject({ name: { method: 'elicitation/create' }, summary: SAMPLING });
		await rig.wire.update(taskId, { name: accept('Ada') });
		const partial = await rig.wire.get(taskId);
		expect(partial.status).toBe('input_required');
		expect(Object.keys(partial.inputRequests ?? {}).sort()).toEqual(['colour', 'summary']);
		// The answered one again, together with an open one: only the open one is taken.
		const sampled = { role: 'assistant', content: { type: 'text', text: 'In short' }, model: 'm' };
		await rig.wire.update(taskId, { name: accept('Bob'), summary: sampled });
		expect(Object.keys((await rig.wire.get(taskId)).inputRequests ?? {})).toEqual(['colour']);
		await rig.wire.update(taskId, { colour: { action: 'decline' } });
		expect(JSON.parse(await ended(rig, taskId))).toEqual([accept('Ada'), sampled, { action: 'decline' }]);
	});

	it('F35: a host that declares no Tasks is asked in the call itself, and answers by calling again', async () => {
		const { rig, log } = await asking();
		const plain = rig.connect({ capabilities: { elicitation: { form: {} } } });
		const first = plain.call('deploy');
		await eventually(() => rig.server.engine.running > 0 || undefined);
		await rig.clock.advance(1_000);
		const asked = await first;
		expect(asked).toMatchObject({ resultType: 'input_required', inputRequests: { environment: {} } });
		await rig.clock.advance(3 * HOUR_MS);
		const second = plain.call(
			'deploy',
			{},
			{ inputResponses: { environment: accept('staging') }, requestState: stringOf(asked['requestState']) },
		);
		expect(textOf(await second)).toBe('staging');
		expect(log.filter((line) => line.startsWith('deploy'))).toEqual(['deploy to staging']);
	});
});
