/** Two real documentation sites, served from Debian's packages: all of each is indexed, and found again. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readdirSync } from 'node:fs';
import {
	heldOutPostgres,
	heldOutPython,
	type KnownQuestion,
	postgresQuestions,
	pythonQuestions,
} from './known-questions.ts';
import { postgresDocs, pythonDocs, withoutDocs } from './real-docs.ts';
import { owner, Scratch } from './scratch.ts';
import { LoopbackServer } from './static-server.ts';

const reason = withoutDocs();

describe.skipIf(reason !== undefined)(
	`real documentation sites${reason === undefined ? '' : `: ${reason}`}`,
	() => {
		let scratch: Scratch;
		let python: LoopbackServer;
		let postgres: LoopbackServer;
		let pythonSite: number;
		let postgresSite: number;
		const messages: string[] = [];

		beforeAll(async () => {
			scratch = new Scratch();
			python = await LoopbackServer.folder(pythonDocs);
			postgres = await LoopbackServer.folder(postgresDocs);
			const onProgress = ({ message }: { message: string }): void => void messages.push(message);
			({ siteId: pythonSite } = await scratch.crawl(
				{ startAddress: python.address('/index.html') },
				{ onProgress },
			));
			({ siteId: postgresSite } = await scratch.crawl({ startAddress: postgres.address('/index.html') }));
		}, 120_000);

		afterAll(async () => {
			await Promise.all([python?.close(), postgres?.close(), scratch?.close()]);
		});

		it('reads every page once', () => {
			const files = readdirSync(postgresDocs).filter((name) => name.endsWith('.html'));
			const indexed = scratch
				.pages()
				.filter(({ state, address }) => state === 'indexed' && address.startsWith(postgres.origin));
			expect(indexed).toHaveLength(files.length);
			expect([...postgres.counts().values()].every((count) => count === 1)).toBe(true);
			expect([...python.counts().values()].every((count) => count === 1)).toBe(true);
			expect(
				scratch.pages().filter(({ address }) => address.startsWith(python.origin)).length,
			).toBeGreaterThan(520);
		});

		it('tells how far it is, with a total that grows', () => {
			expect(messages[0]).toMatch(/^Crawling page 1 of \d+$/u);
			expect(messages.at(-1)).toMatch(/^Crawling page 5\d\d of 5\d\d$/u);
		});

		const firstHits = (questions: readonly KnownQuestion[], server: LoopbackServer, siteId: number): number =>
			scratch.ask(
				(asker) =>
					questions.filter(({ question, pages }) => {
						const [first] = asker.ask({ question, owner, siteId }).passages;
						return pages.some((page) => first?.address.split('#')[0] === server.address(`/${page}`));
					}).length,
			);

		it('finds the right page first for at least nine in ten known questions', () => {
			const questions = pythonQuestions.length + postgresQuestions.length;
			const right =
				firstHits(pythonQuestions, python, pythonSite) + firstHits(postgresQuestions, postgres, postgresSite);
			console.log(
				`known questions: ${right} of ${questions} right at the first hit (${(right / questions).toFixed(3)})`,
			);
			expect(questions).toBeGreaterThanOrEqual(40);
			expect(right / questions).toBeGreaterThanOrEqual(0.9);
		});

		it('does as well, within what few questions can tell, on questions the ranking was not tuned on', () => {
			const questions = heldOutPython.length + heldOutPostgres.length;
			const right =
				firstHits(heldOutPython, python, pythonSite) + firstHits(heldOutPostgres, postgres, postgresSite);
			console.log(
				`held-out questions: ${right} of ${questions} right at the first hit (${(right / questions).toFixed(3)})`,
			);
			expect(right / questions).toBeGreaterThanOrEqual(0.8);
		});

		it('leads to the section, not just to the page', () => {
			const [first] = scratch.ask((asker) =>
				asker.ask({ question: 'os.path.join', owner, siteId: pythonSite }),
			).passages;
			expect(first?.address).toBe(python.address('/library/os.path.html#os.path.join'));
			expect(first?.heading).toContain('os.path.join(path, *paths)');
			expect(first?.text).toContain('Join one or more path segments intelligently');
		});

		it('searches all sites of its owner, one site, or a part of one, and nobody else’s', () => {
			scratch.ask((asker) => {
				const all = asker.ask({ question: 'index', owner, limit: 50 }).passages;
				expect(all.some(({ address }) => address.startsWith(python.origin))).toBe(true);
				expect(all.some(({ address }) => address.startsWith(postgres.origin))).toBe(true);
				const part = asker.ask({
					question: 'list',
					owner,
					siteId: pythonSite,
					path: '/tutorial/',
					limit: 20,
				}).passages;
				expect(part.length).toBeGreaterThan(3);
				expect(part.every(({ address }) => address.startsWith(python.address('/tutorial/')))).toBe(true);
				expect(asker.ask({ question: 'index', owner: 'somebody else' }).passages).toEqual([]);
			});
		});

		it.each([
			['subproces pipes', 'subprocess pipes'],
			['dictonary comprehension', 'dictionary comprehension'],
			['regualr expression', 'regular expression'],
			['postgers vaccum', 'postgres vacuum'],
		])('asks whether %j was meant as %j', (question, meant) => {
			expect(scratch.ask((asker) => asker.ask({ question, owner })).didYouMean).toBe(meant);
		});

		it('has nothing to suggest for words it knows, nor for none at all', () => {
			scratch.ask((asker) => {
				expect(asker.ask({ question: 'regular expression', owner }).didYouMean).toBeUndefined();
				expect(asker.ask({ question: '?! … " (', owner })).toEqual({ passages: [], didYouMean: undefined });
				expect(asker.ask({ question: 'qqxzzyjk', owner })).toEqual({ passages: [], didYouMean: undefined });
			});
		});

		it('forgets a site and leaves the other as it was', async () => {
			const before = scratch.ask((asker) => asker.ask({ question: 'pg_dump', owner })).passages;
			await scratch.threads.store.call('forget', pythonSite);
			expect(scratch.report((catalogue) => catalogue.sites(owner)).map(({ siteId }) => siteId)).toEqual([
				postgresSite,
			]);
			scratch.ask((asker) => {
				expect(asker.ask({ question: 'os.path.join', owner, siteId: pythonSite }).passages).toEqual([]);
				expect(asker.ask({ question: 'pg_dump', owner }).passages[0]?.address).toBe(before[0]?.address);
			});
		});
	},
);
