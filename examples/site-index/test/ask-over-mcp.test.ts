/** What a client gets: the SDK's own, over HTTP, from main.ts in a process of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { TaskClient } from 'holdfast/client';
import { ANONYMOUS } from 'holdfast/server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { fillEditions } from './editions.ts';
import { IndexServer } from './index-server.ts';
import {
	heldOutPostgres,
	heldOutPython,
	type KnownQuestion,
	postgresQuestions,
	pythonQuestions,
} from './known-questions.ts';
import { postgresDocs, pythonDocs, withoutDocs } from './real-docs.ts';
import { LoopbackServer } from './static-server.ts';

const reason = withoutDocs();
const goalMs = 50;
const SLOW = { timeout: 240_000 };

const answers = z.object({ passages: z.array(z.object({ address: z.string() })) });
const report = z.looseObject({ siteId: z.int(), state: z.string(), pages: z.int() });

let folder: string;
let server: IndexServer | undefined;
let client: Client;
const docs: LoopbackServer[] = [];

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), 'site-index-'));
});

afterEach(async () => {
	await client.close();
	await server?.end('SIGTERM');
	await Promise.all(docs.splice(0).map((one) => one.close()));
	rmSync(folder, { recursive: true, force: true });
});

const connect = async (): Promise<void> => {
	server = await IndexServer.start(join(folder, 'tasks.db'), '--allow-private');
	client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
	await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
};

const serve = async (root: string): Promise<LoopbackServer> => {
	const site = await LoopbackServer.folder(root);
	docs.push(site);
	return site;
};

const ask = async (args: Readonly<Record<string, unknown>>): Promise<z.infer<typeof answers>> =>
	answers.parse((await client.callTool({ name: 'ask_site', arguments: args })).structuredContent);

describe.skipIf(reason !== undefined)('through a client', () => {
	it(
		'a held call and a task index two sites, and nine in ten known questions find the right page first',
		SLOW,
		async () => {
			await connect();
			const [python, postgres] = [await serve(pythonDocs), await serve(postgresDocs)];
			const submit = (site: LoopbackServer) => ({
				name: 'submit_site',
				arguments: { url: site.address('/index.html') },
			});
			const tasks = new TaskClient(client);
			const [task, held] = await Promise.all([
				tasks.callTool(submit(python)),
				// The SDK's client knows no tasks: it waits for the call itself.
				client.callTool(submit(postgres), { timeout: 200_000 }),
			]);
			const [pythonSite, postgresSite] = [task, held].map(({ structuredContent }) =>
				report.parse(structuredContent),
			);
			expect(pythonSite).toMatchObject({ state: 'complete' });
			expect(postgresSite).toMatchObject({ state: 'complete' });
			const groups: [readonly KnownQuestion[], LoopbackServer, number | undefined][] = [
				[[...pythonQuestions, ...heldOutPython], python, pythonSite?.siteId],
				[[...postgresQuestions, ...heldOutPostgres], postgres, postgresSite?.siteId],
			];
			let asked = 0;
			let right = 0;
			for (const [questions, site, siteId] of groups)
				for (const { question, pages } of questions) {
					const [first] = (await ask({ question, siteId })).passages;
					asked += 1;
					if (pages.some((page) => first?.address.split('#')[0] === site.address(`/${page}`))) right += 1;
				}
			console.log(`through MCP: ${right} of ${asked} right at the first hit (${(right / asked).toFixed(3)})`);
			expect(asked).toBeGreaterThanOrEqual(40);
			expect(right / asked).toBeGreaterThanOrEqual(0.9);
		},
	);

	it('a question is answered in time with ten thousand pages', SLOW, async () => {
		const pages = fillEditions(join(folder, 'tasks.db.sites'), ANONYMOUS);
		expect(pages).toBeGreaterThanOrEqual(10_000);
		await connect();
		const questions = [...pythonQuestions, ...postgresQuestions, ...heldOutPython, ...heldOutPostgres];
		const times: number[] = [];
		for (const { question } of questions) {
			const began = performance.now();
			const { passages } = await ask({ question });
			times.push(performance.now() - began);
			expect(passages).not.toEqual([]);
		}
		times.sort((a, b) => a - b);
		const at = (share: number): number => times[Math.floor((times.length - 1) * share)] ?? Infinity;
		console.log(
			`${pages} pages, ${times.length} questions through MCP, first time each: median ${at(0.5).toFixed(1)} ms, ` +
				`95 % ${at(0.95).toFixed(1)} ms, slowest ${at(1).toFixed(1)} ms`,
		);
		// The median, because a busy machine can hold up any single question.
		expect(at(0.5)).toBeLessThan(goalMs);
	});
});
