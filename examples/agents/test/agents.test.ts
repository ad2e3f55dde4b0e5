/** The programs check themselves; what they print is what the README promises. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { memory } from 'holdfast/memory';
import { createTaskServer, listen } from 'holdfast/server';
import { expect, it } from 'vitest';
import { Conversation } from '../conversation.ts';
import { contentOf, releaseScript } from '../release-script.ts';
import { releaseServer } from '../release-server.ts';
import { ScriptedModel } from '../scripted-model.ts';

const run = promisify(execFile);
const folderOfExample = join(import.meta.dirname, '..');

it.each([
	['openai.ts', /The agent was killed in turn 3.*\n +resumed: task_\w+\n(.*\n)*Model turns: 4: .*\nok\n$/],
	[
		'ai-sdk.ts',
		/^Waiting: 2 model turns, \d+ requests about the task\.\nIn the background: 4 model turns, .*\nok\n$/,
	],
])('%s ends well', async (program, printed) => {
	const { stdout } = await run(process.execPath, [join(folderOfExample, program)]);
	expect(stdout).toMatch(printed);
});

it('an agent that is killed in each turn of its model builds once and tells the end once', async ({
	onTestFinished,
}) => {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-agent-'));
	onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
	const builds: string[] = [];
	const server = createTaskServer({ backend: memory(), server: releaseServer(builds) });
	const serving = await listen(server, { port: 0 });
	onTestFinished(() => serving.close());
	const script = releaseScript('1.0.0');
	let agent: ChildProcess | undefined;
	const killedAt = new Set<number>();
	const model = new ScriptedModel((messages) => {
		// Once for each length of the conversation: the turn is paid for, and its answer is never read.
		if (!killedAt.has(messages.length)) agent?.kill('SIGKILL');
		killedAt.add(messages.length);
		return script(messages);
	});
	const modelUrl = await model.start();
	onTestFinished(() => model.close());
	let exit: unknown[] = [];
	for (let start = 0; exit[0] !== 0 && start < 10; start++) {
		const program = join(folderOfExample, 'openai-agent.ts');
		agent = spawn(process.execPath, [program, serving.url, modelUrl, folder, 'Release'], { stdio: 'ignore' });
		exit = await once(agent, 'exit');
	}
	expect(exit).toEqual([0, null]);
	expect(killedAt.size).toBe(4);
	expect(builds).toEqual(['1.0.0']);
	const { messages } = new Conversation(join(folder, 'conversation.json'));
	const told = messages.filter(({ role }, index) => role === 'user' && index > 0);
	expect(told.map(contentOf)).toEqual([expect.stringMatching(/1\.0\.0 has 7 MB and was published$/)]);
	expect(contentOf(messages.at(-1))).toMatch(/published$/);
});
