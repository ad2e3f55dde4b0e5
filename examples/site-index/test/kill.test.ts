/**
 * A crawl killed again and again: what was stored is not fetched a second time. A page that had been asked for and
 * not been stored when the kill came has to be asked for again; there are never more of those than `inFlight`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { postgresDocs, withoutDocs } from './real-docs.ts';
import { owner, Scratch } from './scratch.ts';
import { LoopbackServer } from './static-server.ts';

const child = fileURLToPath(new URL('./crawl-child.ts', import.meta.url));
const inFlight = 8;
const kills = 10;
const reason = withoutDocs();

it.skipIf(reason !== undefined)(
	'a killed crawl goes on where it was and fetches no stored page again',
	async () => {
		const server = await LoopbackServer.folder(postgresDocs);
		const scratch = new Scratch();
		const start = server.address('/index.html');
		const killedAt: number[] = [];
		try {
			for (let round = 0; round < kills; round += 1) {
				// Between 1 and some 110 requests into the process's life: during robots.txt, a page, or a commit.
				const after = 1 + Math.floor(Math.random() * (round === 0 ? 20 : 110));
				const running = startCrawl(scratch.file, start);
				let seen = 0;
				server.watch(() => {
					seen += 1;
					if (seen === after) running.kill('SIGKILL');
				});
				const [, signal] = (await once(running, 'exit')) as [number | null, string | null];
				server.watch(undefined);
				expect(signal).toBe('SIGKILL');
				killedAt.push(after);
			}
			const [code] = (await once(startCrawl(scratch.file, start), 'exit')) as [number | null];
			expect(code).toBe(0);

			const files = readdirSync(postgresDocs).filter((name) => name.endsWith('.html'));
			const indexed = scratch.pages().filter(({ state }) => state === 'indexed');
			expect(indexed).toHaveLength(files.length);
			const pages = [...server.counts()].filter(([path]) => path.endsWith('.html'));
			const again = pages.reduce((sum, [, count]) => sum + count - 1, 0);
			console.log(
				`killed after ${killedAt.join(', ')} requests: ${again} of ${pages.length} pages fetched again, at most ${kills * inFlight} may be`,
			);
			expect(again).toBeLessThanOrEqual(kills * inFlight);
			const hit = scratch.ask((asker) => asker.ask({ question: 'pg_dump', owner })).passages[0];
			expect(hit?.address).toContain('/app-pgdump.html');
			expect(scratch.report((catalogue) => catalogue.sites(owner))).toMatchObject([
				{ state: 'complete', pages: files.length },
			]);
		} finally {
			await server.close();
			await scratch.close();
		}
	},
	120_000,
);

const startCrawl = (file: string, address: string): ChildProcess =>
	spawn(process.execPath, [child, file, address, String(inFlight)], {
		stdio: ['ignore', 'ignore', 'inherit'],
	});
