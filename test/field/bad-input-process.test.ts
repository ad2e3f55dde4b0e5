/** What a real process does with bytes on its stdin that are no message. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import type { JsonObject } from '../../src/protocol/json.ts';
import { deepArray, INTERNALS } from './bad-input-cases.ts';
import { eventually, field } from './harness.ts';
import { envelope } from './wire.ts';

const MEGABYTE = 1024 * 1024;

let folder = '';
let child: ChildProcessByStdio<Writable, Readable, Readable>;
let messages: JsonObject[] = [];
let errorOutput = '';
let lastId = 0;
let taskId = '';

function request(method: string, params: JsonObject): Promise<JsonObject> {
	const id = ++lastId;
	child.stdin.write(
		`${JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta: envelope(), ...params } })}\n`,
	);
	return eventually(() => messages.find((message) => message['id'] === id), `the answer to ${method}`, 5_000);
}

async function stored(): Promise<number> {
	const backend = sqlite(join(folder, 'tasks.db'));
	await backend.open();
	const { records } = await backend.store.list({ principal: null, statuses: null, limit: 100, cursor: null });
	await backend.close();
	return records.length;
}

async function expectAlive(): Promise<void> {
	expect(child.exitCode).toBeNull();
	expect((await request('tasks/get', { taskId }))['result']).toMatchObject({ status: 'input_required' });
	expect(await stored()).toBe(1);
	expect(errorOutput).not.toMatch(INTERNALS);
}

beforeEach(async () => {
	folder = mkdtempSync(join(tmpdir(), 'holdfast-stdio-'));
	const server = join(import.meta.dirname, 'stdio-server.ts');
	child = spawn(process.execPath, [server, join(folder, 'tasks.db')], { stdio: ['pipe', 'pipe', 'pipe'] });
	messages = [];
	errorOutput = '';
	let rest = '';
	child.stdin.on('error', () => {});
	child.stderr.on('data', (chunk: Buffer) => {
		errorOutput += String(chunk);
	});
	child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
		const lines = (rest + chunk).split('\n');
		rest = lines.pop() ?? '';
		for (const line of lines) messages.push(JSON.parse(line) as JsonObject);
	});
	taskId = String(field((await request('tools/call', { name: 'ask', arguments: {} }))['result'], 'taskId'));
	await eventually(async () => {
		const { result } = await request('tasks/get', { taskId });
		return field(result, 'status') === 'input_required';
	});
});

afterEach(async () => {
	child.kill('SIGKILL');
	if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
	rmSync(folder, { recursive: true, force: true });
});

describe('a process on stdio', () => {
	it('goes on after lines that are no JSON-RPC message', async () => {
		for (const line of ['', '   ', 'hello', '{"jsonrpc":', '\0\0', '"text"', 'null', '[]', '7', '{"id":1}'])
			child.stdin.write(`${line}\n`);
		child.stdin.write(Buffer.from([0xff, 0xfe, 0x0a]));
		child.stdin.write(`${'['.repeat(100_000)}\n${deepArray(100_000)}\n`);
		await expectAlive();
	});

	it.each([
		['no JSON', '{"jsonrpc":', -32700],
		['a batch', '[{"jsonrpc":"2.0","id":7,"method":"tools/list"}]', -32600],
		['no method', '{"jsonrpc":"2.0","id":7}', -32600],
	])('answers a line that is %s with an error', async (_name, line, code) => {
		child.stdin.write(`${line}\n`);
		const wanted = (message: JsonObject): boolean => field(message['error'], 'code') === code;
		const answer = await eventually(() => messages.find(wanted), 'the answer', 1_000);
		expect(JSON.stringify(answer)).not.toMatch(INTERNALS);
		await expectAlive();
	});

	it('survives a line of 64 MB, and says that it was too long', async () => {
		const part = Buffer.alloc(MEGABYTE, 'x');
		for (let sent = 0; sent < 64; sent++) child.stdin.write(part);
		child.stdin.write('\n');
		await expectAlive();
		expect(messages.some((message) => field(message['error'], 'code') === -32600)).toBe(true);
	});

	it('takes a message that comes byte by byte, and two that come as one', async () => {
		const body = (id: string): string =>
			`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tasks/get', params: { taskId, _meta: envelope() } })}\n`;
		for (const byte of Buffer.from(body('slow'))) child.stdin.write(Buffer.from([byte]));
		child.stdin.write(body('one') + body('two'));
		await eventually(() =>
			['slow', 'one', 'two'].every((id) => messages.some((message) => message['id'] === id)),
		);
		await expectAlive();
	});

	it('ends by itself when its stdin ends, and the task is there for the next process', async () => {
		child.stdin.end();
		await eventually(() => child.exitCode !== null || undefined, 'the exit', 5_000);
		expect(child.exitCode).toBe(0);
		expect(await stored()).toBe(1);
	});
});
