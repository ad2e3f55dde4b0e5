/**
 * Hosts with the limits that were measured and reported, on a clock that the test moves: a call of 40 minutes
 * reaches its result on every one of them, though none waits that long.
 */
import {
	Client,
	InMemoryTransport,
	StreamableHTTPClientTransport,
	type Transport,
} from '@modelcontextprotocol/client';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { TaskClient } from '../../src/client/index.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { complete, gatewayOverHttp, gatewayOn, rawServer, tool } from './rig.ts';

const MINUTE_MS = 60_000;
const WORK_MS = 40 * MINUTE_MS;
const STEP_MS = 14_000;

/** How long the world outside the clock has to bring an answer that is on its way. */
const ON_ITS_WAY_MS = 10_000;

interface ScriptedHost {
	readonly title: string;
	/** Its name in `clientInfo`. */
	readonly clientName: string;
	readonly transport: 'http' | 'stdio';
	/** When it gives up a call, in milliseconds. */
	readonly limitMs: number;
	/** Whether it sends a progress token, and whether progress puts its limit off. */
	readonly token: boolean;
	readonly progressExtends: boolean;
	readonly revision: 'auto' | 'legacy';
	/** The most turns that its model may need: the call, and each time that it is told to wait on. */
	readonly mostTurns: number;
}

const plain = { token: false, progressExtends: false, revision: 'auto' as const };
const legacy = { token: false, progressExtends: false, revision: 'legacy' as const };

const HOSTS: readonly ScriptedHost[] = [
	{
		title: 'Claude Code -p',
		clientName: 'claude-code',
		transport: 'http',
		limitMs: 330_000,
		mostTurns: 10,
		...plain,
		token: true,
	},
	{
		title: 'Claude Code -p',
		clientName: 'claude-code',
		transport: 'stdio',
		limitMs: 330_000,
		mostTurns: 10,
		...plain,
		token: true,
	},
	{
		title: 'Claude Desktop',
		clientName: 'claude-ai',
		transport: 'stdio',
		limitMs: 240_000,
		mostTurns: 14,
		...legacy,
		token: true,
	},
	{
		title: 'claude.ai connectors',
		clientName: 'claude-ai',
		transport: 'http',
		limitMs: 60_000,
		mostTurns: 50,
		...legacy,
	},
	{
		title: 'VS Code',
		clientName: 'Visual Studio Code',
		transport: 'stdio',
		limitMs: 300_000,
		mostTurns: 10,
		...legacy,
		token: true,
	},
	{
		title: 'Cursor',
		clientName: 'cursor-vscode',
		transport: 'stdio',
		limitMs: 60_000,
		mostTurns: 56,
		...legacy,
	},
	{
		title: 'Codex exec',
		clientName: 'codex-mcp-client',
		transport: 'stdio',
		limitMs: 300_000,
		mostTurns: 10,
		...legacy,
		token: true,
	},
	{
		title: 'Codex exec',
		clientName: 'codex-mcp-client',
		transport: 'http',
		limitMs: 300_000,
		mostTurns: 10,
		...legacy,
		token: true,
	},
	{
		title: 'Gemini CLI',
		clientName: 'gemini-cli-mcp-client',
		transport: 'stdio',
		limitMs: 600_000,
		mostTurns: 10,
		...legacy,
		token: true,
	},
	{
		title: 'opencode',
		clientName: 'opencode',
		transport: 'stdio',
		limitMs: 60_000,
		mostTurns: 1,
		...legacy,
		token: true,
		progressExtends: true,
	},
	{ title: 'goose', clientName: 'goose', transport: 'stdio', limitMs: 300_000, mostTurns: 10, ...legacy },
	{
		title: 'AI SDK',
		clientName: 'ai-sdk-mcp-client',
		transport: 'http',
		limitMs: 300_000,
		mostTurns: 10,
		...plain,
	},
	{
		title: 'OpenAI Agents',
		clientName: 'openai-agents-mcp-client',
		transport: 'http',
		limitMs: 60_000,
		mostTurns: 56,
		...plain,
	},
	{ title: 'Mastra', clientName: 'mastra', transport: 'http', limitMs: 60_000, mostTurns: 56, ...plain },
	{
		title: 'LangChain',
		clientName: 'langchain',
		transport: 'http',
		limitMs: 60_000,
		mostTurns: 56,
		...legacy,
	},
	{ title: 'Zed', clientName: 'Zed', transport: 'stdio', limitMs: 60_000, mostTurns: 56, ...legacy },
	{ title: 'Cline', clientName: 'Cline', transport: 'stdio', limitMs: 60_000, mostTurns: 56, ...legacy },
	{
		title: 'LibreChat',
		clientName: 'LibreChat',
		transport: 'http',
		limitMs: 60_000,
		mostTurns: 56,
		...legacy,
	},
	{
		title: 'a host that nobody knows',
		clientName: 'nobody',
		transport: 'http',
		limitMs: 60_000,
		mostTurns: 56,
		...legacy,
	},
];

const report: string[] = [];
afterAll(() => console.log(report.join('\n')));

describe('a call of 40 minutes reaches its result', () => {
	it.each(HOSTS)('on $title over $transport, which waits $limitMs ms', async (host) => {
		const clock = new FakeClock();
		const started: number[] = [];
		const upstream = await rawServer([tool('build')], {
			'tools/call': (request) => {
				started.push(clock.nowMs());
				const stream = request.stream();
				clock.after(WORK_MS, () => {
					stream.message({ id: request.id, result: complete('built') });
					stream.end();
				});
			},
		});
		const choice = { upstreams: { ci: { target: upstream.target } }, clock };
		let transport: Transport;
		if (host.transport === 'http')
			transport = new StreamableHTTPClientTransport(new URL((await gatewayOverHttp(choice)).url));
		else {
			const [mine, its] = InMemoryTransport.createLinkedPair();
			gatewayOn(its, choice);
			transport = mine;
		}
		const client = new Client(
			{ name: host.clientName, version: '1' },
			host.revision === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {},
		);
		await client.connect(transport);
		let { text } = await callWithin(client, host, clock, 'build', {});
		let turns = 1;
		while (text.includes('task_id:')) {
			turns += 1;
			const taskId = /task_id: (\S+)/.exec(text)?.[1];
			({ text } = await callWithin(client, host, clock, 'await_task', { task_id: taskId }));
		}
		expect(text).toBe('built');
		expect(started).toHaveLength(1);
		expect(turns).toBeLessThanOrEqual(host.mostTurns);
		report.push(`${host.title} over ${host.transport}: ${turns} model turns`);
		await client.close();
	});

	it('on a host with Tasks in one turn of its model', async () => {
		const clock = new FakeClock();
		const upstream = await rawServer([tool('build')], {
			'tools/call': (request) => void clock.after(WORK_MS, () => request.result(complete('built'))),
		});
		const { url } = await gatewayOverHttp({ upstreams: { ci: { target: upstream.target } }, clock });
		const client = new Client(
			{ name: 'claude-code', version: '1' },
			{ versionNegotiation: { mode: 'auto' } },
		);
		await client.connect(new StreamableHTTPClientTransport(new URL(url)));
		const tasks = new TaskClient(client, { clock });
		const call = tasks.callTool({ name: 'build' });
		let result: Awaited<typeof call> | undefined;
		void call.then((found) => (result = found));
		await moving(clock, () => result !== undefined);
		expect((await call).content).toEqual([{ type: 'text', text: 'built' }]);
		report.push('Claude Code interactive over http: 1 model turn');
		tasks.close();
		await client.close();
	});
});

/** One call as this host makes it; throws when the host gives up before there is an answer. */
async function callWithin(
	client: Client,
	host: ScriptedHost,
	clock: FakeClock,
	name: string,
	args: Record<string, unknown>,
): Promise<{ readonly text: string }> {
	let deadlineMs = clock.nowMs() + host.limitMs;
	let answer: { readonly text: string } | undefined;
	let problem: unknown;
	client
		.callTool(
			{ name, arguments: args },
			{
				timeout: 2 ** 31 - 1,
				...(host.token && {
					onprogress: () => {
						if (host.progressExtends) deadlineMs = clock.nowMs() + host.limitMs;
					},
				}),
			},
		)
		.then(
			({ content }) => {
				const [block] = content;
				answer = { text: block?.type === 'text' ? block.text : '' };
			},
			(error: unknown) => (problem = error),
		);
	await moving(
		clock,
		() => {
			if (problem !== undefined) throw problem;
			return answer !== undefined;
		},
		() => deadlineMs,
	);
	if (!answer) throw new Error(`${host.title} gave up ${name} after ${host.limitMs} ms`);
	return answer;
}

/** Moves the clock until something is so, or a deadline has passed and nothing is on its way any more. */
async function moving(
	clock: FakeClock,
	isSo: () => boolean,
	deadlineMs: () => number = () => Infinity,
): Promise<void> {
	for (;;) {
		// Messages travel outside the clock: what is sent now must not look late because the clock ran on.
		await pause(2);
		if (isSo()) return;
		if (clock.nowMs() + STEP_MS < deadlineMs()) await clock.advance(STEP_MS);
		else break;
	}
	for (const endMs = Date.now() + ON_ITS_WAY_MS; Date.now() < endMs && !isSo(); ) await pause(5);
}
