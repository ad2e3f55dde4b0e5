/** A person who does not answer now, and hosts that share a journal: who is asked, and when. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { AnswerLater } from '../../src/client/answer-later.ts';
import { fileJournal } from '../../src/client/journal/file-journal.ts';
import { memoryJournal } from '../../src/client/journal/memory-journal.ts';
import { done, FakeServer, form, task } from './fake-server.ts';
import { serveHttp, text } from './server.ts';

const ELICITATION = { capabilities: { elicitation: { form: {} } } };
const YES = { action: 'accept' as const, content: { ok: true } };

/** A fake whose task asks one question until it is answered. */
function asking(): { fake: FakeServer; answers: unknown[] } {
	const fake = new FakeServer();
	const answers: unknown[] = [];
	fake.get = () =>
		answers.length === 0
			? task({ status: 'input_required', inputRequests: { ask: form() } })
			: done('answered');
	fake.update = ({ inputResponses }) => {
		answers.push(inputResponses);
		return {};
	};
	return { fake, answers };
}

describe('a question that is put off', () => {
	it.each(['the handler of the SDK client', 'onInput'])(
		'by %s is not answered, and is asked again when the host says so',
		async (where) => {
			const { fake, answers } = asking();
			const isLater = vi.fn(() => true);
			const handler = vi.fn(async () => {
				if (isLater()) throw new AnswerLater();
				return YES;
			});
			const problems: unknown[] = [];
			const onProblem = (error: unknown) => problems.push(error);
			const tasks = await fake.taskClient(
				{ onProblem, ...(where === 'onInput' && { onInput: handler }) },
				ELICITATION,
			);
			tasks.client.setRequestHandler('elicitation/create', handler);
			const execution = await tasks.startTool({ name: 'delete' });
			await fake.clock.advance(600_000);
			expect(handler).toHaveBeenCalledTimes(1);
			expect(execution.state?.status).toBe('input_required');
			expect(fake.of('tasks/update')).toHaveLength(0);
			tasks.askAgain();
			await fake.clock.advance(60_000);
			expect(handler).toHaveBeenCalledTimes(2);
			isLater.mockReturnValue(false);
			tasks.askAgain();
			await fake.clock.advance(1_000);
			expect(await execution.result()).toMatchObject({ content: [{ text: 'answered' }] });
			expect(answers).toEqual([{ ask: YES }]);
			expect(problems).toEqual([]);
		},
	);

	it('costs few polls while it waits', async () => {
		const { fake } = asking();
		const tasks = await fake.taskClient({
			onInput: async () => {
				throw new AnswerLater();
			},
		});
		await tasks.startTool({ name: 'delete' });
		await fake.clock.advance(600_000);
		expect(fake.of('tasks/get').length).toBeLessThanOrEqual(61);
		tasks.close();
	});

	it('is asked by the host that comes back to the task', async () => {
		const { fake } = asking();
		const journal = memoryJournal();
		const first = await fake.taskClient({
			...{ journal },
			onInput: async () => {
				throw new AnswerLater();
			},
		});
		await first.startTool({ name: 'delete' });
		await fake.clock.advance(5_000);
		first.close();
		const second = await fake.taskClient({ journal, onInput: async () => YES });
		const [execution] = await second.resumeAll();
		await fake.clock.advance(5_000);
		expect(await execution?.result()).toMatchObject({ content: [{ text: 'answered' }] });
	});

	it('is forgotten when it is open no more', async () => {
		const { fake, answers } = asking();
		const onInput = vi.fn(async () => {
			throw new AnswerLater();
		});
		const tasks = await fake.taskClient({ onInput });
		const execution = await tasks.startTool({ name: 'delete' });
		await fake.clock.advance(5_000);
		answers.push('by another client');
		await fake.clock.advance(15_000);
		tasks.askAgain();
		expect(await execution.result()).toMatchObject({ content: [{ text: 'answered' }] });
		expect(onInput).toHaveBeenCalledTimes(1);
	});
});

describe('two hosts on one journal', () => {
	it('do not ask the same question at the same time', async () => {
		const { fake, answers } = asking();
		const journal = memoryJournal();
		const answer = Promise.withResolvers<typeof YES>();
		const first = vi.fn(() => answer.promise);
		const second = vi.fn(async () => YES);
		const one = await fake.taskClient({ journal, onInput: first });
		const execution = await one.startTool({ name: 'delete' });
		await fake.clock.advance(2_000);
		const two = await fake.taskClient({ journal, onInput: second });
		const [same] = await two.resumeAll();
		await fake.clock.advance(600_000);
		expect([first, second].map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
		answer.resolve(YES);
		await fake.clock.advance(30_000);
		expect(await execution.result()).toMatchObject({ content: [{ text: 'answered' }] });
		expect(await same?.result()).toMatchObject({ content: [{ text: 'answered' }] });
		expect(second).not.toHaveBeenCalled();
		expect(answers).toHaveLength(1);
		one.close();
		two.close();
	});

	it('take over from each other when one lets go of the question', async () => {
		const { fake } = asking();
		const journal = memoryJournal();
		const one = await fake.taskClient({ journal, onInput: () => new Promise(() => {}) });
		await one.startTool({ name: 'delete' });
		await fake.clock.advance(2_000);
		const second = vi.fn(async () => YES);
		const two = await fake.taskClient({ journal, onInput: second });
		const [execution] = await two.resumeAll();
		await fake.clock.advance(5_000);
		expect(second).not.toHaveBeenCalled();
		one.close();
		await fake.clock.advance(11_000);
		expect(second).toHaveBeenCalledTimes(1);
		expect(await execution?.result()).toMatchObject({ content: [{ text: 'answered' }] });
		two.close();
	});

	it('that are processes: the second asks as soon as the first is dead, and one of them delivers', async ({
		onTestFinished,
	}) => {
		const server = await serveHttp((mcp, tasks) =>
			mcp.registerTool(
				'ask',
				{ inputSchema: z.object({}) },
				tasks.handler({ syncWindowMs: 0, maxPollIntervalMs: 1_000 }, async (_args, context) => {
					const requestedSchema = { type: 'object', properties: { who: { type: 'string' } } };
					const answer = await context.requireInput('who', {
						mode: 'form',
						message: 'Who?',
						requestedSchema,
					});
					return text(JSON.stringify(answer.content));
				}),
			),
		);
		onTestFinished(() => server.close(0));
		const folder = mkdtempSync(join(tmpdir(), 'holdfast-hosts-'));
		onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
		const journal = join(folder, 'journal.db');
		const host = (name: string, how: 'hold' | 'answer') => {
			const script = join(import.meta.dirname, 'sharing-host.ts');
			const child = spawn(process.execPath, [script, server.url, journal, name, how], {
				stdio: ['ignore', 'pipe', 'inherit'],
			});
			const lines: string[] = [];
			const output = createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
			const ended = once(child, 'exit');
			onTestFinished(async () => {
				child.kill('SIGKILL');
				await ended;
			});
			const says = async (words: string): Promise<void> => {
				while (!lines.includes(words)) await once(output, 'line');
			};
			return { child, lines, ended, says };
		};
		const first = host('first', 'hold');
		await first.says('asked');
		const [second, third] = [host('second', 'answer'), host('third', 'answer')];
		await Promise.all([second.says('claimed by another'), third.says('claimed by another')]);
		expect([...second.lines, ...third.lines]).not.toContain('asked');
		first.child.kill('SIGKILL');
		await Promise.all([second.ended, third.ended]);
		const all = [...second.lines, ...third.lines];
		expect(all.filter((line) => line === 'asked')).toHaveLength(1);
		expect(all.filter((line) => line.startsWith('delivered '))).toHaveLength(1);
		const entries = fileJournal(journal);
		onTestFinished(() => entries.close());
		expect(await entries.list('shared')).toMatchObject([{ delivered: true }]);
	}, 40_000);
});
