import { readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRunning } from './process-probe.ts';
import { PipelineServer } from './pipeline-server.ts';
import { Scratch } from './scratch.ts';

const scratch = new Scratch();
let server: PipelineServer;

beforeAll(async () => {
	server = await PipelineServer.start(scratch.database, scratch.folder);
});

afterAll(async () => {
	await server.end('SIGTERM');
	scratch.remove();
});

describe.concurrent('run_pipeline', () => {
	it('runs the stages in order and reports each', async () => {
		const checkout = scratch.checkout(`
stages:
  - name: build
    run: |
      echo "built for $TARGET"
      echo build >> order
    env: { TARGET: 386 }
  - name: test
    run: echo test >> order; echo tested >&2
`);
		const { content, structuredContent, isError } = await server.result(await server.run(checkout));
		expect(isError).toBeUndefined();
		expect(content[0]?.text).toMatch(/^All 2 stages passed\.\n- build: \d/);
		expect(checkout.lines('order')).toEqual(['build', 'test']);
		expect(structuredContent?.status).toBe('passed');
		expect(structuredContent?.stages).toMatchObject([
			{ name: 'build', outcome: 'passed', exitCode: 0, signal: null },
			{ name: 'test', outcome: 'passed', exitCode: 0, signal: null },
		]);
		const logs = structuredContent?.stages.map(({ logFile }) => readFileSync(logFile ?? '', 'utf8'));
		expect(logs).toEqual(['built for 386\n', 'tested\n']);
	});

	it('says which stage runs and what it wrote last', async () => {
		const checkout = scratch.checkout(`
stages:
  - { name: first, run: 'true' }
  - name: second
    run: |
      printf 'loading 10%%\\rloading \\033[32m90%%\\033[0m\\r'
      until [ -e go ]; do sleep 0.05; done
`);
		const taskId = await server.run(checkout);
		const { statusMessage } = await server.untilTask(taskId, 'the last line', (task) =>
			task.statusMessage.includes('90%'),
		);
		expect(statusMessage).toMatch(/^Stage 2 of 2: second — loading 90% \(50%/);
		checkout.touch('go');
		expect((await server.result(taskId)).structuredContent?.status).toBe('passed');
	});

	it('runs only the stages that were asked for', async () => {
		const checkout = scratch.checkout(`
stages:
  - { name: a, run: echo a >> order }
  - { name: b, run: echo b >> order }
  - { name: c, run: echo c >> order }
`);
		await server.result(await server.run(checkout, { stages: ['c', 'a'] }));
		expect(checkout.lines('order')).toEqual(['a', 'c']);
	});

	it('holds the call of a client that does not know tasks', async () => {
		const checkout = scratch.checkout('stages: [{ name: only, run: echo done }]');
		const { content } = await server.call('run_pipeline', { checkout: checkout.folder });
		expect(content[0]?.text).toMatch(/^The stage passed\./);
	});

	it('stops at a stage that fails, names it and shows the end of its output', async () => {
		const checkout = scratch.checkout(`
stages:
  - { name: lint, run: 'true' }
  - name: test
    run: |
      echo "expected 3, got 4"
      sh -c 'exit 7'
      echo "never reached"
  - { name: deploy, run: touch deployed }
`);
		const { content, structuredContent, isError } = await server.result(await server.run(checkout));
		expect(isError).toBe(true);
		expect(content[0]?.text).toMatch(/^Stage 2 of 3: test failed after \d+\.\d s: exit code 7\./);
		expect(content[0]?.text).toMatch(/\n\nexpected 3, got 4$/);
		expect(structuredContent?.stages.map(({ outcome }) => outcome)).toEqual(['passed', 'failed', 'not_run']);
		expect(checkout.lines('deployed')).toEqual([]);
	});

	it('keeps long output on disk and shows its end, with a notice', async () => {
		const bytes = 64 * 1_048_576;
		const checkout = scratch.checkout(`
stages:
  - { name: noisy, run: 'yes "a line of output" | head -c ${bytes}; echo; echo the end; exit 1' }
`);
		const { content, structuredContent } = await server.result(await server.run(checkout));
		const [report] = structuredContent?.stages ?? [];
		expect(report?.outputBytes).toBe(bytes + '\nthe end\n'.length);
		expect(statSync(report?.logFile ?? '').size).toBe(report?.outputBytes);
		const text = content[0]?.text ?? '';
		expect(text).toContain(
			`It wrote ${report?.outputBytes} bytes, of which this is only the end; all of it is in `,
		);
		expect(text.endsWith('\nthe end')).toBe(true);
		expect(text.length).toBeLessThan(20_000);
		const peak = /VmHWM:\s+(\d+) kB/.exec(readProcStatus(server.pid))?.[1];
		if (peak !== undefined) expect(Number(peak) * 1_024).toBeLessThan(256 * 1_048_576);
	});

	it('ends a stage that takes too long, with everything it started', async () => {
		const checkout = scratch.checkout(`
stages:
  - name: hangs
    run: |
      sleep 600 & echo $! >> pids
      echo waiting
      wait
    timeoutMs: 1500
`);
		const { content, structuredContent } = await server.result(await server.run(checkout));
		expect(content[0]?.text).toContain('it took longer than its timeoutMs of 1500');
		expect(content[0]?.text).toContain('\n\nwaiting');
		expect(structuredContent?.stages[0]).toMatchObject({
			outcome: 'timed_out',
			exitCode: null,
			signal: 'SIGTERM',
		});
		expect((await checkout.pids('pids')).filter(isRunning)).toEqual([]);
	});

	it('leaves nothing behind that a finished stage started', async () => {
		const checkout = scratch.checkout(`
stages:
  - { name: forgetful, run: 'sleep 600 & echo $! >> pids' }
`);
		expect((await server.result(await server.run(checkout))).structuredContent?.status).toBe('passed');
		expect((await checkout.pids('pids')).filter(isRunning)).toEqual([]);
	});
});

describe.concurrent('a cancel', () => {
	it('ends the whole process group, also what ignores SIGTERM', async () => {
		const checkout = scratch.checkout(`
stages:
  - name: deep
    run: |
      sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 0.1; done' &
      sleep 600 & echo $! >> pids
      wait
    killGraceMs: 300
  - { name: after, run: touch after }
`);
		const taskId = await server.run(checkout);
		const pids = await checkout.pids('pids', 2);
		expect(pids.filter(isRunning)).toEqual(pids);
		await server.cancel(taskId);
		const { statusMessage } = await server.until(taskId, 'cancelled');
		expect(statusMessage).toBe('Cancelled');
		expect(pids.filter(isRunning)).toEqual([]);
		expect(checkout.lines('after')).toEqual([]);
	});

	it('gives every process of the group its time to clean up', async () => {
		const checkout = scratch.checkout(`
stages:
  - name: tidy
    run: |
      sh -c 'trap "sleep 0.5; echo cleaned >> cleaned; exit 0" TERM; echo $$ >> pids; while :; do sleep 0.1; done' &
      wait
`);
		const taskId = await server.run(checkout);
		await checkout.pids('pids');
		await server.cancel(taskId);
		await server.until(taskId, 'cancelled');
		expect(checkout.lines('cleaned')).toEqual(['cleaned']);
	});
});

describe.concurrent('a stage that needs approval', () => {
	const yaml = `
stages:
  - { name: build, run: echo build >> order }
  - { name: deploy, run: echo deploy >> order, approval: "Deploy to production?" }
  - { name: announce, run: echo announce >> order }
`;
	const NO = [
		{ action: 'decline' },
		{ action: 'cancel' },
		{ action: 'accept', content: { approve: false } },
	] as const;

	it('runs after a yes', async () => {
		const checkout = scratch.checkout(yaml);
		const taskId = await server.run(checkout);
		const { inputRequests, statusMessage } = await server.until(taskId, 'input_required');
		expect(statusMessage).toBe('Waiting for an answer: Deploy to production?');
		expect(inputRequests?.['approve deploy']?.params.message).toBe('Deploy to production?');
		expect(checkout.lines('order')).toEqual(['build']);
		await server.answer(taskId, 'approve deploy', { action: 'accept', content: { approve: true } });
		expect((await server.result(taskId)).structuredContent?.status).toBe('passed');
		expect(checkout.lines('order')).toEqual(['build', 'deploy', 'announce']);
	});

	it.each(NO)('does not run after %j', async (response) => {
		const checkout = scratch.checkout(yaml);
		const taskId = await server.run(checkout);
		await server.until(taskId, 'input_required');
		await server.answer(taskId, 'approve deploy', response);
		const { content, structuredContent, isError } = await server.result(taskId);
		expect(isError).toBeUndefined();
		expect(content[0]?.text).toMatch(/^Stopped before Stage 2 of 3: deploy\. "Deploy to production\?" was /);
		expect(structuredContent?.status).toBe('not_approved');
		expect(structuredContent?.stages.map(({ outcome }) => outcome)).toEqual([
			'passed',
			'not_approved',
			'not_run',
		]);
		expect(checkout.lines('order')).toEqual(['build']);
	});

	it('says so when the client cannot ask anybody, and keeps the reports', async () => {
		const checkout = scratch.checkout(yaml);
		const { content, structuredContent } = await server.call('run_pipeline', { checkout: checkout.folder });
		expect(content[0]?.text).toContain('"Deploy to production?" could not be asked');
		expect(structuredContent?.stages.map(({ outcome }) => outcome)).toEqual([
			'passed',
			'not_approved',
			'not_run',
		]);
	});
});

describe.concurrent('list_stages', () => {
	it('shows what would run', async () => {
		const checkout = scratch.checkout('stages: [{ name: build, run: make }, { name: test, run: make test }]');
		const { content } = await server.call('list_stages', { checkout: checkout.folder });
		expect(content[0]?.text).toBe('build: make\ntest: make test');
	});

	it('names every problem by line and key', async () => {
		const checkout = scratch.checkout(`# a comment
stages:
  - name: build it
    run: make
  - name: test
    timeoutMs: soon
    timeout: 5
  - name: test
    run: make test
`);
		const { content, isError } = await server.call('list_stages', { checkout: checkout.folder });
		expect(isError).toBe(true);
		const lines = content[0]?.text.split('\n') ?? [];
		expect(lines).toContainEqual(
			expect.stringMatching(/^pipeline\.yaml:3: stages\[0\]\.name: must consist of/),
		);
		expect(lines).toContainEqual(
			expect.stringMatching(/^pipeline\.yaml:5: stages\[1\]\.run: .*expected string/),
		);
		expect(lines).toContainEqual(
			expect.stringMatching(/^pipeline\.yaml:6: stages\[1\]\.timeoutMs: .*expected number/),
		);
		expect(lines).toContain('pipeline.yaml:7: stages[1].timeout: is not a key that is known here');
	});
});

describe.concurrent('paths', () => {
	it.each(['/', '/no/such/folder', join(import.meta.dirname, '..')])(
		'outside of the roots are refused: %s',
		async (path) => {
			const { content, isError } = await server.call('run_pipeline', { checkout: path });
			expect(isError).toBe(true);
			expect(content[0]?.text).toMatch(
				/ is not below an allowed root\. The allowed roots \(PIPELINE_ROOTS\) are: /,
			);
		},
	);

	it('that lead out of the roots through a link are refused', async () => {
		const checkout = scratch.checkout('stages: []');
		symlinkSync('/', join(checkout.folder, 'out'));
		const { content } = await server.call('run_pipeline', { checkout: join(checkout.folder, 'out') });
		expect(content[0]?.text).toContain('leads out of an allowed root');
	});

	it.each(['../1/pipeline.yaml', '/etc/passwd', 'link.yaml'])(
		'of a file must stay in the checkout: %s',
		async (file) => {
			const checkout = scratch.checkout('stages: []');
			symlinkSync('/etc/passwd', join(checkout.folder, 'link.yaml'));
			const { content } = await server.call('run_pipeline', { checkout: checkout.folder, file });
			expect(content[0]?.text).toMatch(/ is not below the checkout /);
		},
	);

	it('that do not exist, and stages that do not, are named', async () => {
		const checkout = scratch.checkout('stages: [{ name: a, run: x }]');
		const say = async (args: object): Promise<string | undefined> =>
			(await server.call('run_pipeline', { checkout: checkout.folder, ...args })).content[0]?.text;
		expect(await say({ checkout: `${checkout.folder}x` })).toBe(`There is no folder ${checkout.folder}x`);
		expect(await say({ file: 'x.yaml' })).toBe(`There is no file x.yaml in ${checkout.folder}`);
		expect(await say({ stages: ['b'] })).toBe('No stage is called b; the stages are a');
	});
});

function readProcStatus(pid: number): string {
	return process.platform === 'linux' ? readFileSync(`/proc/${pid}/status`, 'utf8') : '';
}
