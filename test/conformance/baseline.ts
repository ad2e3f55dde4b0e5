/** Reads what the harness wrote and compares it with the expected failures. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';

const checkSchema = z.object({
	id: z.string(),
	status: z.enum(['SUCCESS', 'FAILURE', 'WARNING', 'SKIPPED', 'INFO']),
	errorMessage: z.string().optional(),
	description: z.string().optional(),
});

export type Check = z.infer<typeof checkSchema>;

export interface Outcome {
	scenario: string;
	/** Undefined when the scenario was started and wrote no checks: it crashed or was skipped. */
	checks: Check[] | undefined;
}

export interface Verdict {
	scenario: string;
	passed: number;
	/** Failures and warnings that the baseline does not list. */
	failed: Check[];
	expected: Check[];
	/** Checks that say only that something did not apply. */
	other: number;
	/** Baseline entries that no longer fail. */
	stale: string[];
	missing: boolean;
}

/** Which side is held against the suite. */
export type Side = 'server' | 'client';

/**
 * The scenarios under `folder`, where the harness makes one folder each: `server-<name>-<time>`, or for a client
 * `<name>-<time>`. Names may have a slash.
 */
export function readOutcomes(folder: string): Outcome[] {
	const outcomes: Outcome[] = [];
	const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' });
	for (const entry of entries.sort((a, b) => timeOf(a).localeCompare(timeOf(b)))) {
		const name = /^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(basename(entry))?.[1];
		if (name === undefined) continue;
		const file = join(folder, entry, 'checks.json');
		const checks = existsSync(file)
			? z.array(checkSchema).parse(JSON.parse(readFileSync(file, 'utf8')))
			: undefined;
		const scenario = join(dirname(entry), name).replaceAll('\\', '/');
		outcomes.push({ scenario: scenario.replace(/^server-/, ''), checks });
	}
	return outcomes;
}

function timeOf(entry: string): string {
	return entry.slice(-24);
}

/** One side's list in an expected-failures file, in the harness's own format. */
export function readBaseline(file: string, side: Side): string[] {
	if (!existsSync(file)) return [];
	const entries: string[] = [];
	let section = '';
	for (const raw of readFileSync(file, 'utf8').split('\n')) {
		const line = raw.replace(/(^|\s)#.*$/, '').trimEnd();
		const heading = /^(\w+):\s*(\[\s*\])?$/.exec(line)?.[1];
		if (heading !== undefined) section = heading;
		const entry = /^\s*-\s+(\S+)$/.exec(line)?.[1];
		if (entry !== undefined && section === side) entries.push(entry);
	}
	return entries;
}

/** The same rules as the harness: a warning fails too, and a listed check that passes is stale. */
export function judge(outcome: Outcome, baseline: string[]): Verdict {
	const { scenario, checks = [] } = outcome;
	const bad = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
	const whole = baseline.includes(scenario);
	const listed = baseline
		.filter((entry) => entry.startsWith(`${scenario}:`))
		.map((entry) => entry.slice(scenario.length + 1));
	const excused = (check: Check): boolean => whole || listed.includes(check.id);
	const stale = listed
		.filter((id) => isPassing(checks.filter((check) => check.id === id)))
		.map((id) => `${scenario}:${id}`);
	if (whole && bad.length === 0) stale.push(scenario);
	return {
		scenario,
		passed: checks.filter(({ status }) => status === 'SUCCESS').length,
		failed: bad.filter((check) => !excused(check)),
		expected: bad.filter(excused),
		other: checks.filter(({ status }) => status === 'SKIPPED' || status === 'INFO').length,
		stale,
		missing: outcome.checks === undefined,
	};
}

function isPassing(checks: Check[]): boolean {
	return checks.length > 0 && checks.every(({ status }) => status === 'SUCCESS');
}

/** Entries about scenarios that did not run at all; the harness itself does not notice these. */
export function unused(baseline: string[], ran: string[]): string[] {
	return baseline.filter((entry) => !ran.includes(entry.split(':')[0] ?? entry));
}
