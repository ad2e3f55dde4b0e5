/** `kill -9` of the gateway in the middle of folded work. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { FOLD_PRESETS, type FoldPresetName } from '../../src/gateway/folding/presets.ts';
import { begin, inStatus } from '../support/steps.ts';
import { eventually, httpWire, type Wire } from '../support/wire.ts';
import { type Behind, overHttp, REPORTS } from './folding-gateway.ts';
import { atEnd, serveStandIn } from './folding-rig.ts';
import { jsonText, texts } from './folding-stand-in.ts';
import { FAMILIES } from './folding-stand-ins.ts';

const JOB = { job: { type: 'string' } };

function store(): string {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-folding-'));
	atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
	return join(folder, 'tasks.db');
}

/** A gateway in a process of its own. */
async function startGateway(
	file: string,
	behind: readonly Behind[],
	speed = 1,
): Promise<{ wire: Wire; child: ChildProcess }> {
	const program = join(import.meta.dirname, 'folding-gateway-process.ts');
	const child = spawn(process.execPath, [program, file, String(speed), JSON.stringify(behind)], {
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	atEnd(() => child.kill('SIGKILL'));
	const own = await new Promise<string>((resolve, reject) => {
		child.stdout?.once('data', (line: Buffer) => resolve(line.toString().trim()));
		child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)));
	});
	return { child, wire: httpWire(own) };
}

/** A gateway that folds the family of reports. */
function reportsAt(url: string): readonly Behind[] {
	return [{ name: 'reports', target: overHttp(url), fold: REPORTS }];
}

/** The steps that are stored for a task. */
async function stepsOf(file: string, taskId: string): Promise<readonly string[]> {
	const backend = sqlite(file);
	await backend.open();
	try {
		return (await backend.store.load(taskId))?.steps.map(({ name }) => name) ?? [];
	} finally {
		await backend.close();
	}
}

/** The task as soon as it has ended; the lease of a process that was killed lapses first. */
async function endOf(wire: Wire, taskId: string, status: string): Promise<Record<string, unknown>> {
	return eventually(async () => {
		const { result } = await wire.request('tasks/get', { taskId });
		expect(result?.['status']).toBe(status);
		return result as Record<string, unknown>;
	}, 20_000);
}

test('work whose handle had come is found again, and was started once', async () => {
	let isDone = false;
	const server = await serveStandIn({
		start_report: { properties: {}, call: () => jsonText({ job: 'r-1' }) },
		get_report: {
			properties: JOB,
			call: () => jsonText({ status: isDone ? 'done' : 'running', text: 'over the crash' }),
		},
		cancel_report: { properties: JOB, call: () => texts('') },
	});
	const file = store();
	const first = await startGateway(file, reportsAt(server.url));
	const taskId = await begin(first.wire, 'start_report');
	await eventually(() => expect(server.of('get_report').length).toBeGreaterThan(0));
	first.child.kill('SIGKILL');
	isDone = true;
	const second = await startGateway(file, reportsAt(server.url));
	const { result } = await endOf(second.wire, taskId, 'completed');
	expect(result).toMatchObject({ content: [{ text: 'over the crash' }] });
	expect(server.of('start_report')).toHaveLength(1);
	expect(server.of('get_report').at(-1)).toEqual({ job: 'r-1' });
});

test('a start whose answer did not come has an outcome that is unknown, and is not sent again', async () => {
	const never = Promise.withResolvers<ReturnType<typeof texts>>();
	const server = await serveStandIn({
		start_report: { properties: {}, call: () => never.promise },
		get_report: { properties: JOB, call: () => jsonText({ status: 'done' }) },
		cancel_report: { properties: JOB, call: () => texts('') },
	});
	atEnd(() => never.resolve(texts('too late')));
	const file = store();
	const first = await startGateway(file, reportsAt(server.url));
	const taskId = await begin(first.wire, 'start_report');
	await inStatus(first.wire, taskId, 'working');
	first.child.kill('SIGKILL');
	const second = await startGateway(file, reportsAt(server.url));
	const { error } = await endOf(second.wire, taskId, 'failed');
	expect(error).toMatchObject({ message: expect.stringMatching(/outcome of start_report .* is unknown/) });
	expect(server.of('start_report')).toHaveLength(1);
	expect(server.of('get_report')).toEqual([]);
});

test('work of every preset survives the crash, each started once', { timeout: 60_000 }, async () => {
	const names = Object.keys(FOLD_PRESETS) as FoldPresetName[];
	const families = await Promise.all(
		names.map(async (name) => {
			const family = FAMILIES[name]();
			const [tool, args] = family.call;
			const server = await serveStandIn(family.tools);
			const behind = {
				...{ name, target: overHttp(server.url), fold: name, prefix: `${name}_` },
				tools: { [tool]: { syncWindowMs: 0 } },
			};
			return { ...family, name, tool: `${name}_${tool}`, args, server, behind };
		}),
	);
	const behind = families.map((family) => family.behind);
	const file = store();
	const first = await startGateway(file, behind);
	const taskIds = await Promise.all(families.map(({ tool, args }) => begin(first.wire, tool, args)));
	await eventually(async () => {
		for (const taskId of taskIds) expect(await stepsOf(file, taskId)).toContain('started');
	});
	first.child.kill('SIGKILL');
	const second = await startGateway(file, behind, 50);
	for (const [index, { name, call: made, result, server }] of families.entries()) {
		const ended = await endOf(second.wire, taskIds[index] ?? '', 'completed');
		expect([name, JSON.stringify(ended['result'])]).toEqual([
			name,
			expect.stringMatching(result.source.replace(/[$^]/g, '')),
		]);
		const [start, given] = made;
		const starts = server
			.of(start)
			.filter((args) => Object.keys(given).every((key) => Object.hasOwn(args, key)));
		expect([name, starts.filter(({ operation }) => operation === given['operation']).length]).toEqual([
			name,
			1,
		]);
	}
});
