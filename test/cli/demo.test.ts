import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Cli, isAlive, run, scratch, until } from './harness.ts';

const LIMIT_MS = 40_000;

it('the demo shows a task survive kill -9, and cleans up', { timeout: LIMIT_MS }, async () => {
	const TMPDIR = scratch();
	const { code, stdout, stderr } = await run(['demo'], { env: { TMPDIR } });
	expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
	expect(stdout).toMatch(/kill -9 \d+, in the middle of "comparing with last year"/);
	expect(stdout).toMatch(/process \d+ goes on with "comparing with last year"/);
	expect(stdout).toMatch(/Publish the report\? yes \(nobody can type here: answering yes for you\)/);
	expect(stdout).toMatch(/Result {2}The report for October has \d+ rows and is published\./);
	expect(stdout).toMatch(/ok {2}the work went on \d+\.\d s after kill -9/);
	expect(stdout).toMatch(/ok {2}5 of 5 steps finished exactly once/);
	expect(stdout).toMatch(/ok {2}0 of the 2 steps that were finished before ran again/);
	expect(stdout).not.toContain('NOT TRUE');
	expect(stdout).not.toContain('\u001b');
	expect(readdirSync(TMPDIR).filter((name) => name.startsWith('holdfast-'))).toEqual([]);
	const pids = Array.from(stdout.matchAll(/process (\d+)/g), ([, pid]) => Number(pid));
	expect(pids.length).toBeGreaterThanOrEqual(2);
	expect(pids.filter(isAlive)).toEqual([]);
});

it('Ctrl-C ends the demo and leaves nothing behind', async () => {
	const TMPDIR = scratch();
	const cli = new Cli(['demo'], { env: { TMPDIR } });
	const [, pid] = await until(
		'a task',
		() => /process (\d+) listens.*is answered at once/s.exec(cli.stdout) ?? undefined,
	);
	cli.signal('SIGINT');
	expect(await cli.ended()).toBe(130);
	expect(cli.stdout).toMatch(/Stopped; everything is cleaned up\.\n$/);
	expect(readdirSync(TMPDIR).filter((name) => name.startsWith('holdfast-'))).toEqual([]);
	await until('the end of the server', () => !isAlive(Number(pid)) || undefined);
});
