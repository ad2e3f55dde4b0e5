/**
 * Runs the official conformance suite against the fixture server, and against our client.
 *
 *   node test/conformance/run.ts                             the task scenarios, then each revision's suite
 *   node test/conformance/run.ts --scenario NAME             one scenario
 *   node test/conformance/run.ts --spec-version 2025-11-25   one revision's suite
 *   node test/conformance/run.ts --client                    the client alone; the two above apply
 *   node test/conformance/run.ts --server                    the server alone
 *   node test/conformance/run.ts --gateway --server          the server behind the gateway
 *
 * A warning counts as a failure. Add `--verbose` for the harness's own output.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
	judge,
	type Outcome,
	readBaseline,
	readOutcomes,
	type Side,
	unused,
	type Verdict,
} from './baseline.ts';

const CURRENT = '2026-07-28';
const EARLIER = ['2025-11-25', '2025-06-18'];
const TOTAL_MS = 6 * 60_000;
const START_MS = 20_000;
const STOP_MS = 3_000;

/** Extension scenarios belong to no revision, so a suite never includes them: they run one by one. */
const TASK_SCENARIOS = [
	'tasks-lifecycle',
	'tasks-capability-negotiation',
	'tasks-wire-fields',
	'tasks-request-state-removal',
	'tasks-mrtr-input',
	'tasks-request-headers',
	'tasks-dispatch-and-envelope',
	'tasks-required-task-error',
	'tasks-mrtr-composition',
];

/**
 * Extensions of authorization. The other extension scenarios, `sep-2640-client-*`, are about skills, which are
 * resources that a host reads by itself: nothing of this client takes part.
 */
const CLIENT_EXTENSIONS = [
	'auth/client-credentials-jwt',
	'auth/client-credentials-basic',
	'auth/enterprise-managed-authorization',
	'auth/dpop',
	'auth/dpop-nonce',
	'auth/wif-jwt-bearer',
];

/** A suite starts all of its clients at once, so each has the time that all of them take. */
const CLIENT_LIMIT_MS = 120_000;

const HARNESS = fileURLToPath(
	new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);

const { values: options } = parseArgs({
	options: {
		scenario: { type: 'string' },
		'spec-version': { type: 'string' },
		client: { type: 'boolean', default: false },
		server: { type: 'boolean', default: false },
		gateway: { type: 'boolean', default: false },
		verbose: { type: 'boolean', default: false },
	},
});
const SERVER = fileURLToPath(
	new URL(options.gateway ? './gateway-server.ts' : './server.ts', import.meta.url),
);
const CLIENT = fileURLToPath(new URL('./client.ts', import.meta.url));
/** The harness splits it at blanks and gives it to a shell. */
const COMMAND = `${process.execPath} ${CLIENT}`;
const version = options['spec-version'];
const baselineFile = fileURLToPath(
	new URL(options.gateway ? './expected-failures-gateway.yml' : './expected-failures.yml', import.meta.url),
);

/** The sides that were asked for; what stands in front of a server is one. */
function sides(): readonly Side[] {
	if (options.client) return ['client'];
	return options.server || options.gateway || options.scenario !== undefined
		? ['server']
		: ['server', 'client'];
}

/** The arguments that select what to run, one entry per call of the harness. */
function plan(side: Side): string[][] {
	return side === 'server' ? serverPlan() : clientPlan();
}

function clientPlan(): string[][] {
	const { scenario } = options;
	if (scenario !== undefined)
		return [['--scenario', scenario, ...(version ? ['--spec-version', version] : [])]];
	const versions = version === undefined ? [CURRENT, ...EARLIER] : [version];
	return [
		...(version === undefined || version === CURRENT ? CLIENT_EXTENSIONS : []).map((name) => [
			'--scenario',
			name,
		]),
		...versions.map((each) => ['--suite', 'all', '--spec-version', each]),
	];
}

function serverPlan(): string[][] {
	const { scenario } = options;
	if (scenario?.startsWith('tasks-')) return [['--scenario', scenario]];
	if (scenario !== undefined) return [['--scenario', scenario, '--spec-version', version ?? CURRENT]];
	const tasks = version === undefined || version === CURRENT ? TASK_SCENARIOS : [];
	const versions = version === undefined ? [CURRENT, ...EARLIER] : [version];
	return [
		...tasks.map((name) => ['--scenario', name]),
		...versions.map((each) => ['--suite', 'all', '--spec-version', each]),
	];
}

interface FixtureServer {
	url: string;
	stop: () => Promise<void>;
}

async function startServer(signal: AbortSignal): Promise<FixtureServer> {
	const child = spawn(process.execPath, [SERVER, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
	process.once('exit', () => child.kill('SIGKILL'));
	try {
		const starting = AbortSignal.any([signal, AbortSignal.timeout(START_MS)]);
		const url = await printedUrl(child, starting);
		await answers(url, starting);
		return { url, stop: () => stop(child) };
	} catch (error) {
		await stop(child);
		throw new Error('the fixture server did not start', { cause: error });
	}
}

function printedUrl(child: ChildProcess, signal: AbortSignal): Promise<string> {
	return new Promise((resolve, reject) => {
		if (child.stdout === null) throw new Error('the server has no output');
		createInterface({ input: child.stdout }).on('line', (line) => {
			if (/^https?:\/\/\S+$/.test(line)) resolve(line);
			else console.error(line);
		});
		child.once('error', reject);
		child.once('exit', (code) => reject(new Error(`it exited with ${code}`)));
		signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
	});
}

/** Any HTTP answer will do: whether it is the right one is for the harness to say. */
async function answers(url: string, signal: AbortSignal): Promise<void> {
	for (;;) {
		signal.throwIfAborted();
		try {
			await fetch(url, {
				method: 'POST',
				headers: { 'content-type': 'application/json' },
				body: '{}',
				signal,
			});
			return;
		} catch {
			await sleep(50);
		}
	}
}

async function stop(child: ChildProcess): Promise<void> {
	if (child.exitCode !== null || child.signalCode !== null) return;
	const gone = new Promise((resolve) => child.once('exit', resolve));
	child.kill('SIGTERM');
	const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
	await gone;
	clearTimeout(late);
}

/** One call of the harness. Resolves with its exit code; what it found is in `folder`. */
function harness(
	subject: readonly string[],
	selection: string[],
	folder: string,
	signal: AbortSignal,
): Promise<number> {
	const baseline = existsSync(baselineFile) ? ['--expected-failures', baselineFile] : [];
	const args = [HARNESS, ...subject, ...selection, ...baseline, '--output-dir', folder];
	const child = spawn(process.execPath, args, {
		cwd: folder,
		stdio: ['ignore', 'pipe', 'pipe'],
		signal,
		killSignal: 'SIGKILL',
	});
	let output = '';
	for (const stream of [child.stdout, child.stderr]) {
		stream.setEncoding('utf8').on('data', (chunk: string) => {
			output += chunk;
			if (options.verbose) process.stderr.write(chunk);
		});
	}
	return new Promise((resolve, reject) => {
		child.once('error', reject);
		child.once('close', (code) => {
			const announced = /^Running .+ \((\d+) scenarios\)/m.exec(output)?.[1];
			const ran = readOutcomes(folder).length;
			if (ran > 0 && (announced === undefined || Number(announced) === ran)) {
				resolve(code ?? 1);
			} else {
				console.error(output);
				reject(new Error(`the harness left results for ${ran} of ${announced ?? 1} scenarios`));
			}
		});
	});
}

function printRow(verdict: Verdict): void {
	const { scenario, passed, failed, expected, other, missing } = verdict;
	const cells = [passed, failed.length, expected.length, other].map((count) => String(count).padStart(9));
	console.log(`${scenario.padEnd(46)}${cells.join('')}${missing ? '   no result' : ''}`);
}

async function runAll(signal: AbortSignal): Promise<boolean> {
	const folder = await mkdtemp(join(tmpdir(), 'holdfast-conformance-'));
	const verdicts: Verdict[] = [];
	const problems: string[] = [];
	console.log(`${'scenario'.padEnd(46)}   passed   failed expected    other`);
	try {
		for (const side of sides()) {
			const baseline = readBaseline(baselineFile, side);
			const server = side === 'server' ? await startServer(signal) : undefined;
			const subject = server
				? ['--url', server.url]
				: ['--command', COMMAND, '--timeout', `${CLIENT_LIMIT_MS}`];
			const ran: string[] = [];
			try {
				for (const selection of plan(side)) {
					const results = await mkdtemp(join(folder, `${side}-`));
					const code = await harness([side, ...subject], selection, results, signal);
					if (selection.includes('--suite')) console.log(`\n${side} ${selection.at(-1)}`);
					const batch = readOutcomes(results).map((outcome: Outcome) => judge(outcome, baseline));
					batch.forEach(printRow);
					verdicts.push(...batch);
					ran.push(...batch.map(({ scenario }) => scenario));
					const explained = batch.some(
						({ failed, stale, missing }) => failed.length + stale.length > 0 || missing,
					);
					if (code !== 0 && !explained)
						problems.push(`the harness exited with ${code} on ${side} ${selection.join(' ')}`);
				}
			} finally {
				await server?.stop();
			}
			if (options.scenario === undefined)
				problems.push(...unused(baseline, ran).map((entry) => `stale: ${side} ${entry} did not run`));
		}
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
	return report(verdicts, problems);
}

/** Prints what went wrong and the totals; false when anything did. */
function report(verdicts: Verdict[], problems: string[]): boolean {
	for (const { scenario, failed, stale, missing } of verdicts) {
		for (const check of failed) {
			console.log(
				`\n${check.status} ${scenario}:${check.id}\n  ${check.errorMessage ?? check.description ?? ''}`,
			);
		}
		problems.push(...stale.map((entry) => `stale: ${entry} passes`));
		if (missing) problems.push(`${scenario} gave no result; does it apply to ${version ?? CURRENT}?`);
	}
	for (const problem of problems) console.log(`\n${problem}`);
	const passed = verdicts.reduce((sum, verdict) => sum + verdict.passed, 0);
	const failed = verdicts.reduce((sum, verdict) => sum + verdict.failed.length, 0);
	console.log(`\n${passed} passed, ${failed} failed`);
	return passed > 0 && failed === 0 && problems.length === 0;
}

const interrupt = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) {
	process.once(name, () => interrupt.abort(new Error(`stopped by ${name}`)));
}
const deadline = AbortSignal.timeout(TOTAL_MS);
try {
	if (!(await runAll(AbortSignal.any([interrupt.signal, deadline])))) process.exitCode = 1;
} catch (error) {
	console.error(error);
	process.exitCode = 1;
}
