/** `kill -9` of the gateway in the middle of folded work. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { begin, inStatus } from '../support/steps.ts';
import { eventually, httpWire, type Wire } from '../support/wire.ts';
import { atEnd, serveStandIn } from './folding-rig.ts';
import { jsonText, texts } from './folding-stand-in.ts';

const JOB = { job: { type: 'string' } };

function store(): string {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-folding-'));
	atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
	return join(folder, 'tasks.db');
}

/** A gateway in a process of its own. */
async function startGateway(url: string, file: string): Promise<{ wire: Wire; child: ChildProcess }> {
	const child = spawn(
		process.execPath,
		[join(import.meta.dirname, 'folding-gateway-process.ts'), url, file],
		{
			stdio: ['ignore', 'pipe', 'inherit'],
		},
	);
	atEnd(() => child.kill('SIGKILL'));
	const own = await new Promise<string>((resolve, reject) => {
		child.stdout?.once('data', (line: Buffer) => resolve(line.toString().trim()));
		child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)));
	});
	return { child, wire: httpWire(own) };
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
	const first = await startGateway(server.url, file);
	const taskId = await begin(first.wire, 'start_report');
	await eventually(() => expect(server.of('get_report').length).toBeGreaterThan(0));
	first.child.kill('SIGKILL');
	isDone = true;
	const second = await startGateway(server.url, file);
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
	const first = await startGateway(server.url, file);
	const taskId = await begin(first.wire, 'start_report');
	await inStatus(first.wire, taskId, 'working');
	first.child.kill('SIGKILL');
	const second = await startGateway(server.url, file);
	const { error } = await endOf(second.wire, taskId, 'failed');
	expect(error).toMatchObject({ message: expect.stringMatching(/outcome of start_report .* is unknown/) });
	expect(server.of('start_report')).toHaveLength(1);
	expect(server.of('get_report')).toEqual([]);
});
