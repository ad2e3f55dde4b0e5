import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ENTRY, QUESTIONS, REPORTS, run, scratch, serve, tasksJson, until, untilStatus } from './harness.ts';
import { HAS_PTY, KEYS, Terminal } from './pty.ts';

/** A served module, and the environment of a person with a journal of its own. */
async function served(module: string) {
	const folder = scratch();
	const db = join(folder, 'tasks.db');
	const { url } = await serve(db, { module });
	return { folder, db, url, env: { XDG_STATE_HOME: folder } };
}

async function onlyTask(db: string): Promise<{ taskId: string; status: string }> {
	const { tasks } = await tasksJson(db, 'list');
	const [task] = tasks as { taskId: string; status: string }[];
	if (!task) throw new Error('there is no task');
	return task;
}

// Where there is no Python 3 there is no pseudo-terminal to be had without a native module.
describe.skipIf(!HAS_PTY)('call at a terminal', () => {
	it('shows a bar with the elapsed time, the percentage and the message, and then the result', async () => {
		const { url, env } = await served(REPORTS);
		const terminal = Terminal.holdfast(
			['call', url, 'count', '--arg', 'steps=4', '--arg', 'stepMs=700'],
			env,
		);
		await terminal.sees(/\d+s {2}count {2}\[#{6}-{18}\] {2}25% {2}step 1/);
		await terminal.sees(/\[#{18}-{6}\] {2}75% {2}step 3/);
		await terminal.sees(/counted to 4/);
		expect(await terminal.ended()).toBe(0);
		// The bar is taken away: what stays is the result.
		expect(terminal.raw.endsWith('\u001b[2Kcounted to 4\r\n')).toBe(true);
	});

	it('asks a form field by field, holds each answer against its schema, and shows what it sends', async () => {
		const { url, env } = await served(QUESTIONS);
		const terminal = Terminal.holdfast(['call', url, 'order'], env);
		await terminal.sees(/order of http:\S+ asks[\s\S]*What shall it be\?/);
		await terminal.sees(/◆ {2}Your name \(2 to 20 characters\)/);
		terminal.type(KEYS.enter);
		await terminal.sees(/An answer is needed\./);
		terminal.type(`A${KEYS.enter}`);
		await terminal.sees(/It must be 2 to 20 characters\./);
		terminal.type(`da${KEYS.enter}`);
		await terminal.sees(/◆ {2}mail \(may be left out, an email address\)/);
		terminal.type(`nonsense${KEYS.enter}`);
		await terminal.sees(/It must be an email address\./);
		terminal.type(KEYS.clear + KEYS.enter);
		await terminal.sees(/◆ {2}due \(may be left out, a date like 2026-07-28\)/);
		terminal.type(KEYS.enter);
		await terminal.sees(/◆ {2}copies \(a whole number, 1 to 9\)/);
		terminal.type(`1.5${KEYS.enter}`);
		await terminal.sees(/It must be a whole number, 1 to 9\./);
		terminal.type(`${KEYS.clear}3${KEYS.enter}`);
		await terminal.sees(/◆ {2}colour[\s\S]*● Green/);
		terminal.type(KEYS.down + KEYS.enter);
		await terminal.sees(/◆ {2}size/);
		terminal.type(KEYS.down + KEYS.enter);
		await terminal.sees(/◆ {2}extras \(at least 1 of them\)/);
		terminal.type(`${KEYS.down} ${KEYS.enter}`);
		await terminal.sees(/◆ {2}extras .*It must be at least 1 of them\./);
		terminal.type(`${KEYS.down}${KEYS.down} ${KEYS.enter}`);
		await terminal.sees(/◆ {2}urgent\n│ {2}It costs more/);
		terminal.type(KEYS.enter);
		await terminal.sees(/name: Ada[\s\S]*mail: \(left out\)[\s\S]*colour: Blue[\s\S]*◆ {2}Send it\?/);
		terminal.type(KEYS.enter);
		const [answer] = await terminal.sees(/\{"action".*\}/);
		expect(JSON.parse(answer)).toEqual({
			action: 'accept',
			content: {
				...{ name: 'Ada', due: '2026-12-24', copies: 3, colour: 'b', size: 'l' },
				...{ extras: ['tape'], urgent: false },
			},
		});
		expect(await terminal.ended()).toBe(0);
	});

	it('asks at Ctrl-C, and cancels', async () => {
		const { url, db, env } = await served(REPORTS);
		const terminal = Terminal.holdfast(
			['call', url, 'count', '--arg', 'steps=9', '--arg', 'stepMs=60000'],
			env,
		);
		await terminal.sees(/step 1/);
		terminal.type(KEYS.ctrlC);
		await terminal.sees(/◆ {2}Cancel it or leave it running\?[\s\S]*● Leave it running[\s\S]*○ Cancel it/);
		terminal.type(KEYS.down + KEYS.enter);
		await terminal.sees(/count was cancelled/);
		expect(await terminal.ended()).toBe(5);
		expect(await onlyTask(db)).toMatchObject({ status: 'cancelled' });
	});

	it('leaves at the second Ctrl-C, and another command comes back', async () => {
		const { url, db, env } = await served(QUESTIONS);
		const first = Terminal.holdfast(['call', url, 'confirm'], env);
		await first.sees(/◆ {2}Your answer/);
		first.type(KEYS.ctrlC);
		await first.sees(/○ Decline the question[\s\S]*○ Back to the question/);
		first.type(KEYS.ctrlC);
		const [, reference = ''] = await first.sees(/(holdfast-task:[\w-]+)/);
		expect(await first.ended()).toBe(6);
		expect(await onlyTask(db)).toMatchObject({ status: 'input_required' });
		const second = Terminal.holdfast(['resume', reference], env);
		await second.sees(/Are you sure\?[\s\S]*● Accept/);
		second.type(KEYS.enter);
		await second.sees(/\{"action":"accept","content":\{\}\}/);
		expect(await second.ended()).toBe(0);
	});

	it('goes back to the question, and declines it', async () => {
		const { url, env } = await served(QUESTIONS);
		const terminal = Terminal.holdfast(['call', url, 'confirm'], env);
		await terminal.sees(/◆ {2}Your answer/);
		terminal.type(KEYS.ctrlC);
		await terminal.sees(/◆ {2}Cancel it or leave it running/);
		terminal.type(KEYS.up + KEYS.enter);
		await terminal.sees(/◆ {2}Your answer/);
		terminal.type(KEYS.down + KEYS.enter);
		await terminal.sees(/\{"action":"decline"\}/);
		expect(await terminal.ended()).toBe(0);
	});

	it('asks whether to cancel a call that is no task, which cannot be left', async () => {
		const { url, env } = await served(QUESTIONS);
		const terminal = Terminal.holdfast(['call', url, 'held', '--arg', 'holdMs=60000'], env);
		await terminal.sees(/held {2}calling/);
		terminal.type(KEYS.ctrlC);
		await terminal.sees(/◆ {2}Cancel it\? \(Ctrl-C again does\)[\s\S]*● Cancel it \(it is no task/);
		terminal.type(KEYS.ctrlC);
		await terminal.sees(/held was cancelled/);
		expect(await terminal.ended()).toBe(5);
	});

	it('keeps Ctrl-C from a server on stdio, which goes on', async () => {
		const folder = scratch();
		const command = [process.execPath, ENTRY, 'serve', REPORTS, '--stdio', '--db', join(folder, 'tasks.db')];
		const terminal = Terminal.holdfast(
			['call', 'count', '--arg', 'steps=3', '--arg', 'stepMs=800', '--verbose', '--', ...command],
			{ XDG_STATE_HOME: folder },
		);
		await terminal.sees(/step 1/);
		terminal.type(KEYS.ctrlC);
		await terminal.sees(/◆ {2}Cancel it or leave/);
		terminal.type(KEYS.up + KEYS.enter);
		await terminal.sees(/counted to 3/);
		expect(await terminal.ended()).toBe(0);
		expect(terminal.shown).not.toMatch(/reason=SIGINT|starting it again/);
	});

	it('opens a page only when it is allowed to, and shows where it leads', async () => {
		const { url, folder, env } = await served(QUESTIONS);
		const opened = join(folder, 'opened');
		const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
		writeFileSync(join(folder, opener), `#!/bin/sh\nprintf %s "$1" > '${opened}'\n`);
		chmodSync(join(folder, opener), 0o755);
		const page = 'https://example.org@evil.example/login?a=$(id)';
		const terminal = Terminal.holdfast(['call', url, 'visit', '--arg', `url=${page}`], {
			...env,
			PATH: `${folder}:${process.env['PATH']}`,
		});
		await terminal.sees(/It is a page of evil\.example/);
		await terminal.sees(/● Yes, open it in the browser/);
		terminal.type(KEYS.enter);
		await terminal.sees(/\{"action":"accept"\}/);
		expect(await terminal.ended()).toBe(0);
		const address = await until('the page', () => {
			try {
				return readFileSync(opened, 'utf8') || undefined;
			} catch {
				return undefined;
			}
		});
		expect(address).toBe(page);
	});

	it('lets no text of a server drive the terminal', async () => {
		const { url, env } = await served(QUESTIONS);
		const evil = 'wipe \u001b[2J\u001b]0;title\u0007 \u009b2J \u202Eevil';
		const terminal = Terminal.holdfast(['call', url, 'order', '--arg', `message=${evil}`], env);
		await terminal.sees(/◆ {2}Your name/);
		terminal.type(KEYS.ctrlC);
		await terminal.sees(/◆ {2}Cancel it or leave/);
		terminal.type(KEYS.ctrlC);
		expect(await terminal.ended()).toBe(6);
		expect(terminal.shown).toContain(String.raw`wipe \u001b[2J\u001b]0;title\u0007 \u009b2J \u202eevil`);
		for (const obeyed of ['\u001b[2J', '\u001b]', '\u0007', '\u009b', '\u202e'])
			expect(terminal.raw).not.toContain(obeyed);
	});

	it('gives the terminal back as it was', async () => {
		const { url, env } = await served(QUESTIONS);
		const script = `"$0" "$1" call ${url} held --arg holdMs=60000; stty -a`;
		const terminal = new Terminal(['sh', '-c', script, process.execPath, ENTRY], env);
		await terminal.sees(/held {2}calling/);
		terminal.type(KEYS.ctrlC);
		await terminal.sees(/Cancel it\?/);
		terminal.type(KEYS.enter);
		await terminal.sees(/isig icanon/);
		expect(await terminal.ended()).toBe(0);
	});

	it('takes a question back that was answered elsewhere', async () => {
		const { url, db, env } = await served(QUESTIONS);
		const terminal = Terminal.holdfast(['call', url, 'confirm'], env);
		await terminal.sees(/◆ {2}Your answer/);
		const { taskId } = await onlyTask(db);
		expect((await run(['tasks', 'answer', taskId, 'sure', '--decline', '--db', db])).code).toBe(0);
		await untilStatus(url, taskId, 'completed');
		await terminal.sees(/\{"action":"decline"\}/);
		expect(await terminal.ended()).toBe(0);
	});
});
