import { existsSync, readFileSync } from 'node:fs';

/** The tool of the demo. */
export const DEMO_TOOL = 'build_report';

/** Its steps, in order. */
export const DEMO_STEPS = [
	'collecting the orders',
	'checking the numbers',
	'comparing with last year',
	'drawing the charts',
	'writing the summary',
] as const;

/** How long each step takes. */
export const STEP_MS = 2_000;

/** Environment variable with the file in which the steps leave their lines. */
export const DEMO_JOURNAL_ENV = 'HOLDFAST_DEMO_JOURNAL';

/** One line that a step left behind. */
export interface StepLine {
	readonly what: 'began' | 'ended';
	readonly step: string;
	/** The process in which it ran. */
	readonly pid: number;
	readonly atMs: number;
}

/** The lines that steps have left so far. */
export function readStepLines(file: string): StepLine[] {
	if (!existsSync(file)) return [];
	const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
	return lines.map((line) => JSON.parse(line) as StepLine);
}
