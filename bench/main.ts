/** `npm run bench [-- --only NAME] [--json FILE]`: every measurement, one after the other, and a table. */
import { fork } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { cpus, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Figure, isMet, toTable } from './figures.ts';

const NAMES = [
	'throughput',
	'pickup',
	'http',
	'memory-queued',
	'memory-waiting',
	'latency',
	'postgres',
	'redis',
	'client-waiting',
	'client-many',
];

const { values: options } = parseArgs({ options: { only: { type: 'string' }, json: { type: 'string' } } });
const { only, json } = options;
const names = NAMES.filter((name) => only === undefined || name === only || name.startsWith(`${only}-`));
if (names.length === 0) {
	console.error(`There is no measurement "${only}". There are: ${NAMES.join(', ')}.`);
	process.exit(2);
}

const machine = `${cpus().length} x ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()}`;
console.log(`Node ${process.version}, ${machine}\n`);

const measurements: Record<string, readonly Figure[]> = {};
const broken: string[] = [];
for (const name of names) {
	const startedAt = performance.now();
	process.stderr.write(`${name} ...`);
	try {
		measurements[name] = await run(name);
		process.stderr.write(` ${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`);
	} catch (error) {
		broken.push(name);
		process.stderr.write(` broke: ${error instanceof Error ? error.message : String(error)}\n`);
	}
}

console.log(`\n${toTable(measurements)}\n`);
const verdicts = Object.values(measurements).flat().map(isMet);
const count = (verdict: boolean): number => verdicts.filter((each) => each === verdict).length;
console.log(`${count(true)} goals met, ${count(false)} missed, ${broken.length} measurements broken`);
if (json !== undefined) {
	const report = { date: new Date().toISOString(), node: process.version, machine, measurements, broken };
	await writeFile(json, `${JSON.stringify(report, null, '\t')}\n`);
}
process.exitCode = broken.length > 0 ? 1 : 0;

/** Runs a measurement in a process of its own, so that none finds the heap and the compiled code of another. */
function run(name: string): Promise<readonly Figure[]> {
	return new Promise((resolve, reject) => {
		const execArgv = [...process.execArgv, '--expose-gc'];
		const child = fork(join(import.meta.dirname, 'measure.ts'), [name], { execArgv });
		child.once('message', (figures) => resolve(figures as readonly Figure[]));
		child.once('error', reject);
		child.once('exit', (code, signal) => reject(new Error(`it ended with ${signal ?? code} and no figures`)));
	});
}
