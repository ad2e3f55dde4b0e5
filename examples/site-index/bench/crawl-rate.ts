/**
 * The crawl against `wget -r` on the same sites on loopback, in turns: wget only stores files, the crawl reads,
 * stores and indexes every page. Run it with `node examples/site-index/bench/crawl-rate.ts [rounds]`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crawl } from '../src/crawl.ts';
import { HostGates } from '../src/host-gate.ts';
import { completeOptions } from '../src/options.ts';
import { IndexThreads } from '../src/threads.ts';
import { postgresDocs, pythonDocs } from '../test/real-docs.ts';

const sites = [
	{ name: 'postgresql-doc', folder: postgresDocs },
	{ name: 'python3-doc', folder: pythonDocs },
];
const rounds = Math.max(2, Number(process.argv[2] ?? 4));

/** Seconds of `wget -r`, from its start to its end. */
const wget = (address: string): number => {
	const folder = mkdtempSync(join(tmpdir(), 'wget-'));
	const began = performance.now();
	const { error } = spawnSync('wget', ['-q', '-r', '-l', 'inf', '-P', folder, address]);
	const took = (performance.now() - began) / 1_000;
	rmSync(folder, { recursive: true });
	if (error !== undefined) throw error;
	return took;
};

/** Seconds of one task on a running server: from the call to the last page searchable. */
const ours = async (
	threads: IndexThreads,
	address: string,
	round: number,
): Promise<{ seconds: number; pages: number }> => {
	let pages = 0;
	const began = performance.now();
	const { siteId } = await crawl(
		`task-${round}-${address}`,
		`owner-${round}`,
		completeOptions({ startAddress: address }),
		{
			threads,
			hosts: new HostGates(),
			signal: AbortSignal.timeout(120_000),
			allowPrivate: true,
			onProgress: ({ visited }) => (pages = visited),
		},
	);
	const seconds = (performance.now() - began) / 1_000;
	// As wget's folder is taken away each time, so that every round begins with nothing.
	await threads.store.call('forget', siteId);
	return { seconds, pages };
};

const median = (values: readonly number[]): number =>
	[...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

const folder = mkdtempSync(join(tmpdir(), 'crawl-'));
const threads = new IndexThreads(join(folder, 'sites.db'));
await threads.ready();
const total = { wget: 0, first: 0, later: 0 };
const line = (name: string, wgetSeconds: number, first: number, later: number): string =>
	`${name}: wget -r ${wgetSeconds.toFixed(2)} s; crawl and index ${later.toFixed(2)} s, ratio ` +
	`${(later / wgetSeconds).toFixed(2)} (first time in this process ${first.toFixed(2)} s, ratio ${(first / wgetSeconds).toFixed(2)})`;

for (const { name, folder: root } of sites) {
	const server = spawn(
		process.execPath,
		[fileURLToPath(new URL('../test/serve-folder.ts', import.meta.url)), root],
		{
			stdio: ['ignore', 'pipe', 'inherit'],
		},
	);
	try {
		const [address] = (await once(server.stdout, 'data')) as [Buffer];
		const start = `${String(address).trim()}/index.html`;
		const taken: { wget: number[]; ours: number[] } = { wget: [], ours: [] };
		let pages = 0;
		for (let round = 0; round < rounds; round += 1) {
			taken.wget.push(wget(start));
			const run = await ours(threads, start, round);
			taken.ours.push(run.seconds);
			pages = run.pages;
		}
		const [first = 0, ...others] = taken.ours;
		const [theirs, later] = [median(taken.wget), median(others)];
		total.wget += theirs;
		total.first += first;
		total.later += later;
		console.log(
			`${line(`${name}, ${pages} pages`, theirs, first, later)}; ${Math.round(pages / later)} pages/s`,
		);
	} finally {
		server.kill();
	}
}
console.log(line('both', total.wget, total.first, total.later));
await threads.close();
rmSync(folder, { recursive: true });
