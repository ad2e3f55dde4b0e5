import { afterAll, describe, expect, it } from 'vitest';
import { redisService } from '../support/redis.ts';
import { REPORTS, run, serve, startTask, untilStatus } from './harness.ts';

const service = await redisService();

describe.skipIf(typeof service === 'string')('a store in Redis', () => {
	if (typeof service === 'string') return;
	afterAll(() => service.close());
	const { newPrefix } = service;
	const env = { HOLDFAST_STORE: service.url };

	it('is served at once, and can be looked into from anywhere', async () => {
		const prefix = ['--schema', newPrefix()];
		const { url } = await serve('unused.db', { args: prefix, env });
		const [asking, slow] = [
			await startTask(url, 'ask', { message: 'Deploy?' }),
			await startTask(url, 'count', { steps: 1, stepMs: 60_000 }),
		];
		await untilStatus(url, asking, 'input_required');
		const tasks = (...args: string[]) => run(['tasks', ...args, ...prefix], { env });
		expect((await tasks('list')).stdout).toContain(slow);
		expect((await tasks('show', asking)).stdout).toContain('Deploy?');
		expect((await tasks('answer', asking, 'approve', '--accept', '{"ok":true}')).code).toBe(0);
		expect((await tasks('cancel', slow)).code).toBe(0);
		await untilStatus(url, asking, 'completed');
		await untilStatus(url, slow, 'cancelled');
	});

	it('needs no migration', async () => {
		expect(await run(['migrate'], { env })).toMatchObject({
			code: 0,
			stdout: expect.stringMatching(/needs no migration/) as string,
		});
	});

	it.each([
		[['serve', REPORTS, '--store', 'redis://x', '--schema', 'a b'], /`prefix` is "a b"/],
		[['serve', REPORTS, '--store', 'redis://x', '--direct-url', 'redis://y'], /Redis needs one address/],
	])('%j exits with 2 and says what is wrong', async (args, words) => {
		expect(await run(args)).toMatchObject({ code: 2, stderr: expect.stringMatching(words) as string });
	});
});
