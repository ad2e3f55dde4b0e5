import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run, scratch, serve, startTask, tasksJson, until, untilStatus } from './harness.ts';

/** A server with a task that runs, one that asks, and one that has ended. */
async function liveStore(
	message = 'Shall we?',
): Promise<Record<'db' | 'url' | 'running' | 'asking' | 'ended', string>> {
	const db = join(scratch(), 'tasks.db');
	const { url } = await serve(db);
	const ended = await startTask(url, 'count', { steps: 1, stepMs: 1 });
	const asking = await startTask(url, 'ask', { message });
	const running = await startTask(url, 'count', { steps: 9, stepMs: 60_000 });
	await untilStatus(url, ended, 'completed');
	await untilStatus(url, asking, 'input_required');
	await until('progress', async () => {
		const { progress } = await tasksJson(db, 'show', running);
		return progress ?? undefined;
	});
	return { db, url, running, asking, ended };
}

describe('tasks list', () => {
	it('shows the tasks of a store while a server uses it, newest first', async () => {
		const { db, running, asking, ended } = await liveStore();
		const { code, stdout } = await run(['tasks', 'list', '--db', db]);
		expect(code).toBe(0);
		const [heading, ...lines] = stdout.trimEnd().split('\n');
		expect(heading).toMatch(/^TASK +AGE +STATUS +TOOL +PROGRESS$/);
		expect(lines[0]).toMatch(new RegExp(`^${running} +\\d+s +working +count +step 1 \\(11%`));
		expect(lines[1]).toMatch(
			new RegExp(`^${asking} +\\d+s +input_required +ask +Waiting for an answer: Shall we\\?$`),
		);
		expect(lines[2]).toMatch(new RegExp(`^${ended} +\\d+s +completed +count +Done$`));
		expect(lines).toHaveLength(3);
	});

	it('filters by status and principal, and says when there are more', async () => {
		const { db, running, asking, ended } = await liveStore();
		const ids = async (...args: string[]): Promise<unknown> => {
			const { tasks, isMore } = await tasksJson(db, 'list', ...args);
			return { ids: (tasks as { taskId: string }[]).map(({ taskId }) => taskId), isMore };
		};
		expect(await ids('--status', 'working')).toEqual({ ids: [running], isMore: false });
		expect(await ids('--status', 'completed,input_required')).toEqual({
			ids: [asking, ended],
			isMore: false,
		});
		expect(await ids('--limit', '2')).toEqual({ ids: [running, asking], isMore: true });
		expect(await ids('--principal', 'anonymous', '--limit', '3')).toEqual({
			ids: [running, asking, ended],
			isMore: false,
		});
		expect(await ids('--principal', 'nobody')).toEqual({ ids: [], isMore: false });
		const none = await run(['tasks', 'list', '--db', db, '--status', 'failed']);
		expect(none).toEqual({ code: 0, stdout: '', stderr: 'No tasks match.\n' });
	});

	it('lets no control character through to the terminal', async () => {
		const { db, asking } = await liveStore('wipe \u001b[2J\u0007\u009b2J \u202Eevil\nline two');
		const list = await run(['tasks', 'list', '--db', db]);
		const show = await run(['tasks', 'show', asking, '--db', db]);
		const json = await run(['tasks', 'show', asking, '--db', db, '--json']);
		for (const { stdout } of [list, show, json]) expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
		expect(list.stdout).toContain(String.raw`wipe \u001b[2J\u0007\u009b2J \u202eevil\u000aline two`);
		const { openInputs } = JSON.parse(json.stdout) as {
			openInputs: { request: { params: { message: string } } }[];
		};
		expect(openInputs[0]?.request.params.message).toBe('wipe \u001b[2J\u0007\u009b2J \u202Eevil\nline two');
	});
});

describe('tasks show', () => {
	it('shows everything that is stored', async () => {
		const { db, running, asking, ended } = await liveStore();
		const show = async (taskId: string): Promise<string> =>
			(await run(['tasks', 'show', taskId, '--db', db])).stdout;
		expect(await show(running)).toMatch(/Worker +\S+:\d+, lease for \d+s more\n.*Entered +1 time\n/s);
		expect(await show(asking)).toMatch(
			/Open question: approve\n {2}Shall we\?\n.*the task fails in (7d|6d 23h) without an answer/s,
		);
		const text = await show(ended);
		expect(text).toMatch(/Status +completed\n.*Took +\d+s\n.*Arguments\n {2}\{\n {4}"steps": 1/s);
		expect(text).toMatch(/Finished steps\n {2}1\. step-1: null\n.*Result\n.*counted to 1/s);
		expect(await tasksJson(db, 'show', ended)).toMatchObject({
			...{
				taskId: ended,
				tool: 'count',
				status: 'completed',
				principal: 'anonymous',
				attempt: 1,
				lease: null,
			},
			...{ arguments: { steps: 1, stepMs: 1 }, steps: [{ name: 'step-1', value: null }], error: null },
			result: { content: [{ type: 'text', text: 'counted to 1' }] },
		});
	});
});

describe('tasks cancel', () => {
	it('stops a tool that runs in another process', async () => {
		const { db, url, running, ended } = await liveStore();
		const { code, stdout } = await run(['tasks', 'cancel', running, '--db', db]);
		expect(code).toBe(0);
		expect(stdout).toMatch(/was asked to stop; its worker \(.+:\d+\) ends it\.\n$|is cancelled\.\n$/);
		await untilStatus(url, running, 'cancelled');
		expect((await run(['tasks', 'cancel', running, '--db', db])).stdout).toBe(`${running} is cancelled.\n`);
		const late = await run(['tasks', 'cancel', ended, '--db', db]);
		expect(late).toEqual({
			code: 1,
			stdout: '',
			stderr: `error: The task ${ended} has already ended: it is completed.\n`,
		});
	});
});

describe('tasks answer', () => {
	it('answers for the client, and the tool goes on in its process', async () => {
		const { db, url, asking } = await liveStore();
		const answer = (...args: string[]): ReturnType<typeof run> =>
			run(['tasks', 'answer', asking, ...args, '--db', db]);
		expect(await answer('other', '--decline')).toMatchObject({
			code: 1,
			stderr: `error: The task ${asking} has no open question "other". Open: approve.\n`,
		});
		const misfit = await answer('approve', '--accept', '{"ok": "yes"}');
		expect(misfit).toMatchObject({ code: 2, stdout: '' });
		expect(misfit.stderr).toMatch(/does not fit the form. ok: .*expected boolean/);
		expect(await answer('approve', '--accept', '{"ok": true}')).toEqual({
			...{ code: 0, stdout: `"approve" of ${asking} is answered.\n`, stderr: '' },
		});
		const { result } = await untilStatus(url, asking, 'completed');
		expect(result).toMatchObject({ content: [{ text: '{"action":"accept","content":{"ok":true}}' }] });
		expect(await answer('approve', '--decline')).toMatchObject({ code: 1, stderr: /already ended/ });
	});

	it('declines', async () => {
		const { db, url, asking } = await liveStore();
		await tasksJson(db, 'answer', asking, 'approve', '--decline');
		const { result } = await untilStatus(url, asking, 'completed');
		expect(result).toMatchObject({ content: [{ text: '{"action":"decline"}' }] });
	});
});

describe('tasks on what is not there', () => {
	it.each([['list'], ['show', 'x'], ['cancel', 'x'], ['answer', 'x', 'y', '--decline']])(
		'%j makes no store of a missing file',
		async (...args) => {
			const db = join(scratch(), 'none.db');
			const { code, stdout, stderr } = await run(['tasks', ...args, '--db', db]);
			expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
			expect(stderr).toMatch(/^error: There is no file .*none\.db\. .*--db\.\n$/);
			expect(existsSync(db)).toBe(false);
		},
	);

	it('knows no unknown id, also one that looks like an option', async () => {
		const db = join(scratch(), 'tasks.db');
		await serve(db);
		for (const taskId of [
			'nope',
			'-bcdefghijklmnopqrstuvwxyz0',
			'--cdefghijklmnopqrstuvwxyz0',
			'nul\u009b2J',
		]) {
			const { code, stderr } = await run(['tasks', 'show', taskId, '--db', db]);
			expect(code).toBe(1);
			expect(stderr).toMatch(/^error: There is no task .* in .*tasks\.db\. `holdfast tasks list` shows/);
			expect(stderr).not.toMatch(/[\u007f-\u009f]/);
		}
	});

	it('refuses a file that is no store', async () => {
		const db = join(scratch(), 'text.db');
		writeFileSync(db, 'not a database, not at all. '.repeat(50));
		const { code, stderr } = await run(['tasks', 'list', '--db', db]);
		expect(code).toBe(1);
		expect(stderr).toMatch(/text\.db cannot be used: file is not a database/);
	});
});
