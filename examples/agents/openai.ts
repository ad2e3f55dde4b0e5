/**
 * `node examples/agents/openai.ts`: an agent with OpenAI's client is killed while its release is built, is started
 * again, and tells how it ended. Checks itself; the exit code says whether all was right.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { memory } from 'holdfast/memory';
import { createTaskServer, listen } from 'holdfast/server';
import { Conversation } from './conversation.ts';
import { releaseServer } from './release-server.ts';
import { contentOf, releaseScript } from './release-script.ts';
import { ScriptedModel } from './scripted-model.ts';

const version = '1.2.0';
const folder = mkdtempSync(join(tmpdir(), 'holdfast-agent-'));
const builds: string[] = [];
const serving = await listen(createTaskServer({ backend: memory(), server: releaseServer(builds) }), {
	port: 0,
});
const model = new ScriptedModel(releaseScript(version));
const modelUrl = await model.start();
const agents: ChildProcess[] = [];

try {
	const before = startAgent();
	const said = await linesUntil(before, /^waiting: task_/);
	before.kill('SIGKILL');
	await once(before, 'exit');
	console.log(`The agent was killed in turn ${model.turns} of its model.`);

	const after = startAgent();
	const ended = once(after, 'exit');
	const saidLater = await linesUntil(after, undefined);
	assert.deepEqual(await ended, [0, null]);

	const { messages } = new Conversation(join(folder, 'conversation.json'));
	const roles = messages.map(({ role }) => role).join(' ');
	assert.equal(roles, 'user assistant tool assistant tool assistant user assistant');
	assert.match(contentOf(messages[2]), /goes on in the background as task_/);
	assert.match(contentOf(messages.at(-1)), /1\.2\.0 has 7 MB and was published$/);
	assert.deepEqual(builds, [version], 'The release is built once');
	const questions = [...said, ...saidLater].filter((line) => line.startsWith('asked: '));
	assert.deepEqual(questions, [`asked: Publish ${version}?`]);
	assert.equal(model.turns, 4);
	console.log(`Model turns: ${model.turns}: the call, other work, "I will tell you", the result.`);
	console.log('ok');
} finally {
	for (const agent of agents) agent.kill('SIGKILL');
	model.close();
	await serving.close();
	rmSync(folder, { recursive: true, force: true });
}

function startAgent(): ChildProcess {
	const program = join(import.meta.dirname, 'openai-agent.ts');
	const args = [program, serving.url, modelUrl, folder, `Release ${version}`];
	const agent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
	agents.push(agent);
	return agent;
}

/** What an agent prints until a line, or until its end. */
async function linesUntil({ stdout }: ChildProcess, last: RegExp | undefined): Promise<readonly string[]> {
	assert(stdout);
	const lines: string[] = [];
	for await (const line of createInterface(stdout)) {
		console.log(`  ${line}`);
		lines.push(line);
		if (last?.test(line)) return lines;
	}
	assert.equal(last, undefined, 'The agent ended too early');
	return lines;
}
