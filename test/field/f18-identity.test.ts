/** F18: "task not found" after a restart, because the key of a task contained the transport session. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { HttpSession } from '../support/legacy-wire.ts';
import { SUBJECT_TOKENS } from './auth.ts';
import { eventually, type RigOptions, serveHttp, serveStdio, text } from './harness.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-f18-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function options(name: string): RigOptions {
	return {
		backend: (clock) => sqlite({ file: join(folder, `${name}.db`), time: clock }),
		tools: (server, tasks) => {
			server.registerTool(
				'report',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0, onCrash: 'resume' }, async (_args, task) => {
					await task.sleep('collect', 60_000);
					return text('collected');
				}),
			);
		},
	};
}

const UNKNOWN = 'a'.repeat(40);

describe('F18: a task belongs to a principal, not to a session', () => {
	it('F18: after a restart the same principal finds, reads and cancels it from another session', async () => {
		const first = await serveHttp({ ...options('same'), http: { auth: SUBJECT_TOKENS } });
		const sessionA = first.connect({ token: 'ada' });
		const taskId = await sessionA.start('report');
		const cancelledId = await sessionA.start('report');
		await first.stop();
		const second = await serveHttp({
			...options('same'),
			clock: first.clock,
			http: { auth: SUBJECT_TOKENS },
		});
		const sessionB = second.connect({ token: 'ada' });
		expect(await sessionB.get(taskId)).toMatchObject({ taskId, status: 'working' });
		await sessionB.cancel(cancelledId);
		await eventually(async () => (await sessionB.get(cancelledId)).status === 'cancelled', 'the cancel');
		await second.clock.advance(60_000);
		await eventually(async () => (await sessionB.get(taskId)).status === 'completed', 'the end');
		expect(await sessionB.get(taskId)).toMatchObject({ result: text('collected') });
	});

	it('F18: the same holds for sessions of 2025-11-25, in which a task of either version is found', async () => {
		const first = await serveHttp({ ...options('legacy'), http: { auth: SUBJECT_TOKENS } });
		const before = await HttpSession.open(first.url, { token: 'ada' });
		const { taskId } = await before.start('report');
		const newerId = await first.connect({ token: 'ada' }).start('report');
		await first.stop();
		const second = await serveHttp({
			...options('legacy'),
			clock: first.clock,
			http: { auth: SUBJECT_TOKENS },
		});
		const ada = await HttpSession.open(second.url, { token: 'ada' });
		const bob = await HttpSession.open(second.url, { token: 'bob' });
		for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
			expect((await bob.request(method, { taskId })).error, method).toEqual(
				(await bob.request(method, { taskId: UNKNOWN })).error,
			);
		expect(await ada.get(taskId)).toMatchObject({ taskId, status: 'working' });
		expect((await ada.request('tasks/list')).result).toMatchObject({
			tasks: [{ taskId: newerId }, { taskId }],
		});
		expect((await ada.request('tasks/cancel', { taskId: newerId })).result).toMatchObject({
			status: 'cancelled',
		});
		const result = ada.request('tasks/result', { taskId });
		await second.clock.advance(60_000);
		expect((await result).result).toMatchObject(text('collected'));
		expect(await second.connect({ token: 'ada' }).get(taskId)).toMatchObject({ status: 'completed' });
	});

	it('F18: another principal gets the same answer as for an id that never was', async () => {
		const rig = await serveHttp({ ...options('other'), http: { auth: SUBJECT_TOKENS } });
		const taskId = await rig.connect({ token: 'ada' }).start('report');
		for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
			const params = method === 'tasks/update' ? { inputResponses: {} } : {};
			const foreign = await rig.connect({ token: 'bob' }).request(method, { taskId, ...params });
			const unknown = await rig.connect({ token: 'bob' }).request(method, { taskId: UNKNOWN, ...params });
			expect(foreign.text, method).toBe(unknown.text);
			expect(foreign.status, method).toBe(unknown.status);
			expect(foreign.message['error'], method).toMatchObject({ code: -32602 });
		}
		expect(await rig.connect({ token: 'ada' }).get(taskId)).toMatchObject({ status: 'working' });
	});

	it('F18: a server with authentication tells a caller without a valid token nothing', async () => {
		const rig = await serveHttp({ ...options('token'), http: { auth: SUBJECT_TOKENS } });
		const taskId = await rig.connect({ token: 'ada' }).start('report');
		for (const wire of [rig.connect(), rig.connect({ token: 'stolen' })]) {
			const known = await wire.request('tasks/get', { taskId });
			const unknown = await wire.request('tasks/get', { taskId: UNKNOWN });
			expect(known.status).toBe(401);
			expect(known.text).toBe(unknown.text);
			expect(known.headers['www-authenticate']).toMatch(/^Bearer/);
		}
	});

	it('F18: without authentication only the id opens it, from any session and after a restart', async () => {
		const first = await serveHttp(options('open'));
		const taskId = await first.wire.start('report');
		await first.stop();
		const second = await serveHttp({ ...options('open'), clock: first.clock });
		expect(await second.connect().get(taskId)).toMatchObject({ taskId, status: 'working' });
		await expect(second.connect().get(UNKNOWN)).rejects.toThrow('Task not found');
	});

	it('F18: over stdio the next process of the same user finds it', async () => {
		const first = serveStdio(options('stdio'));
		const created = await first.request('tools/call', { name: 'report', arguments: {} });
		const taskId = (created['result'] as { taskId: string }).taskId;
		await first.stop();
		const second = serveStdio({ ...options('stdio'), clock: first.clock });
		const found = await second.request('tasks/get', { taskId });
		expect(found['result']).toMatchObject({ taskId, status: 'working' });
		const missing = await second.request('tasks/get', { taskId: UNKNOWN });
		expect(missing['error']).toMatchObject({ code: -32602 });
	});
});
