import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rpc, scratch, serve, startTask, tasksJson, until, untilStatus } from './harness.ts';

const linesOf = (file: string): string[] =>
	existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean) : [];

describe('a signal', () => {
	it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
		'%s lets running tools end, then exits with 0',
		async (signal) => {
			const db = join(scratch(), 'tasks.db');
			const { cli, url } = await serve(db);
			const taskId = await startTask(url, 'count', { steps: 1, stepMs: 600 });
			cli.signal(signal);
			expect(await cli.ended()).toBe(0);
			expect(cli.stderr).toMatch(new RegExp(`stopping reason=${signal} running=1`));
			expect(await tasksJson(db, 'show', taskId)).toMatchObject({ status: 'completed' });
		},
	);

	it('hands back what does not end within the limit, to be gone on with', async () => {
		const folder = scratch();
		const db = join(folder, 'tasks.db');
		const JOURNAL = join(folder, 'journal');
		const { cli, url } = await serve(db, { args: ['--drain-ms', '100'], env: { JOURNAL } });
		const taskId = await startTask(url, 'count', { steps: 4, stepMs: 500 });
		await until('a finished step', () => linesOf(JOURNAL).length > 0 || undefined);
		cli.signal('SIGTERM');
		expect(await cli.ended()).toBe(0);
		expect(await tasksJson(db, 'show', taskId)).toMatchObject({ status: 'working', lease: null });
		const again = await serve(db, { env: { JOURNAL } });
		await untilStatus(again.url, taskId, 'completed');
		expect(linesOf(JOURNAL)).toEqual(['step-1', 'step-2', 'step-3', 'step-4']);
	});

	it('another time exits at once, half a second after the first', async () => {
		const { cli, url } = await serve(join(scratch(), 'tasks.db'), { args: ['--drain-ms', '60000'] });
		await startTask(url, 'count', { steps: 1, stepMs: 60_000 });
		cli.signal('SIGTERM');
		await cli.said(/stopping/);
		const impatient = setInterval(() => cli.signal('SIGTERM'), 50);
		expect(await cli.ended().finally(() => clearInterval(impatient))).toBe(143);
	});

	it('that comes as two in quick succession, as hosts send it, still ends in order', async () => {
		const db = join(scratch(), 'tasks.db');
		const { cli, url } = await serve(db);
		const taskId = await startTask(url, 'count', { steps: 1, stepMs: 600 });
		cli.signal('SIGINT');
		cli.signal('SIGTERM');
		expect(await cli.ended()).toBe(0);
		expect(await tasksJson(db, 'show', taskId)).toMatchObject({ status: 'completed' });
	});
});

it('kill -9 costs no finished step: the next process goes on with the same task', async () => {
	const folder = scratch();
	const db = join(folder, 'tasks.db');
	const JOURNAL = join(folder, 'journal');
	const { cli, url } = await serve(db, { env: { JOURNAL } });
	const taskId = await startTask(url, 'count', { steps: 4, stepMs: 300 });
	await until('two finished steps', () => linesOf(JOURNAL).length >= 2 || undefined);
	cli.signal('SIGKILL');
	expect(await cli.ended()).toBe('SIGKILL');
	const again = await serve(db, { env: { JOURNAL } });
	expect(await rpc(again.url, 'tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' });
	await untilStatus(again.url, taskId, 'completed');
	const lines = linesOf(JOURNAL);
	// The step in which it was killed may have left its line without having been recorded.
	expect([...new Set(lines)]).toEqual(['step-1', 'step-2', 'step-3', 'step-4']);
	expect(lines.length).toBeLessThanOrEqual(5);
	expect(lines.filter((line) => line === 'step-1')).toHaveLength(1);
});
