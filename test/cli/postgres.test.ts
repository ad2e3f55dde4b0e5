import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { postgresService } from '../support/postgres.ts';
import { Cli, REPORTS, rpc, run, scratch, serve, startTask, until, untilStatus } from './harness.ts';

const service = await postgresService();

describe.skipIf(typeof service === 'string')('a store that several machines share', () => {
	if (typeof service === 'string') return;
	afterAll(() => service.close());
	const { newSchema } = service;
	const env = { HOLDFAST_STORE: service.url };

	/** The `--schema` of one test, migrated. */
	async function migrated(): Promise<readonly [string, string]> {
		const schema = ['--schema', newSchema()] as const;
		expect((await run(['migrate', ...schema], { env })).code).toBe(0);
		return schema;
	}

	it('must be migrated before it is served, which is done once', async () => {
		const schema = ['--schema', newSchema()];
		const refused = await run(['serve', REPORTS, '--port', '0', ...schema], { env });
		expect(refused).toMatchObject({
			code: 1,
			stderr: expect.stringMatching(/`holdfast migrate` once/) as string,
		});
		expect((await run(['migrate', ...schema], { env })).stdout).toMatch(
			/now has store version 1; it had none/,
		);
		expect((await run(['migrate', ...schema], { env })).stdout).toMatch(/has store version 1 already/);
	});

	it.each([
		[['migrate'], /--store postgres:/],
		[['migrate', '--store', 'mysql://x/y'], /--store must be an address/],
		[['migrate', '--store', 'postgres://x/y', '--schema', 'A b'], /`schema` is "A b"/],
		[['serve', REPORTS, '--role', 'worker', '--stdio'], /--role worker serves nobody/],
		[['serve', REPORTS, '--role', 'worker', '--concurrency', '0'], /would do nothing/],
		[['serve', REPORTS, '--role', 'requests', '--concurrency', '2'], /--role requests runs no tools/],
		[['serve', REPORTS, '--role', 'boss'], /Allowed choices are all, requests, worker/],
	])('%j exits with 2 and says what is wrong', async (args, words) => {
		expect(await run(args)).toMatchObject({ code: 2, stderr: expect.stringMatching(words) as string });
	});

	it('has servers that run no tools, and workers that listen nowhere and hand back what they cannot end', async () => {
		const schema = await migrated();
		const JOURNAL = join(scratch(), 'journal');
		const steps = (): string[] =>
			existsSync(JOURNAL) ? readFileSync(JOURNAL, 'utf8').trim().split('\n') : [];
		const { url } = await serve('unused.db', { args: ['--role', 'requests', ...schema], env });
		const taskId = await startTask(url, 'count', { steps: 3, stepMs: 400 });
		expect(await rpc(url, 'tasks/get', { taskId })).toMatchObject({
			statusMessage: expect.stringMatching(/Waiting for a free worker/) as string,
		});
		const worker = (...args: string[]): Cli =>
			new Cli(['serve', REPORTS, '--role', 'worker', ...schema, ...args], { env: { ...env, JOURNAL } });
		const first = worker('--drain-ms', '0');
		await until('a finished step', () => steps().length > 0 || undefined);
		first.signal('SIGTERM');
		expect(await first.ended()).toBe(0);
		expect(first.stderr).not.toMatch(/listening/);
		expect(await rpc(url, 'tasks/get', { taskId })).toMatchObject({ status: 'working' });
		const second = worker();
		await untilStatus(url, taskId, 'completed');
		expect(steps()).toEqual(['step-1', 'step-2', 'step-3']);
		second.signal('SIGTERM');
		expect(await second.ended()).toBe(0);
	});

	it('can be looked into, and its tasks answered and cancelled, from anywhere', async () => {
		const schema = await migrated();
		const { url } = await serve('unused.db', { args: [...schema], env });
		const [asking, slow] = [
			await startTask(url, 'ask', { message: 'Deploy?' }),
			await startTask(url, 'count', { steps: 1, stepMs: 60_000 }),
		];
		await untilStatus(url, asking, 'input_required');
		const tasks = (...args: string[]) => run(['tasks', ...args, ...schema], { env });
		expect((await tasks('list')).stdout).toContain(slow);
		expect((await tasks('show', asking)).stdout).toContain('Deploy?');
		expect((await tasks('answer', asking, 'approve', '--accept', '{"ok":true}')).code).toBe(0);
		expect((await tasks('cancel', slow)).code).toBe(0);
		await untilStatus(url, asking, 'completed');
		await untilStatus(url, slow, 'cancelled');
		expect(await tasks('show', 'nothing')).toMatchObject({
			code: 1,
			stderr: expect.stringMatching(/There is no task nothing in postgres:\/\//) as string,
		});
	});
});
